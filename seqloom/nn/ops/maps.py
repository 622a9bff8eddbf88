"""LSTMs whose states lie side by side in a map."""

import torch
from torch import Tensor


def updated(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell states.  (B, 4 D, ...), (B, D, ...)"""
    enter, keep, leave, new = gates.chunk(4, dim=1)
    cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell
