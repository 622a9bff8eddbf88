"""A vocabulary and a pointer as one distribution: p(w) = g p_vocabulary(w) + sum of what points at places of w.

In logarithms, so that a token nobody points at keeps its digits; what is scattered is one place a token, not all.
"""

import torch
from torch import Tensor
from torch.nn import functional


def add_pointer_probs(log_probs: Tensor, shares: Tensor, symbols: Tensor, chosen: Tensor) -> Tensor:
    """Log-probabilities (rows, U, V), each token's share of the pointer added. The others are (rows, U, T).

    Shares stand at places: what all places of the same token have together. Of these one is chosen to add it.
    """
    beyond = log_probs.shape[-1]
    places = torch.where(chosen, symbols, beyond)
    tiny = torch.finfo(shares.dtype).tiny  # a share may be too small for a number; its logarithm is one
    before = log_probs.gather(-1, places.clamp(max=beyond - 1))
    after = torch.logaddexp(before, shares.clamp(min=tiny).log())
    room = functional.pad(log_probs, (0, 1))  # a token for all that is not chosen, taken away again
    return room.scatter(-1, places, after)[..., :beyond]
