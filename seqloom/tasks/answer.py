"""Answers: a target is one token or vector, predicted by a head, without an end token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from seqloom.contracts import Codec
from seqloom.data import batching
from seqloom.data.codecs.numbers import Numbers
from seqloom.data.special_tokens import BOS, PAD
from seqloom.errors import UnreadableError, shown
from seqloom.tasks.pairs import Pairs
from seqloom.types import Batch, Encoded, Example, Padded


class Answer(Pairs):
    """Pairs whose targets a head predicts. `joint` is one vocabulary for both sides.

    `rows` is the number of examples per training batch, whatever their lengths; 0: as many as `train.tokens` allows.
    """

    bos, eos = BOS, None  # type: ignore[assignment]  # has no end

    def __init__(
        self,
        *,
        target: Codec,
        source: Codec,
        joint: bool = False,
        metrics: tuple[str, ...] = (),
        group_references: bool = False,
        rows: int = 0,
    ):
        if rows < 0:
            raise ValueError(f"rows = {rows} must be 0 or more")
        super().__init__(target=target, source=source, joint=joint, metrics=metrics, group_references=group_references)
        self.rows = rows

    def check(self, example: Example) -> None:
        super().check(example)
        count = 1 if isinstance(self.target, Numbers) else self.target.elements(example.target)
        if count not in (None, 1):
            unit = "words" if " " in str(example.target) else "tokens"
            raise UnreadableError(f"the answer {shown(example.target)} has {count} {unit}; expected one")

    def batch(
        self, sources: Sequence[Encoded] | None, targets: Sequence[np.ndarray], rows: Iterable[int] = ()
    ) -> Batch:
        return Batch(
            source=None if sources is None else Padded.stack(sources, PAD),
            inputs=Padded.stack([np.append(BOS, target[:-1]) for target in targets], PAD),
            targets=Padded.stack(targets, PAD),
            examples=tuple(rows),
        ).to("cpu")

    def plan(self, lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> batching.Plan:
        if self.rows:  # each counts as one token
            lengths, tokens = np.tile([[1, 0]], (len(lengths), 1)), self.rows
        return batching.plan(lengths, tokens, seed, epoch)
