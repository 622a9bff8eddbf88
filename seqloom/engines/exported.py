"""An exported model as people hold it. There is no torch here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqloom.compute.processors import check_threads
from seqloom.config.assemble import Section
from seqloom.config.build import build_part
from seqloom.config.complete import fill
from seqloom.config.discovery import Parameter
from seqloom.config.settings import Data
from seqloom.contracts import Task
from seqloom.engines.engine import AGAIN, Engine, Manifest, load_engine
from seqloom.errors import SeqloomError, show
from seqloom.inference.base import BasePredictor
from seqloom.inference.system import System


class Exported(BasePredictor):
    """Predicts and evaluates like the run it was made from. `measured` says how well, where that was measured."""

    def __init__(self, engine: Engine, task: Task, manifest: Manifest, path: Path, trust: bool = False):
        super().__init__(System(engine, task, manifest.recipe, path, trust, exported=True))
        self.measured = manifest.measured

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
            raise SeqloomError(f"device = {show(device)}: an exported model runs on the processor; leave it out")
        check_threads(threads)
        manifest = Manifest.read(path)
        where, recipe = path / "engine.json", manifest.recipe
        tables = [recipe.get(name) for name in ("task", "search", "data")]
        if not all(isinstance(table, dict) for table in tables) or "type" not in recipe["search"]:
            raise SeqloomError(f"{where}: its recipe is not whole; {AGAIN}")
        recipe["data"] = fill(Parameter(Section(Data)), recipe["data"], f"{where}: recipe.data", trust)
        task: Task = build_part("tasks", {"type": "pairs", **recipe["task"]}, f"{where}: recipe.task", trust)
        engine = load_engine(path, manifest, threads)
        engine.tokens = task.load(path).target.vocabulary
        return cls(engine, task, manifest, path, trust)
