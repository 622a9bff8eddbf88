"""Several processes that train one model (torchrun).

With one process, every function here does nothing and needs no process group. An exchange that fails, or takes longer
than the time limit, ends in one line that names the process that is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import safetensors.torch
import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from seqloom.errors import SeqloomError, one_line
from seqloom.storage.weights import to_bytes
from seqloom.train import liveness
from seqloom.train.liveness import exchange
from seqloom.types import State, flatten, nest

JOINING = 300.0  # seconds at least for all processes to start
_blocks = count()  # numbers of the blocks that the lead runs first


def rank() -> int:
    return int(os.environ.get("RANK", 0))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", 1))


def is_lead() -> bool:
    """Whether this is the process that writes files and displays."""
    return rank() == 0


def begin(device: torch.device, minutes: float) -> None:
    """Join the other processes, if torchrun started several. They wait so many minutes for each other."""
    if world_size() > 1 and not distributed.is_initialized():
        liveness.limit = 60 * minutes
        if device.type == "cuda":
            torch.cuda.set_device(device)
        kind = "nccl" if device.type == "cuda" else "gloo"
        try:
            patience = timedelta(seconds=max(liveness.limit, JOINING))
            store, *_ = next(rendezvous("env://", rank(), world_size(), timeout=patience))
            # torchrun keeps its store when it starts processes again, with the addresses of those that have ended.
            store = PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
            distributed.init_process_group(kind, store=store, rank=rank(), world_size=world_size(), timeout=patience)
            liveness.set_limits()
        except RuntimeError as error:
            problem = f"process {rank() + 1} of {world_size()} has not met the others: {one_line(error)}"
            raise SeqloomError(problem) from error


def end() -> None:
    """Leave the process group; nothing may be trained afterwards."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def check_accumulate(accumulate: int) -> None:
    """Refuse updates whose micro-batches cannot be shared equally."""
    if accumulate % world_size():
        fitting = (accumulate // world_size() + 1) * world_size()
        raise SeqloomError(
            f"train.accumulate = {accumulate} cannot be shared by {world_size()} processes: "
            f"set it to a multiple of them, such as accumulate = {fitting}"
        )


def unequal_shares(accumulate: int) -> list[str]:
    """A line about updates whose micro-batches are not shared equally, as a run may go on with other processes."""
    if not accumulate % world_size():
        return []
    return [f"{accumulate} micro-batches per update, {world_size()} processes: some wait in a part of each update"]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Each gradient averaged over the processes, once per update.

    An update may leave a parameter unused (a baseline, a second decoder): it counts as zero in the processes that did
    not use it, and keeps no gradient where none did, as with one process. DistributedDataParallel would have to search
    the graph of every update for such parameters, and warns where it finds none.
    """
    if world_size() == 1:
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    users = sums([float(parameter.grad is not None) for parameter in trained], trained[0].device)
    used = [parameter for parameter, count in zip(trained, users, strict=True) if count]
    for kind in dict.fromkeys(parameter.dtype for parameter in used):
        group = [parameter for parameter in used if parameter.dtype == kind]
        own = [torch.zeros_like(each) if each.grad is None else each.grad for each in group]
        flat = torch.cat([gradient.flatten() for gradient in own]) / world_size()
        with exchange():
            distributed.all_reduce(flat)
        for parameter, gradient in zip(group, flat.split([each.numel() for each in group]), strict=True):
            parameter.grad = gradient.view_as(parameter)


def sums(values: Sequence[float], device: torch.device) -> list[float]:
    """Each number summed over the processes."""
    if world_size() == 1:
        return list(values)
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    with exchange():
        distributed.all_reduce(tensor)
    return tensor.tolist()


def broadcast(value: Any, device: torch.device, source: int = 0) -> Any:
    """The value of the source process, in all processes. Sent as JSON, not as a pickle."""
    if world_size() == 1:
        return value
    text = json.dumps(value).encode() if rank() == source else b""
    length = torch.tensor([len(text)], device=device)
    with exchange():
        distributed.broadcast(length, source)
        content = as_tensor(text, int(length), device)
        distributed.broadcast(content, source)
    return json.loads(bytes(content.tolist()))


def gather(content: bytes, device: torch.device) -> list[bytes]:
    """The content of each process, in the order of their ranks."""
    if world_size() == 1:
        return [content]
    length = torch.tensor([len(content)], device=device)
    lengths = [torch.empty_like(length) for _ in range(world_size())]
    with exchange():
        distributed.all_gather(lengths, length)
        own = as_tensor(content, max(map(int, lengths)), device)
        contents = [torch.empty_like(own) for _ in lengths]
        distributed.all_gather(contents, own)
    return [each[: int(size)].cpu().numpy().tobytes() for each, size in zip(contents, lengths, strict=True)]


def as_tensor(content: bytes, size: int, device: torch.device) -> Tensor:
    """Bytes, followed by zeros up to a size."""
    return torch.frombuffer(bytearray(content.ljust(max(size, 1), b"\0")), dtype=torch.uint8)[:size].to(device)


def own_states(states: State) -> State:
    """The states of the micro-batches of this process; keys are the places of micro-batches in their update."""
    return {place: state for place, state in states.items() if int(place) % world_size() == rank()}


def gather_states(states: State, device: torch.device) -> State:
    """The states of the micro-batches of all processes, which may have different numbers of them."""
    if world_size() == 1:
        return states
    gathered: State = {}
    for content in gather(to_bytes(flatten(states)), device):
        gathered |= nest(safetensors.torch.load(content))
    return gathered


def wait() -> None:
    """Wait until all processes are here."""
    if world_size() > 1:
        with exchange():
            distributed.barrier()


@contextmanager
def lead_first() -> Iterator[None]:
    """Run the block in the lead first: it makes the files that the other processes read. That may take long."""
    if world_size() == 1:
        yield
        return
    work = f"work {next(_blocks)}"
    if is_lead():
        with liveness.signs_of_life(work):
            yield
    else:
        liveness.await_work(work, rank=0)
        yield
