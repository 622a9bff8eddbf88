"""How evenly a sum is shared out. Shazeer et al. 2017, section 4 and eq. 7."""

import math

from torch import Tensor


def squared_variation(sums: Tensor) -> Tensor:
    """CV^2, the squared coefficient of variation: variance / mean^2; 0 if all are equal, n - 1 if one has all.  (n,)"""
    mean = sums.mean()
    variance: Tensor = (sums - mean).square().mean()
    return variance / mean.square().clamp_min(1e-10)


def evenness(sums: Tensor) -> Tensor:
    """The entropy of the shares over log n: 1 if all are equal, 0 if one has all.  (n,)"""
    shares = sums / sums.sum().clamp_min(1e-10)
    entropy: Tensor = -(shares * shares.clamp_min(1e-30).log()).sum()
    return entropy / math.log(len(sums))
