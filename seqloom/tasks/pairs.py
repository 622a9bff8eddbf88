"""The task of pairs: a codec for each side, the metrics that count; without a source, a language model's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from seqloom.contracts import Codec
from seqloom.data.symbols import BOS, EOS, PAD
from seqloom.errors import SeqloomError
from seqloom.types import Batch, Example, Padded

if TYPE_CHECKING:
    import numpy as np

    from seqloom.data.corpus import Corpus


class Pairs:
    """`joint` is one vocabulary for both sides. With `group_references` all targets of a source count as right."""

    def __init__(
        self,
        *,
        target: Codec,
        source: Codec | None = None,
        joint: bool = False,
        metrics: tuple[str, ...] = (),
        group_references: bool = False,
    ):
        if joint and source is None:
            raise ValueError("joint = true needs a source to join with")
        if source is None and metrics:
            raise ValueError("metrics compare predictions with references, which a language model has not")
        self.target = target
        self.source = target if joint else source
        self.joint, self.metrics, self.group_references = joint, metrics, group_references

    def batch(self, sources: Sequence[Tensor] | None, targets: Sequence[Tensor], rows: Iterable[int] = ()) -> Batch:
        """Encoded examples, padded, as an objective sees them."""
        begin, end = torch.tensor([BOS]), torch.tensor([EOS])
        return Batch(
            source=None if sources is None else Padded.stack(sources, PAD),
            inputs=Padded.stack([torch.cat([begin, target]) for target in targets], PAD),
            targets=Padded.stack([torch.cat([target, end]) for target in targets], PAD),
            examples=tuple(rows),
        )

    def collate(self, corpus: Corpus, rows: np.ndarray) -> Batch:
        """The batch of some rows of a corpus."""
        encoded = [corpus[int(row)] for row in rows]
        sources = [source for source, _ in encoded if source is not None]
        return self.batch(sources if self.source else None, [target for _, target in encoded], map(int, rows))

    def references(self, examples: Iterable[Example]) -> tuple[list[Any], list[list[Any]]]:
        """Sources to predict from, and for each its references, spelled as the codec spells."""
        normal = getattr(self.target, "normal", lambda value: value)
        pairs = [(example.source, normal(example.target)) for example in examples]
        if not self.group_references:
            return [source for source, _ in pairs], [[target] for _, target in pairs]
        grouped: dict[Any, list[Any]] = {}
        for source, target in pairs:
            grouped.setdefault(source, []).append(target)
        return list(grouped), list(grouped.values())

    def measure(self, predictions: list[Any], references: list[list[Any]]) -> dict[str, float]:
        """Every metric of the task."""
        results: dict[str, float] = {}
        for name in self.metrics:
            results.update(getattr(import_module(f"seqloom.metrics.{name}"), name)(predictions, references))
        return results

    def higher_is_better(self, name: str) -> bool:
        """Whether a metric is something to have much of."""
        if name not in self.metrics:
            known = ", ".join(("loss", "perplexity", *self.metrics))
            raise SeqloomError(f'train.select_by = "{name}": not measured by this task; expected one of {known}')
        return bool(import_module(f"seqloom.metrics.{name}").HIGHER_IS_BETTER)

    def save(self, folder: Path) -> None:
        """Write what the codecs learned."""
        self.target.save(folder, "target")
        if self.source is not None and not self.joint:
            self.source.save(folder, "source")

    def load(self, folder: Path) -> Pairs:
        """Read it back."""
        self.target.load(folder, "target")
        if self.source is not None and not self.joint:
            self.source.load(folder, "source")
        return self
