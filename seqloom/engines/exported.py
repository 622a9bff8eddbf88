"""An exported model as people hold it. There is no torch here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seqloom.config.build import build_part
from seqloom.contracts import Task
from seqloom.data.readers import Tally
from seqloom.engines.engine import Engine, Manifest, load_engine
from seqloom.errors import SeqloomError
from seqloom.inference.candidates import best_predictions, candidates
from seqloom.inference.evaluation import evaluate, read_examples
from seqloom.inference.find import Prediction
from seqloom.inference.system import System
from seqloom.types import Example


class Exported:
    """Predicts and evaluates like the run it was made from. `measured` says how well, where that was measured."""

    def __init__(self, engine: Engine, task: Task, manifest: Manifest, path: Path, trust: bool = False):
        self.system = System(engine, task, manifest.recipe, path, trust, exported=True)
        self.measured = manifest.measured

    @property
    def task(self) -> Task:
        return self.system.task

    @property
    def recipe(self) -> dict[str, Any]:
        return self.system.recipe

    @property
    def path(self) -> Path | None:
        return self.system.path

    @classmethod
    def load(
        cls, path: Path | str | Sequence[Path | str], device: str = "auto", trust: bool = False, threads: int = 1
    ) -> Exported:
        """From a folder that `seqloom export` wrote. A codec of one's own (`module:Class`) needs your trust."""
        given = [path] if isinstance(path, (str, Path)) else path
        if len(given) != 1:
            raise SeqloomError("an exported model makes no ensemble: give it alone, or give runs")
        path = Path(given[0])
        if device not in ("auto", "cpu"):
            raise SeqloomError(f'device = "{device}": an exported model runs on the processor; leave it out')
        manifest = Manifest.read(path)
        try:
            table = {"type": "pairs", **manifest.recipe["task"]}
            task: Task = build_part("tasks", table, f"{path / 'engine.json'}: recipe.task", trust)
            manifest.recipe["search"]["type"], manifest.recipe["data"]["max_characters"]
        except (KeyError, TypeError):
            raise SeqloomError(f"{path / 'engine.json'}: its recipe is not whole; export the run again") from None
        return cls(load_engine(path, manifest, threads), task.load(path), manifest, path, trust)

    def predict(self, sources: Sequence[Any], **options: Any) -> list[Any]:
        """The best output of each source. Options are those of `candidates`."""
        return [found.text for found in best_predictions(self.system, sources, **options)]

    def candidates(self, sources: Sequence[Any], **options: Any) -> list[list[Prediction]]:
        """The n_best outputs of each source, best first, with scores; see `seqloom.inference.candidates`."""
        return candidates(self.system, sources, **options)

    def evaluate(self, examples: Iterable[Any] | str | Path, **options: Any) -> dict[str, float]:
        """The task's metrics on a file, examples or pairs."""
        return evaluate(self.system, examples, **options)

    def examples(
        self, paths: Sequence[str], *, skip_bad: bool = False, tally: Tally | None = None
    ) -> Iterator[Example]:
        """The examples of files, read as the run's training data was."""
        return read_examples(self.system, paths, skip_bad=skip_bad, tally=tally)
