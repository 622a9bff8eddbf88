"""A baseline: a rule that answers each source, measured as trained models are. Nothing is trained, no search is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from seqloom.config.build import build_task
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.lines import Data
from seqloom.inference.base import BasePredictor
from seqloom.inference.evaluation import gather
from seqloom.inference.system import System
from seqloom.types import Example

Rule = Callable[[Sequence[Example]], Callable[[Any], Any]]  # training examples -> source -> output


class Baseline(BasePredictor):
    """A rule in the place of a model. The task, whose codecs are not fitted, is that of a recipe."""

    def __init__(self, rule: Rule, recipe: str, settings: Sequence[str], training: Data):
        full = complete(override(read_recipe(recipe), list(settings)), recipe)
        super().__init__(System(None, build_task(full), full))
        self.answer = rule(list(self.examples(training)))

    def predict(self, sources: Sequence[Any], **options: Any) -> list[Any]:
        """The answer to each source, as the target's codec would write it. Options of a search change nothing."""
        normal = getattr(self.task.target, "normal", lambda value: value)
        return [normal(self.answer(source)) for source in sources]

    def evaluate(self, data: Data, **options: Any) -> dict[str, float]:
        sources, references = self.task.references(gather(self.system, data))
        return self.task.measure(self.predict(sources), references, sources)


def first_words(number: int) -> Rule:
    """The first words of the source, marks between them kept but not counted: a baseline of summaries (DUC 2004; Rush,
    Chopra & Weston 2015, table 1, "Prefix")."""

    def answer(source: str) -> str:
        words = source.split()
        counted = accumulate(any(map(str.isalnum, word)) for word in words)
        return " ".join(word for word, place in zip(words, counted) if place <= number)

    return lambda training: answer
