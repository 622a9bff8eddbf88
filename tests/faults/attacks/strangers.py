"""Run and exported folders in which a stranger has changed one file: every use of one is fine or one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import torch

import seqloom
from seqloom.analysis.compare import compare
from seqloom.analysis.diagnosis.diagnose import diagnose
from seqloom.storage.run import Run
from seqloom.storage.weights import average
from seqloom.train.display import Display
from tests.faults.calls import problem_of
from tests.faults.command import seqloom as command
from tests.faults.damage import damage
from tests.faults.folders import EXPORTS, RUNS, copy_of, data, environment

SHORT, LONG = 60, 20_000
OWN_PROCESS = 200  # one of so many is made in a process of its own, whose memory is measured


def attack(number: int, folder: Path) -> str | None:
    chance = Random(number)
    names = RUNS[:1] if number < SHORT else (*RUNS, *EXPORTS)
    name = chance.choice(names)
    it = copy_of(name, folder)
    file = chance.choice(sorted(path for path in it.rglob("*") if path.is_file()))
    how = damage(file, chance)
    uses = EXPORTED if name in EXPORTS else OF_TEXT if name == "text" else OF_PAIRS
    use = chance.choice(list(uses))
    if number % OWN_PROCESS == OWN_PROCESS - 1:
        problem = command("predict", it, folder=folder, stdin=b"123\n").problem()
        return problem and f"{name}, {how}, predict: {problem}"

    def call() -> None:
        with environment():
            uses[use](it, folder)

    try:
        problem = problem_of(call)
    finally:
        torch.set_num_threads(1)
    return problem and f"{name}, {how}, {use}: {problem}"


def predict(it: Path, folder: Path) -> None:
    seqloom.load(it, device="cpu").predict(["123", "7"])


def evaluate(it: Path, folder: Path) -> None:
    model = seqloom.load(it, device="cpu")
    model.evaluate(list(model.examples([str(data())]))[:4])


def evaluate_text(it: Path, folder: Path) -> None:
    model = seqloom.load(it, device="cpu")
    model.evaluate(list(model.examples([str(data("lines"))]))[:4])


def generate(it: Path, folder: Path) -> None:
    model = seqloom.load(it, device="cpu")
    assert isinstance(model, seqloom.Predictor)
    model.generate(1, maximum_length=5)


def compare_runs(it: Path, folder: Path) -> None:
    str(compare([it]))


def diagnose_run(it: Path, folder: Path) -> None:
    str(diagnose(it, examples=3, device="cpu"))


def average_run(it: Path, folder: Path) -> None:
    run = Run.open(it)
    run.copy(folder / "mean", average([each.path for each in run.checkpoints()] or [run.weights]))


def resume(it: Path, folder: Path) -> None:
    seqloom.fit(out=it, resume=True, settings={"train.steps": 5}, display=Display.quiet())


Use = Callable[[Path, Path], None]
EXPORTED: dict[str, Use] = {"predict": predict, "evaluate": evaluate}
ANY_RUN: dict[str, Use] = {
    "compare": compare_runs,
    "diagnose": diagnose_run,
    "average": average_run,
    "resume": resume,
}
OF_PAIRS: dict[str, Use] = {**EXPORTED, **ANY_RUN}
OF_TEXT: dict[str, Use] = {"generate": generate, "evaluate": evaluate_text, **ANY_RUN}
