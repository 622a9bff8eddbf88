"""Pairs: a codec for each side, and metrics. Without a source, the examples of a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from seqloom import metrics
from seqloom.contracts import Codec, Constraint, Task
from seqloom.data import batching
from seqloom.data.codecs.copying import Copying
from seqloom.data.codecs.places import FIRST, Places
from seqloom.data.codecs.text import Text
from seqloom.data.codecs.tree import FIRST as FIRST_LABEL
from seqloom.data.codecs.tree import Tree
from seqloom.data.codecs.words import Words
from seqloom.data.special_tokens import BOS, EOS, PAD
from seqloom.data.split import as_bytes
from seqloom.search.constraints.bag import Bag
from seqloom.search.constraints.places import PlaceRule
from seqloom.search.constraints.ring import Ring
from seqloom.search.constraints.tour import Tour
from seqloom.search.constraints.tree import WellFormed
from seqloom.search.constraints.triangles import Triangles
from seqloom.types import Batch, Encoded, Example, Padded

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

RULES: dict[str, type[PlaceRule]] = {"tour": Tour, "ring": Ring, "triangles": Triangles}
STARTS = {"bos": BOS, "eos": EOS}


class Pairs(Task):
    """`joint` is one vocabulary for both sides. With `group_references` all targets of a source are correct.

    With `bag` an output is a permutation of its source: the same tokens, equally often. With `copy` words outside the
    vocabulary may be copied from the source. `valid` is what places of a source must be: each once ("order"), a
    closed "tour" of all, a closed "ring", or "triangles"; with `valid = "tree"` an output is one tree over exactly the
    words of its source. `start` is the token that a decoder reads first: BOS, or EOS
    as in Sutskever, Vinyals & Le 2014, figure 1. `curriculum` is how many tokens a target may have in each of the first
    epochs (0: any number); these have as many batches as any other (Bengio, Louradour, Collobert & Weston 2009).
    """

    bos, eos = BOS, EOS
    targets_may_be_files: ClassVar[bool] = False

    def __init__(
        self,
        *,
        target: Codec,
        source: Codec | None = None,
        joint: bool = False,
        metrics: tuple[str, ...] = (),
        group_references: bool = False,
        bag: bool = False,
        copy: bool = False,
        valid: Literal["", "order", "tour", "ring", "triangles", "tree"] = "",
        start: Literal["bos", "eos"] = "bos",
        curriculum: tuple[int, ...] = (),
    ):
        if any(longest < 0 for longest in curriculum):
            raise ValueError(f"curriculum = {list(curriculum)}: expected the longest targets of the first epochs")
        if target.names_files and not self.targets_may_be_files:
            kind = type(target).__name__.lower()
            raise ValueError(f'target.type = "{kind}": {kind} can be a source, not a target')
        if joint and source is None:
            raise ValueError("joint = true needs a source to join with")
        if bag and not joint:
            raise ValueError("bag = true makes outputs of the tokens of their source: it needs joint = true")
        if source is None and metrics:
            raise ValueError("metrics compare predictions with references, which a language model does not have")
        if isinstance(target, Places):
            if source is None or joint:
                raise ValueError('target.type = "places" chooses from a source of another kind: set source, not joint')
            target.source = source
            if rule := RULES.get(valid):
                target.rule, target.least = rule.rule, rule.least
        elif Tree in (type(target), type(source)) or valid == "tree":
            check_trees(source, target, joint, valid)
        elif valid:
            raise ValueError(f'valid = "{valid}" is for places of a source: set target.type = "places"')
        if copy:
            if source is None or bag:
                raise ValueError("copy = true copies words from a source: set source, and bag = false")
            ours = Copying(codec=target)
            theirs = ours if joint else Copying(codec=source)
            if (ours.units, ours.lowercase) != (theirs.units, theirs.lowercase):
                raise ValueError("copy = true compares words: set units and lowercase alike on both sides")
            target, source = ours, theirs
        self.target = target
        self.source = target if joint else source
        self.joint, self.metrics, self.group_references = joint, metrics, group_references
        self.bag = self.writes_unknown = bag
        self.valid, self.constrained = valid, bag or bool(valid)
        self.bos, self.curriculum = STARTS[start], curriculum

    @classmethod
    def first_input(cls, table: Mapping[str, Any]) -> int:
        return STARTS[table.get("start", "bos")]

    def batch(
        self, sources: Sequence[Encoded] | None, targets: Sequence[np.ndarray], rows: Iterable[int] = ()
    ) -> Batch:
        """Encoded examples, padded."""
        inputs, shifted = zip(*(inputs_and_targets(target, self.bos) for target in targets))
        return Batch(
            source=None if sources is None else Padded.stack(sources, PAD),
            inputs=Padded.stack(inputs, PAD),
            targets=Padded.stack(shifted, PAD),
            examples=tuple(rows),
        ).to("cpu")

    def constraints(self, source: Padded | None) -> list[Constraint]:
        if source is None:
            return []
        if self.valid == "order":
            rows, width = source.values.shape[:2]
            return [Bag(Padded(np.tile(np.arange(width) + FIRST, (rows, 1)), source.lengths), EOS)]
        if isinstance(self.target, Tree) and self.valid:
            return [WellFormed(source, FIRST_LABEL, *self.target.counts, EOS)]
        if self.valid:
            return [RULES[self.valid](source, FIRST, EOS)]
        return [Bag(source, EOS)] if self.bag else []

    def plan(self, lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> batching.Plan:
        if epoch < len(self.curriculum) and self.curriculum[epoch]:
            return batching.plan_short(lengths, self.curriculum[epoch], tokens, seed, epoch)
        return batching.plan(lengths, tokens, seed, epoch)

    def in_order(self, lengths: np.ndarray, tokens: int) -> batching.Plan:
        return batching.in_order(lengths, tokens)

    def collate(self, corpus: Corpus, rows: np.ndarray) -> Batch:
        """The batch of some rows of a corpus."""
        encoded = [corpus[int(row)] for row in rows]
        sources = [source for source, _ in encoded if source is not None]
        return self.batch(sources if self.source else None, [target for _, target in encoded], map(int, rows))

    def check(self, example: Example) -> None:
        """Refuse places and words that the source does not have, and sources that a metric cannot read."""
        if isinstance(self.target, Places) and self.source is not None:
            count = self.source.elements(example.source)
            if count is not None:
                self.target.check(example.target, example.source, count)
        if isinstance(self.target, Tree):
            self.target.check(example.target, example.source)
        for check in self.checks:
            check(example.source)

    @cached_property
    def checks(self) -> list[Callable[[Any], Any]]:
        """What the metrics require of a source."""
        modules = [metrics.find(name) for name in self.metrics]
        return [module.check_source for module in modules if hasattr(module, "check_source")]

    def references(self, examples: Iterable[Example]) -> tuple[list[Any], list[list[Any]]]:
        """Sources to predict from, and for each its references, as the codec would write them."""
        normal = getattr(self.target, "normal", lambda value: value)
        pairs = [(example.source, normal(example.target)) for example in examples]
        if not self.group_references:
            return [source for source, _ in pairs], [[target] for _, target in pairs]
        grouped: dict[Any, tuple[Any, list[Any]]] = {}
        for source, target in pairs:
            grouped.setdefault(self.identity(source), (source, []))[1].append(target)
        return [source for source, _ in grouped.values()], [targets for _, targets in grouped.values()]

    def identity(self, source: Any) -> Any:
        """What equal sources have in common: a text or a path itself, else the bytes of the content."""
        if self.source is None or isinstance(source, str):
            return source
        return as_bytes(self.source.content(source))

    def measure(
        self, predictions: list[Any], references: list[list[Any]], sources: Sequence[Any] = ()
    ) -> dict[str, float]:
        if isinstance(self.target, Copying):  # references are normalised, copies are spelled as in their source
            predictions, sources = ([*map(self.target.normal, each)] for each in (predictions, sources))
        results: dict[str, float] = {}
        for name in self.metrics:
            metric = getattr(metrics.find(name), name)
            extra = {"sources": sources} if "sources" in signature(metric).parameters else {}
            results.update(metric(predictions, references, **extra))
        return results

    def higher_is_better(self, name: str) -> bool:
        if name not in self.metrics:
            return super().higher_is_better(name)
        return metrics.higher_is_better(name)


def check_trees(source: Codec | None, target: Codec, joint: bool, valid: str) -> None:
    """Trees are targets over the words of a text; to count them, a constraint needs one token for each."""
    if isinstance(source, Tree):
        raise ValueError('source.type = "tree": a tree can be a target, not a source')
    if not isinstance(target, Tree):
        raise ValueError('valid = "tree" is for trees: set target.type = "tree"')
    if joint or not isinstance(source, (Text, Words)):
        raise ValueError('target.type = "tree" stands over the words of a text: set source.type = "text", not joint')
    if valid not in ("", "tree"):
        raise ValueError(f'valid = "{valid}" is for places of a source, not for trees: set valid = "tree"')
    if valid and isinstance(source, Text) and source.units != "word":
        raise ValueError(
            f'valid = "tree" counts words, not units = "{source.units}": set source.units = "word", or valid = ""'
        )


def inputs_and_targets(target: np.ndarray, start: int = BOS) -> tuple[np.ndarray, np.ndarray]:
    """Teacher forcing: a start before the inputs, EOS after the targets. Vectors begin with zeros and have no end."""
    if target.dtype.kind == "f":
        return np.concat([np.zeros_like(target[:1]), target[:-1]]), target
    return np.append(start, target), np.append(target, EOS)
