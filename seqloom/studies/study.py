"""A study: one run, or several that differ in one thing, measured in the same way and checked against gates."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.errors import SeqloomError

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

Measures = dict[str, float]
Measured = Mapping[str, Measures]  # by the name of a variant


@dataclass(frozen=True)
class Splits:
    """The files of training, validation and test examples; without validation files, training holds some out."""

    train: list[str]
    valid: list[str] | None
    test: list[str]


@dataclass(frozen=True)
class Gate:
    """A bound on one figure of a study, and where there is one, the stricter bound that was hoped for."""

    text: str
    value: Callable[[Measured], float]
    sign: str  # ">=" or "<="
    bound: float
    stricter: float | None = None

    def record(self, measured: Measured) -> dict[str, Any]:
        value = self.value(measured)
        gate, met = self.compare(value, self.bound)
        found = {"text": self.text, "gate": gate, "value": float(f"{value:.6g}"), "met": met}
        if self.stricter is not None:
            found["stricter"], found["stricter_met"] = self.compare(value, self.stricter)
        return found

    def compare(self, value: float, bound: float) -> tuple[str, bool]:
        """A bound as text, and whether a value keeps it."""
        return f"{self.sign} {bound:g}", value >= bound if self.sign == ">=" else value <= bound

    def bounds(self) -> str:
        """As text: ">= 95", or ">= 95 (>= 98)" with a stricter one."""
        stricter = "" if self.stricter is None else f" ({self.sign} {self.stricter:g})"
        return f"{self.sign} {self.bound:g}{stricter}"


def at_least(bound: float, metric: str, variant: str = "", stricter: float | None = None) -> Gate:
    return Gate(f"{variant} {metric}".strip(), lambda measured: measured[variant][metric], ">=", bound, stricter)


def at_most(bound: float, metric: str, variant: str = "", stricter: float | None = None) -> Gate:
    return Gate(f"{variant} {metric}".strip(), lambda measured: measured[variant][metric], "<=", bound, stricter)


def lead(bound: float, metric: str, better: str, worse: str, stricter: float | None = None) -> Gate:
    """One variant is better than another by at least so much."""
    text = f"{metric}, {better} minus {worse}"
    return Gate(text, lambda measured: measured[better][metric] - measured[worse][metric], ">=", bound, stricter)


@dataclass(frozen=True)
class Variant:
    """How one run of a study differs: other settings, another recipe, or other data."""

    settings: tuple[str, ...] = ()
    recipe: str | None = None
    data: Callable[[Path], Splits] | None = None
    init: str = ""  # the variant whose run of the same seed it starts from; "STUDY/": the run of another study
    minutes: float | None = None  # what a newcomer types: no recipe, and so many minutes


@dataclass(frozen=True)
class Study:
    """One entry of the results page: what is trained and measured, and the gates."""

    about: str
    recipe: str
    data: Callable[[Path], Splits]  # takes the folder for files that it makes
    gates: tuple[Gate, ...] = ()
    published: str = "none"  # figures of others, with the source
    variants: Mapping[str, Variant] = field(default_factory=lambda: {"": Variant()})
    measure: Callable[[Predictor, Splits], Measures] | None = None  # None: the metrics of the task, on the test set
    runs: str = ""  # the study whose runs it measures, instead of training its own
    seeds: tuple[int, ...] = ()  # one run per seed; (): the seed of the recipe
    picture: Callable[[dict[str, Any]], Any] | None = None  # draws a record; None: the learning curves
    shown: Callable[[Predictor, Splits], dict[str, Any]] | None = None  # what else the picture needs of each run
    choose: str = ""  # the measure by which the lowest run of several seeds counts; "": the mean of all counts

    def reproduce(self, name: str, out: Path, settings: list[str]) -> dict[str, Any]:
        """Train what is not trained yet, measure everything, and return the record."""
        import torch

        rows = [self.row(name, label, out, settings, seed) for seed in self.seeds or (None,) for label in self.variants]
        rows.sort(key=lambda row: list(self.variants).index(row["variant"]))
        if self.choose:
            rows = [{**row, "chosen": row is lowest(rows, row["variant"], self.choose)} for row in rows]
        return {
            "name": name,
            "about": self.about,
            "command": " ".join(["seqloom reproduce", name, *(f"--set {each}" for each in settings)]),
            "rows": rows,
            "gates": self.judge(rows),
            "published": self.published,
            "signature": bleu_signature() if any("bleu" in row["measured"] for row in rows) else "",
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        }

    def judge(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The gates, each with its figure and whether it is met."""
        counted = [row for row in rows if row.get("chosen", True)]
        measured = {label: means([row for row in counted if row["variant"] == label]) for label in self.variants}
        return [gate.record(measured) for gate in self.gates]

    def folder(self, name: str, label: str, out: Path, seed: int | None = None) -> Path:
        """The folder of one run."""
        folder = out / "runs" / (self.runs or name)
        folder = folder / label.replace(" ", "-") if label else folder
        return folder if seed is None else folder / f"seed-{seed}"

    def initial(self, name: str, init: str, out: Path, seed: int | None) -> Path:
        """The folder of the run that another starts from."""
        study, _, label = init.rpartition("/")
        folder = self.folder(study or name, label, out, seed)
        if study and not (folder / "format.json").exists():
            raise SeqloomError(
                f"{name} starts from the run of {study}, which is not there: first run seqloom reproduce {study}"
            )
        return folder

    def folders(self, name: str, out: Path) -> list[Path]:
        """The folders of all runs."""
        return [self.folder(name, label, out, seed) for label in self.variants for seed in self.seeds or (None,)]

    def row(self, name: str, label: str, out: Path, settings: list[str], seed: int | None = None) -> dict[str, Any]:
        """Train and measure one run."""
        from seqloom.storage.environment import stored_threads
        from seqloom.train.fit import fit

        variant = self.variants[label]
        folder = self.folder(name, label, out, seed)
        own = [*variant.settings, *([f"seed={seed}"] if seed is not None else [])]
        if variant.init:
            own.append(f"init={self.initial(name, variant.init, out, seed)}")
        data = (variant.data or self.data)(out / "runs" / "data")
        resume = (folder / "format.json").exists()
        model = fit(
            data.train,
            None if variant.minutes else variant.recipe or self.recipe,
            out=folder,
            valid=data.valid,
            settings=[*own, *settings],
            minutes=None if resume else variant.minutes,
            as_written=not variant.minutes,
            resume=resume,
        )
        if model.summary is None or model.summary.stopped == "interrupted":
            raise SeqloomError(f"{name} was interrupted and saved: run the same command to resume it")
        began = time.monotonic()
        measured = (self.measure or evaluate_test_set)(model, data)
        return {
            "variant": label,
            "settings": list(variant.settings),
            "seed": model.recipe["seed"],
            "parameters": sum(value.numel() for value in model.model.parameters()),
            "train_examples": model.summary.examples,
            "epochs": round(model.summary.epochs, 2),
            "steps": model.summary.steps,
            "train_minutes": round(model.summary.seconds / 60, 1),
            "threads": stored_threads(folder),
            "test_seconds": round(time.monotonic() - began, 1),
            "search": model.recipe["search"],
            "measured": {metric: float(f"{value:.6g}") for metric, value in measured.items()},
            **({"shown": self.shown(model, data)} if self.shown else {}),
        }


def lowest(rows: list[dict[str, Any]], label: str, measure: str) -> dict[str, Any]:
    """The run of a variant with the lowest value of a measure."""
    return min((row for row in rows if row["variant"] == label), key=lambda row: row["measured"][measure])


def means(rows: list[dict[str, Any]]) -> Measures:
    """The mean of each measure over seeds."""
    return {metric: sum(row["measured"][metric] for row in rows) / len(rows) for metric in rows[0]["measured"]}


def evaluate_test_set(model: Predictor, data: Splits, **search: Any) -> Measures:
    """The metrics of the task; for a language model its perplexity."""
    return model.evaluate(test_examples(model, data), **search)


def test_examples(model: Predictor, data: Splits) -> list[Any]:
    return list(model.examples(data.test))


def bleu_signature() -> str:
    from seqloom.metrics import bleu

    return bleu.signature(["a"], [["a"]])
