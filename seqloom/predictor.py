"""A trained model as people hold it: predict, score, generate, evaluate, stream, explain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from seqloom.config.multi_task import name_tasks
from seqloom.errors import SeqloomError
from seqloom.inference import combined
from seqloom.inference.base import BasePredictor
from seqloom.inference.generation import generate
from seqloom.inference.loading import load_system, load_systems
from seqloom.inference.scoring import score
from seqloom.inference.stream import Stream
from seqloom.inference.system import System
from seqloom.nn.combine.ensemble import Average
from seqloom.nn.model import Model
from seqloom.nn.multi_task import MultiTask
from seqloom.storage.history import Summary
from seqloom.storage.run import Run
from seqloom.storage.weights import weights_of

if TYPE_CHECKING:
    from seqloom.explain.record import Explanation
    from seqloom.inference.completion import Completion
    from seqloom.inference.filling import Filled


class Predictor(BasePredictor):
    """A trained system. `seqloom.load` and `seqloom.fit` return one."""

    def __init__(self, systems: System | Mapping[str, System], summary: Summary | None = None):
        super().__init__(systems)
        for system in self.systems.values():
            system.model.freeze()
        self.summary = summary  # of the training that has just made it

    @classmethod
    def load(
        cls,
        path: Path | str | Sequence[Path | str],
        device: str = "auto",
        trust: bool = False,
        average: Average = "arithmetic",
        task: str = "",
    ) -> Predictor:
        """From a run folder; several are an ensemble. Code of a run's own (`module:Class`) is only run under trust.

        A run of several tasks is asked for one of them, here or by `for_task`.
        """
        paths = [path] if isinstance(path, (str, Path)) else path
        if not task and len(paths) == 1:
            return cls(load_systems(paths[0], device, trust))
        return cls(combined.ensemble([load_system(each, device, trust, task) for each in paths], average))

    @classmethod
    def ensemble(cls, members: Sequence[Predictor], average: Average = "arithmetic") -> Predictor:
        """Several as one: each token is chosen by the mean of their probabilities."""
        return members[0] if len(members) == 1 else cls(combined.ensemble([each.system for each in members], average))

    @property
    def model(self) -> Model:
        return self.system.model

    @property
    def device(self) -> torch.device:
        return self.model.device

    def save(self, path: Path | str) -> None:
        """Copy the run folder, without what only training needs."""
        if (folder := next(iter(self.systems.values())).path) is None:
            raise SeqloomError("this model has no run folder to copy")
        run = Run.open(folder)
        if bool(self.tasks) != ("tasks" in name_tasks(run.recipe())):
            raise SeqloomError(f"this is one task of {run.path}: save the whole run, seqloom.load(...).save(...)")
        models = {name: system.model for name, system in self.systems.items()}
        run.copy(path, weights_of(models[""] if "" in models else MultiTask(models)))

    def stream(self, **options: Any) -> Stream:
        """A source as it arrives: `feed` it, and read what is certain. Options: wait, lm, lm_weight, a search's."""
        return Stream(self.system, **options)

    def generate(self, count: int = 1, *, source: Any = None, prefix: Any = None, **options: Any) -> list[Any]:
        """Texts, pictures or series, from nothing or continued from a prefix; for a source, where there is one."""
        return generate(self.system, count, source=source, prefix=prefix, **options)

    def complete(self, picture: Any, **options: Any) -> tuple[Any, list[Completion]]:
        """What is kept of a picture or film; then it and completions. Options: keep, count, source, a sampling's."""
        from seqloom.inference.completion import complete_picture

        return complete_picture(self.system, picture, **options)

    def embed(self, sources: Sequence[Any], **options: Any) -> np.ndarray:
        """A vector for each source, (N, D). Options: pooling ("mean", "first", "max"), normalise, truncate."""
        from seqloom.inference.embedding import embed

        return embed(self.system, sources, **options)

    def similar(self, query: Any, texts: Sequence[Any], **options: Any) -> list[tuple[float, int]]:
        """The texts nearest to a query: cosines and numbers. Options: n_best, pooling, truncate."""
        from seqloom.inference.embedding import similar

        return similar(self.system, query, texts, **options)

    def fill(self, text: str, **options: Any) -> Filled:
        """What may stand in the places of "[MASK]" in a text. Option: n_best."""
        from seqloom.inference.filling import fill

        return fill(self.system, text, **options)

    def score(self, pairs: Iterable[Any]) -> list[float]:
        """The log-probability of each target given its source; a language model takes the targets alone."""
        return score(self.system, pairs)

    def explain(self, source: Any = None, *, n_best: int = 5, **options: Any) -> Explanation:
        """Why the model answers as it does: alignment, attention, runners-up, n-best list, beam tree."""
        from seqloom.explain.explain import explain  # imports pydantic

        return explain(self.system, source, n_best=n_best, **options)
