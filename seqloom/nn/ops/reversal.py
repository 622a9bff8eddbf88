"""Reversed sequences."""

import torch
from torch import Tensor

from seqloom.types import Padded


def reverse_padded(inputs: Padded) -> Tensor:
    """Reverse each sequence within its own length; padding stays where it is.  (B, T, D)"""
    positions = torch.arange(inputs.values.shape[1], device=inputs.lengths.device)
    order = torch.where(inputs.mask, inputs.lengths[:, None] - 1 - positions, positions)  # (B, T)
    return inputs.values.gather(1, order[:, :, None].expand_as(inputs.values))
