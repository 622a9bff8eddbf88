"""Several processes that train one model (torchrun), and the signals that stop them.

One process is the special case: every function here then does nothing, without a process group.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any, Self

import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from seqloom.errors import SeqloomError
from seqloom.types import State, over_tensors


def rank() -> int:
    return int(os.environ.get("RANK", 0))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", 1))


def is_lead() -> bool:
    """The lead alone writes and displays."""
    return rank() == 0


def begin(device: torch.device) -> None:
    """Join the other processes, if torchrun started several."""
    if world_size() > 1 and not distributed.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # The others wait while the lead decodes the validation set, which may take long.
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=12))


def end() -> None:
    """Leave the group. For the caller whose last act training was."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def check_accumulate(accumulate: int) -> None:
    """Each process must have its equal share of an update."""
    if accumulate % world_size():
        fitting = (accumulate // world_size() + 1) * world_size()
        raise SeqloomError(
            f"train.accumulate = {accumulate} cannot be shared by {world_size()} processes: "
            f"set it to a multiple of them, such as accumulate = {fitting}"
        )


def wrap(module: nn.Module) -> nn.Module:
    """The module, its gradients averaged over the processes."""
    if world_size() == 1:
        return module
    # An objective may leave a parameter out for a while (a baseline, a second decoder): look for such each time.
    return DistributedDataParallel(module, find_unused_parameters=True)


def without_sync(module: nn.Module) -> AbstractContextManager[None]:
    """Within, gradients stay on their own process: for all but the last micro-batch of an update."""
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def sums(values: Sequence[float], device: torch.device) -> list[float]:
    """Each number summed over the processes."""
    if world_size() == 1:
        return list(values)
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.all_reduce(tensor)
    return tensor.tolist()


def share(value: Any, device: torch.device, source: int = 0) -> Any:
    """What the source process has, for all of them. Travels as JSON: processes need not trust a pickle."""
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


def own(states: State) -> State:
    """Of states by the number of their micro-batch, those that this process computes: each world_size-th."""
    return {number: state for number, state in states.items() if int(number) % world_size() == rank()}


def gathered(states: State) -> State:
    """The states of all processes, each of which gives its own."""
    if world_size() == 1:
        return states
    found: State = {}
    for number in sorted(states, key=int):

        def collect(value: Tensor) -> Tensor:
            everybody = [torch.empty_like(value) for _ in range(world_size())]
            distributed.all_gather(everybody, value.contiguous())
            return torch.stack(everybody)

        stacked = over_tensors(collect, states[number])
        for each in range(world_size()):
            place = str(int(number) - rank() + each)
            found[place] = over_tensors(lambda value, each=each: value[each], stacked)
    return found


def wait() -> None:
    """Until all processes are here."""
    if world_size() > 1:
        distributed.barrier()


@contextmanager
def lead_first() -> Iterator[None]:
    """The lead runs the block before all others: it makes the folder they open."""
    if not is_lead():
        wait()
    yield
    if is_lead():
        wait()


class Interruption:
    """Ctrl-C and SIGTERM as a question that the training loop asks. A second signal aborts at once."""

    received = False

    def __enter__(self) -> Self:
        self.previous: dict[int, Any] = {}
        self.first = 0.0
        if threading.current_thread() is threading.main_thread():
            self.previous = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        # torchrun passes on what the terminal has already sent to each process: that is the same signal still.
        echo = world_size() > 1 and time.monotonic() - self.first < 2.0
        if self.received and not echo:
            self._restore()
            signal.raise_signal(number)
        elif not self.received:
            self.received, self.first = True, time.monotonic()
