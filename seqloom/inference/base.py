"""What people can do with any system, trained or exported. There is no torch here."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from seqloom.config.multi_task import choose_task
from seqloom.contracts import Task
from seqloom.data.lines import Data
from seqloom.inference.candidates import best_predictions, candidates
from seqloom.inference.chat import Chat
from seqloom.inference.evaluation import evaluate, read_examples
from seqloom.inference.find import Prediction
from seqloom.inference.system import System
from seqloom.types import Example


class BasePredictor:
    """A system as people hold it: each method is a function of the system. Of several, `for_task` takes one."""

    def __init__(self, systems: System | Mapping[str, System]):
        self.systems = {"": systems} if isinstance(systems, System) else dict(systems)

    @property
    def system(self) -> System:
        return self.systems[choose_task(self.systems, "", str(next(iter(self.systems.values())).path))]

    @system.setter
    def system(self, system: System) -> None:
        self.systems = {"": system}

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of its tasks, if there are several."""
        return tuple(name for name in self.systems if name)

    def for_task(self, name: str) -> Self:
        """One of several tasks: what it returns predicts, evaluates, explains as any model does."""
        chosen = copy.copy(self)
        chosen.systems = {"": self.systems[choose_task(self.systems, name, "this model")]}
        return chosen

    @property
    def task(self) -> Task:
        return self.system.task

    @property
    def recipe(self) -> dict[str, Any]:
        return self.system.recipe

    @property
    def path(self) -> Path | None:
        return self.system.path

    @property
    def max_characters(self) -> int:
        """The longest source that is read, at every door; may be set."""
        return self.system.max_characters

    @max_characters.setter
    def max_characters(self, characters: int) -> None:
        self.system = self.system.with_limit(characters)

    def predict(self, sources: Sequence[Any], **options: Any) -> list[Any]:
        """The best output of each source. Options are those of `candidates`."""
        return [found.text for found in best_predictions(self.system, sources, **options)]

    def candidates(self, sources: Sequence[Any], **options: Any) -> list[list[Prediction]]:
        """The n_best outputs of each source, best first, with scores; see `seqloom.inference.candidates`."""
        return candidates(self.system, sources, **options)

    def chat(self, *, context: int | None = None, **options: Any) -> Chat:
        """A conversation, which remembers its turns: `say` a text and get the reply. Options: see `Chat`."""
        return Chat(self.system, context=context, **options)

    def evaluate(self, data: Data, **options: Any) -> dict[str, float]:
        """The task's metrics on whatever `fit` takes; the perplexity of a language model.

        `columns` and `header` are for a table that is laid out otherwise than the training data was.
        """
        return evaluate(self.system, data, **options)

    def examples(self, data: Data, **options: Any) -> Iterator[Example]:
        """The examples of files or tables, read as the run's training data was. Options: those of `read_examples`."""
        return read_examples(self.system, data, **options)
