"""The last tokens of each hypothesis, which constraints on phrases keep."""

from seqloom.arrays import Array, like, namespace


def no_tokens(limit: Array, width: int) -> Array:
    """So many places before the first token, filled with -1.  (rows, width)"""
    return namespace(limit).full((len(limit), width), -1, dtype=limit.dtype, device=limit.device)


def append(history: Array, token: Array) -> Array:
    """(rows, t), (rows,) -> (rows, t + 1)"""
    return namespace(token).concat([history, token[:, None]], 1)


def ends_with(history: Array, phrase: list[int]) -> Array:
    """Whether the last tokens of each row are the phrase.  (rows, t) -> (rows,)"""
    return (history[:, history.shape[1] - len(phrase) :] == like(history, phrase)).all(1)
