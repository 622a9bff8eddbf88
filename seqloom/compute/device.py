"""The device to compute on."""

from __future__ import annotations

import os

import torch

from seqloom.errors import SeqloomError, nearest, show


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name. "auto" takes a CUDA card where there is one, else the CPU.

    mps only when asked for: small recurrent models are slower there than on the CPU beside it.
    """
    if name not in ("auto", "cpu", "cuda", "mps"):
        raise SeqloomError(f"device = {show(name)} is unknown{nearest(name, ('auto', 'cpu', 'cuda', 'mps'))}")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            raise SeqloomError('device = "cuda": this machine has no usable CUDA card; set device = "cpu" or "auto"')
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if name == "mps" and not torch.backends.mps.is_available():
        raise SeqloomError('device = "mps": only Macs with Apple silicon have it; set device = "cpu" or "auto"')
    return torch.device(name)
