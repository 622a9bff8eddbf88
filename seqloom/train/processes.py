"""Several processes that train one model (torchrun).

With one process, every function here does nothing and needs no process group.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor, nn

from seqloom.errors import SeqloomError
from seqloom.types import State, over_tensors


def rank() -> int:
    return int(os.environ.get("RANK", 0))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", 1))


def is_lead() -> bool:
    """Whether this is the process that writes files and displays."""
    return rank() == 0


def begin(device: torch.device) -> None:
    """Join the other processes, if torchrun started several."""
    if world_size() > 1 and not distributed.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # The other processes wait while the lead decodes the validation set, which may take long.
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=12))


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
        distributed.all_reduce(flat)
        for parameter, gradient in zip(group, flat.split([each.numel() for each in group]), strict=True):
            parameter.grad = gradient.view_as(parameter)


def sums(values: Sequence[float], device: torch.device) -> list[float]:
    """Each number summed over the processes."""
    if world_size() == 1:
        return list(values)
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.all_reduce(tensor)
    return tensor.tolist()


def broadcast(value: Any, device: torch.device, source: int = 0) -> Any:
    """The value of the source process, in all processes. Sent as JSON, not as a pickle."""
    if world_size() == 1:
        return value
    text = json.dumps(value).encode() if rank() == source else b""
    length = torch.tensor([len(text)], device=device)
    distributed.broadcast(length, source)
    content = torch.zeros(int(length), dtype=torch.uint8, device=device)
    if rank() == source:
        content.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
    distributed.broadcast(content, source)
    return json.loads(bytes(content.tolist()))


def own_states(states: State) -> State:
    """The states of the micro-batches of this process; keys are the places of micro-batches in their update."""
    return {place: state for place, state in states.items() if int(place) % world_size() == rank()}


def gather_states(states: State) -> State:
    """The states of the micro-batches of all processes."""
    if world_size() == 1:
        return states
    gathered: State = {}
    for own in sorted(states, key=int):

        def collect(value: Tensor) -> Tensor:
            values = [torch.empty_like(value) for _ in range(world_size())]
            distributed.all_gather(values, value.contiguous())
            return torch.stack(values)

        stacked = over_tensors(collect, states[own])
        for each in range(world_size()):
            place = str(int(own) - rank() + each)
            gathered[place] = over_tensors(lambda value, each=each: value[each], stacked)
    return gathered


def wait() -> None:
    """Wait until all processes are here."""
    if world_size() > 1:
        distributed.barrier()


@contextmanager
def lead_first() -> Iterator[None]:
    """Run the block in the lead first: it makes the files that the other processes read."""
    if not is_lead():
        wait()
    yield
    if is_lead():
        wait()
