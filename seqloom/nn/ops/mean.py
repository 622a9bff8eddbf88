"""The mean of an encoder's states: a summary that recurrent decoders start from."""

from torch import Tensor

from seqloom.types import Padded


def masked_mean(states: Padded) -> Tensor:
    """The mean over real positions; zeros for a row without any.  (B, T, D) -> (B, D)"""
    total = states.values.masked_fill(~states.mask[:, :, None], 0).sum(1)
    return total / states.lengths[:, None].clamp(min=1).to(total.dtype)


def update_mean(mean: Tensor, count: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """The running mean of `count` states after T more, and the new count.  (B, D), (B,), (B, T, D) -> (B, D), (B,)"""
    after = count + states.shape[1]
    change = (states - mean[:, None]).sum(1) / after[:, None].clamp(min=1).to(mean.dtype)
    return mean + change, after
