"""The precision to compute in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def choose_precision(precision: str, device: torch.device) -> torch.dtype:
    """ "auto" is bf16 on CUDA cards that have it, else fp32: on a CPU, results would depend on the processor."""
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_bf16 else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[object]:
    """Weights stay in fp32; matrix products run in bf16 if that is the precision."""
    return nullcontext() if precision == torch.float32 else torch.autocast(device.type, precision)
