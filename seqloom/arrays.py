"""One code for arrays of numpy and of torch; numpy arrays do not import torch.

NumPy 2 and torch share most names: `xp = namespace(array)` is one of the two modules, and `xp.where`, `xp.concat`,
`xp.full(..., device=array.device)` or `array.sum(1)` mean the same in both. Here is what they spell differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # a torch.Tensor or a numpy.ndarray
NEVER = float("-inf")  # the log-probability of what cannot happen
BLOCK = 64  # top-k of long rows first compares the maxima of blocks of this size,
MANY = 2048  # from this length on


def namespace(array: Array) -> Any:
    """The module of this array: numpy or torch."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    import torch

    return torch


def like(array: Array, values: Any) -> Array:
    """Values as an array of the same kind and on the same device."""
    return namespace(array).asarray(values, device=array.device)


def cast(array: Array, other: Array) -> Array:
    """An array in the data type of another."""
    return array.astype(other.dtype) if isinstance(array, np.ndarray) else array.to(other.dtype)


def as_numpy(array: Array) -> np.ndarray:
    """An array or a list of numbers in numpy; bfloat16, which numpy does not have, becomes float32."""
    if isinstance(array, (np.ndarray, list)):
        return np.asarray(array)
    array = array.detach().cpu()
    return array.float().numpy() if str(array.dtype) == "torch.bfloat16" else array.numpy()


def as_tensor(array: Array, device: Any) -> Array:
    """An array as a tensor on a device."""
    import torch

    tensor = torch.from_numpy(array) if isinstance(array, np.ndarray) else array
    return tensor.to(device, non_blocking=True)


def take_rows(value: Any, rows: Array) -> Any:
    """The given rows, in that order, of an array or of an object with its own `index_select`."""
    return value[rows] if isinstance(value, np.ndarray) else value.index_select(0, rows)


def maybe_any(mask: Array) -> bool:
    """Whether any is true; always True on an accelerator, which the question would stall."""
    return str(mask.device) != "cpu" or bool(mask.any())


def log_softmax(logits: Array) -> Array:
    """(..., V) -> (..., V)"""
    if not isinstance(logits, np.ndarray):
        return logits.log_softmax(-1)
    with np.errstate(invalid="ignore"):  # -inf everywhere: NaN, as in torch
        shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def descending(values: Array) -> tuple[Array, Array]:
    """Each row sorted, the largest first, of equals the first first, and the places.  (rows, n) -> twice (rows, n)"""
    if not isinstance(values, np.ndarray):
        return values.sort(dim=1, descending=True, stable=True)
    places = np.argsort(-values, 1, kind="stable")
    return values[np.arange(len(values))[:, None], places], places


def topk(values: Array, count: int) -> tuple[Array, Array]:
    """The largest of each row, best first, and their places.  (rows, n) -> twice (rows, count)

    Long rows are divided into blocks: only the blocks with the largest maxima matter, and maxima are cheap.
    """
    rows, size = values.shape
    blocks = size // BLOCK
    if size < MANY or blocks < 4 * count:
        return _topk(values, count)
    xp, whole = namespace(values), blocks * BLOCK
    _, chosen = _topk(xp.amax(values[:, :whole].reshape(rows, BLOCK, blocks), 1), count)  # (rows, count)
    members = blocks * xp.arange(BLOCK, device=values.device)
    rest = xp.arange(whole, size, device=values.device)
    places = xp.concat([(chosen[:, :, None] + members).reshape(rows, -1), xp.broadcast_to(rest, (rows, len(rest)))], 1)
    each = xp.arange(rows, device=values.device)[:, None]
    best, inside = _topk(values[each, places], count)
    return best, places[each, inside]


def _topk(values: Array, count: int) -> tuple[Array, Array]:
    if not isinstance(values, np.ndarray):
        if count == 1:
            best, places = values.max(dim=1, keepdim=True)
            return best, places
        return values.topk(count, dim=1)
    each = np.arange(len(values))[:, None]
    if count == 1:
        places = values.argmax(1)[:, None]
        return values[each, places], places
    first = values.shape[1] - count
    places = np.argpartition(values, first, 1)[:, first:]  # in no order
    places = places[each, np.argsort(values[each, places], 1)[:, ::-1]]
    return values[each, places], places


def generator(array: Array, seed: int | None) -> Any:
    """A random generator for arrays of this kind. The same seed gives different numbers in numpy and torch."""
    if isinstance(array, np.ndarray):
        return np.random.default_rng(seed)
    import torch

    return None if seed is None else torch.Generator(device=array.device).manual_seed(seed)


def draw(probabilities: Array, generator: Any) -> Array:
    """Sample one place per row; a ValueError if the rows are no probabilities.  (rows, n) -> (rows,)"""
    if not isinstance(probabilities, np.ndarray):
        try:
            return probabilities.multinomial(1, generator=generator)[:, 0]
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    bounds = probabilities.cumsum(1, dtype=np.float64)
    if not (np.isfinite(bounds[:, -1]) & (bounds[:, -1] > 0)).all():
        raise ValueError("probabilities are not finite, or all are 0")
    point = generator.random((len(bounds), 1)) * bounds[:, -1:]  # always below the last bound
    return (bounds <= point).sum(1)
