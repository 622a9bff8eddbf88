"""The output layer of heads that choose labels or tags."""

import torch
from torch import nn

from seqloom.data.special_tokens import SPECIAL, UNK
from seqloom.nn.ops.linear import Projection


def projection_of_labels(output: nn.Linear, known: bool = False) -> Projection:
    """Logits, -inf for special tokens, which are no labels.

    The unknown token has a logit, so that a label that was never trained on has a finite loss; not with `known`.
    """
    bias = output.bias.clone()
    special = [token for token in range(len(SPECIAL)) if known or token != UNK]
    return Projection(output.weight, bias.index_fill(0, torch.tensor(special, device=bias.device), float("-inf")))
