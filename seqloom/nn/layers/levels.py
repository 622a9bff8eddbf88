"""The last layer of models of pixels and samples: a score for each level, and none for special tokens."""

import torch
from torch import Tensor, nn

from seqloom.data.special_tokens import SPECIAL


class Levels(nn.Module):
    """(..., size) -> (..., V), -inf where a token is special."""

    def __init__(self, size: int, vocabulary: int):
        super().__init__()
        self.linear = nn.Linear(size, vocabulary - len(SPECIAL))

    def forward(self, hidden: Tensor) -> Tensor:
        levels = self.linear(hidden)
        never = levels.new_full((*levels.shape[:-1], len(SPECIAL)), float("-inf"))
        return torch.cat([never, levels], dim=-1)
