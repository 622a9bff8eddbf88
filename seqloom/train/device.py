"""Where and in which precision to compute."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

import torch

from seqloom.errors import SeqloomError, nearest
from seqloom.train.settings import Precision


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name. "auto" takes a CUDA card where there is one, else the CPU.

    mps only when asked for: small recurrent models are slower there than on the CPU beside it.
    """
    if name not in ("auto", "cpu", "cuda", "mps"):
        raise SeqloomError(f'device = "{name}" is unknown{nearest(name, ("auto", "cpu", "cuda", "mps"))}')
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            raise SeqloomError('device = "cuda": this machine has no usable CUDA card; set device = "cpu" or "auto"')
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if name == "mps" and not torch.backends.mps.is_available():
        raise SeqloomError('device = "mps": only Macs with Apple silicon have it; set device = "cpu" or "auto"')
    return torch.device(name)


def choose_precision(precision: Precision, device: torch.device) -> torch.dtype:
    """bf16 by itself only on CUDA cards that have it: on a CPU results would depend on the processor."""
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_bf16 else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[object]:
    """Weights stay fp32; products run in bf16 where that was chosen."""
    return nullcontext() if precision == torch.float32 else torch.autocast(device.type, precision)
