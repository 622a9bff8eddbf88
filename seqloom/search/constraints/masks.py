"""Masks over the vocabulary, which constraints share."""

from seqloom.arrays import NEVER, Array, namespace


def forbid_token(scores: Array, token: int, rows: Array) -> Array:
    """The scores, -inf at one token of some rows; overwritten in place.  (rows, V), (rows,)"""
    scores[:, token] = namespace(scores).where(rows, NEVER, scores[:, token])
    return scores


def token_mask(tokens: Array, chosen: Array, vocabulary: int) -> Array:
    """True at the chosen tokens of each row, without asking the device which.  twice (rows, n) -> (rows, V)"""
    xp, device = namespace(tokens), tokens.device
    mask = xp.zeros((len(tokens), vocabulary + 1), dtype=xp.bool, device=device)
    mask[xp.arange(len(tokens), device=device)[:, None], xp.where(chosen, tokens, vocabulary)] = True
    return mask[:, :vocabulary]
