"""Coverage: how well a whole output attended its source. Wu et al. 2016, eq. 14."""

from collections.abc import Sequence

import numpy as np

from seqloom.arrays import like, namespace
from seqloom.contracts import Stepper
from seqloom.types import Hypothesis, Memory, Padded


def coverages(decoder: Stepper, memory: Memory, entry: int, hypotheses: Sequence[Hypothesis]) -> list[float]:
    """sum_i log(min(sum_j a_ij, 1)) of each hypothesis of one source: a source token that nothing attends costs."""
    if not hypotheses:
        return []
    inputs = Padded.stack([np.array([decoder.bos, *each.tokens]) for each in hypotheses]).like(memory.lengths)
    source = memory.select(like(memory.lengths, [entry]))
    maps = decoder(source, inputs, attention=True).attention
    if "source" not in maps:
        raise ValueError("coverage_penalty needs a decoder that attends the source")
    weights = maps["source"].mean((1, 2)) * inputs.mask[:, :, None]  # (n, U, T)
    xp = namespace(weights)
    attended = weights.sum(1)[:, : int(source.lengths[0])].clip(xp.finfo(weights.dtype).tiny, 1)  # (n, T)
    return xp.log(attended).sum(1).tolist()
