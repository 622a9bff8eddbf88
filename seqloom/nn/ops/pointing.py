"""A vocabulary and a pointer as one distribution: p(w) = g p_vocabulary(w) + the pointer's mass on occurrences of w.

In log space, so that small vocabulary probabilities keep their precision.
"""

import torch
from torch import Tensor
from torch.nn import functional


def add_pointer_probs(log_probs: Tensor, shares: Tensor, tokens: Tensor, chosen: Tensor) -> Tensor:
    """Log-probabilities (rows, U, V) with the pointer's probabilities added. The other arguments are (rows, U, T).

    `shares` holds at each position the pointer's total probability of the token there; `chosen` marks one position per
    token, so that it is added once.
    """
    size = log_probs.shape[-1]
    index = torch.where(chosen, tokens, size)
    tiny = torch.finfo(shares.dtype).tiny  # a share may underflow to 0, which has no logarithm
    before = log_probs.gather(-1, index.clamp(max=size - 1))
    after = torch.logaddexp(before, shares.clamp(min=tiny).log())
    padded = functional.pad(log_probs, (0, 1))  # one more entry takes all that is not chosen, and is cut off again
    return padded.scatter(-1, index, after)[..., :size]
