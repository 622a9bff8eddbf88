"""The outputs that a search finds: encode, search under constraints, decode. There is no torch here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqloom.contracts import Search
from seqloom.data.batching import in_order
from seqloom.data.codecs.copying import Copying
from seqloom.data.special_tokens import UNK
from seqloom.errors import SeqloomError
from seqloom.inference.constraints import build_constraints, check_places, encode_prefix
from seqloom.inference.system import System, build_search, encode_source, pieces
from seqloom.types import Hypothesis, Padded

TOKENS = 4096  # source tokens per batch, times beam size


@dataclass(frozen=True)
class Prediction:
    """One output and what the search found out about it."""

    text: Any
    score: float
    tokens: list[str]  # as people read them, without EOS
    log_probs: list[float]  # one per token, and one for EOS
    attention: list[list[float]] | None = None  # on request: target x source, mean over layers and heads
    times: list[int] | None = None  # per token: how many inputs had been read; None where all had been


def find(
    system: System,
    sources: Sequence[Any],
    *,
    attention: bool = False,
    details: bool = True,
    prefix: Any = None,
    banned: Sequence[Any] = (),
    required: Sequence[Any] = (),
    replace_unknown: bool = False,
    search: Search | None = None,
    **settings: Any,
) -> list[list[Prediction]]:
    """The outputs that the search finds for each source. Without details only the text is promised.

    With `replace_unknown`, UNK may be written and is replaced by the source word with the most attention. `settings`
    change those of the recipe's search.
    """
    search = search or build_search(system, **settings)
    copying = copying_codec(system) if replace_unknown else None
    begun = encode_prefix(system, prefix)
    encoded = [encode_source(system, source) for source in sources]
    if system.task.target.chooses == "places" and (required or begun is not None):
        check_places(system, begun, required, encoded)
    answers: list[list[Prediction]] = [[] for _ in sources]
    longest = [max(map(len, each)) for each in encoded]
    for rows in batches(longest, max(getattr(search, name, 1) for name in ("beam_size", "n_best"))):
        batch = [encoded[row] for row in rows]
        own = Padded.stack([first for first, *_ in batch])
        constraints = build_constraints(system, own, banned, required, replace_unknown)
        found = system.model.find(batch, search, begun, constraints, attention or replace_unknown, details)
        for row, hypotheses in zip(rows, found):
            if copying is not None:
                length = len(encoded[row][0])
                hypotheses = [with_copies(one, copying, length, attention) for one in hypotheses]
            answers[row] = [prediction(system, one, sources[row], details, copying) for one in hypotheses]
    return answers


def batches(lengths: Sequence[int], rows_each: int = 1) -> Iterator[list[int]]:
    """Row numbers of sources of like length."""
    columns = np.array([[length, 0] for length in lengths], dtype=np.int32).reshape(-1, 2)
    plan = in_order(columns, max(TOKENS // rows_each, 1))
    for number in range(len(plan)):
        yield [int(row) for row in plan[number]]


def prediction(
    system: System, hypothesis: Hypothesis, source: Any, details: bool = True, copying: Copying | None = None
) -> Prediction:
    """A hypothesis as people read it."""
    shown = pieces(copying or system.task.target, hypothesis.tokens, source) if details else []
    text = (copying or system.task).decode(hypothesis.tokens, source)
    return Prediction(text, hypothesis.score, shown, hypothesis.log_probs, hypothesis.attention, hypothesis.times)


# -- unknown words replaced by source words


def copying_codec(system: System) -> Copying:
    """A codec that writes words of the source in place of unknown ones."""
    target = system.task.target
    if target.chooses == "copies":
        raise SeqloomError("replace_unknown: this run copies words by itself; leave it out")
    try:
        ours, theirs = Copying(codec=target), Copying(codec=system.sources[0])
    except ValueError as error:
        raise SeqloomError(f"replace_unknown: {error}") from None
    if ours.units != theirs.units:
        both = f'"{theirs.units}" and "{ours.units}"'
        raise SeqloomError(f"replace_unknown: source and target have the units {both}; expected the same units")
    return ours


def with_copies(hypothesis: Hypothesis, copying: Copying, length: int, attention: bool) -> Hypothesis:
    """Each UNK as a copy of the source token with the most attention (Jean et al. 2015, section 3.3)."""
    weights = hypothesis.attention
    if weights is None:
        raise SeqloomError("replace_unknown: this run has no attention to its source; train with decoder.attention")
    if any(len(row) != length for row in weights):
        raise SeqloomError("replace_unknown: needs an encoder with one state per token; this run's merges several")
    tokens = [
        copying.vocabulary + int(np.argmax(row)) if token == UNK else token
        for token, row in zip(hypothesis.tokens, weights)
    ]
    return replace(hypothesis, tokens=tokens, attention=weights if attention else None)
