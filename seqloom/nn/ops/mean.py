"""The mean of an encoder's states: a summary that recurrent decoders start from."""

from torch import Tensor

from seqloom.types import Padded


def masked_mean(states: Padded) -> Tensor:
    """Over the real positions, zeros where there are none.  (B, T, D) -> (B, D)"""
    total = states.values.masked_fill(~states.mask[:, :, None], 0).sum(1)
    return total / states.lengths[:, None].clamp(min=1).to(total.dtype)


def update_mean(mean: Tensor, count: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of so many states before and of some more, and how many these are.  (B, D), (B,), (B, T, D)"""
    after = count + states.shape[1]
    change = (states - mean[:, None]).sum(1) / after[:, None].clamp(min=1).to(mean.dtype)
    return mean + change, after
