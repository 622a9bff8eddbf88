"""A study: one run, or several that differ in one thing, measured in the same way and checked against gates."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.errors import SeqloomError
from seqloom.studies.gates import Gate, Measures

if TYPE_CHECKING:
    from seqloom.predictor import Predictor
    from seqloom.studies.baseline import Rule

Row = dict[str, Any]  # of a record: one run and its measures


@dataclass(frozen=True)
class Splits:
    """The files of training, validation and test examples; without validation files, training holds some out."""

    train: list[str]
    valid: list[str] | None
    test: list[str]
    tasks: Mapping[str, Splits] = field(default_factory=dict, kw_only=True)  # of each task, where there are several

    def given(self, split: str) -> Any:
        """What `fit` takes: the files of a split, by task where there are several."""
        return {name: getattr(one, split) for name, one in self.tasks.items()} or getattr(self, split)


@dataclass(frozen=True)
class Variant:
    """How one run of a study differs: other settings, another recipe, or other data. Or what is measured without one:
    an ensemble of other runs, or a baseline."""

    settings: tuple[str, ...] = ()
    recipe: str | None = None
    data: Callable[[Path], Splits] | None = None
    init: str = ""  # the variant whose run of the same seed it starts from; "STUDY/": the run of another study
    minutes: float | None = None  # its recipe fitted to so many minutes; without one, what a newcomer types: no recipe
    ensemble: tuple[str, ...] = ()  # the variants whose runs of the same seed it is made of; nothing is trained
    baseline: Rule | None = None  # a rule that answers each source, with the metrics of the recipe; nothing is trained


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

    def reproduce(
        self,
        name: str,
        out: Path,
        settings: list[str],
        only: Collection[str] = (),
        before: Iterable[Row] = (),
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Train what is not trained yet, measure everything, and return the record.

        With `only`, just these variants. Rows that were measured `before` stay until they are measured again, and
        `keep` is given a record after each row, so that none is lost when a later one is interrupted.
        """
        rows = {(row["variant"], row["seed"] if self.seeds else None): row for row in before}
        rows = {key: row for key, row in rows.items() if key[0] in self.variants}
        for seed in self.seeds or (None,):
            for label in self.variants:
                if not only or label in only:
                    rows[label, seed] = self.row(name, label, out, settings, seed)
                    if keep is not None:
                        keep(self.record(name, settings, [*rows.values()]))
        return self.record(name, settings, [*rows.values()])

    def record(self, name: str, settings: list[str], rows: list[Row]) -> dict[str, Any]:
        """What results/NAME.json holds."""
        import torch

        found = {row["variant"] for row in rows}
        rows = sorted(rows, key=lambda row: list(self.variants).index(row["variant"]))
        if self.choose:
            chosen = {label: lowest(rows, label, self.choose) for label in found}
            rows = [{**row, "chosen": row is chosen[row["variant"]]} for row in rows]
        missing = [label for label in self.variants if label not in found]
        return {
            "name": name,
            "about": self.about,
            "command": command(name, settings),
            "rows": rows,
            **({"missing": missing} if missing else {}),
            "gates": self.judge(rows),
            "published": self.published,
            "signature": bleu_signature() if any("bleu" in row["measured"] for row in rows) else "",
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        }

    def judge(self, rows: list[Row]) -> list[dict[str, Any]]:
        """The gates, each with its figure and whether it is met; not those of variants that are not measured yet."""
        measured = {
            label: means(found)
            for label in self.variants
            if (found := [row for row in rows if row["variant"] == label and row.get("chosen", True)])
        }
        judged = []
        for gate in self.gates:
            try:
                judged.append(gate.record(measured))
            except KeyError:
                if len(measured) == len(self.variants):
                    raise
        return judged

    def folder(self, name: str, label: str, out: Path, seed: int | None = None) -> Path:
        """The folder of one run."""
        folder = out / "runs" / (self.runs or name)
        folder = folder / label.replace(" ", "-") if label else folder
        return folder if seed is None else folder / f"seed-{seed}"

    def initial(self, name: str, init: str, out: Path, seed: int | None) -> Path:
        """The folder of the run that another starts from, or is made of."""
        study, _, label = init.rpartition("/")
        folder = self.folder(study or name, label, out, seed)
        if not (folder / "format.json").exists():
            what, only = (study, "") if study else (label, f' --only "{label}"')
            raise SeqloomError(
                f"{name} starts from the run of {what}, which is not there: first run "
                f"seqloom reproduce {study or name}{only}"
            )
        return folder

    def folders(self, name: str, out: Path) -> list[Path]:
        """The folders of all runs."""
        trained = [label for label, variant in self.variants.items() if not (variant.ensemble or variant.baseline)]
        return [self.folder(name, label, out, seed) for label in trained for seed in self.seeds or (None,)]

    def row(self, name: str, label: str, out: Path, settings: list[str], seed: int | None = None) -> Row:
        """Train and measure one run, or measure an ensemble or a baseline."""
        from seqloom.analysis.cost import training_flops
        from seqloom.predictor import Predictor
        from seqloom.studies.baseline import Baseline

        variant = self.variants[label]
        model: Any
        trained: Row
        data = (variant.data or self.data)(out / "runs" / "data")
        if variant.ensemble:
            folders = [self.initial(name, member, out, seed) for member in variant.ensemble]
            model = Predictor.load(folders, "cpu")
            flops = sum(map(training_flops, folders))
            trained = {"ensemble": list(variant.ensemble), "train_flops": float(f"{flops:.3g}")}
        elif variant.baseline:
            own = self.settings(name, label, out, settings, seed)
            model = Baseline(variant.baseline, variant.recipe or self.recipe, own, data.given("train"))
            trained = {"baseline": True}
        else:
            model = self.train(name, label, out, settings, data, seed)
            trained = training_row(model, self.folder(name, label, out, seed))
        systems = [*model.systems.values()]
        models = [system.model for system in systems if system.model is not None]  # a baseline has none
        weights = {id(value): value.numel() for each in models for value in each.parameters()}
        began = time.monotonic()
        measured = (self.measure or evaluate_test_set)(model, data)
        return {
            "variant": label,
            "settings": list(variant.settings),
            "seed": systems[0].recipe["seed"],
            "parameters": sum(weights.values()),
            **trained,
            "test_seconds": round(time.monotonic() - began, 1),
            "search": systems[0].recipe["search"],
            "measured": {metric: float(f"{value:.6g}") for metric, value in measured.items()},
            **({"shown": self.shown(model, data)} if self.shown else {}),
        }

    def settings(self, name: str, label: str, out: Path, settings: list[str], seed: int | None = None) -> list[str]:
        """What a variant changes in its recipe; the settings of the command line come last."""
        variant = self.variants[label]
        own = [*variant.settings, *([f"seed={seed}"] if seed is not None else [])]
        if variant.init:
            own.append(f"init={self.initial(name, variant.init, out, seed)}")
        return [*own, *settings]

    def train(
        self, name: str, label: str, out: Path, settings: list[str], data: Splits, seed: int | None = None
    ) -> Predictor:
        """Train one run, or go on with it; one that is complete stays as it is."""
        from seqloom.train.fit import fit

        variant, folder = self.variants[label], self.folder(name, label, out, seed)
        resume = (folder / "format.json").exists()
        newcomer = variant.minutes is not None and variant.recipe is None
        model = fit(
            data.given("train"),
            None if newcomer else variant.recipe or self.recipe,
            out=folder,
            valid=data.given("valid"),
            settings=self.settings(name, label, out, settings, seed),
            minutes=None if resume and newcomer else variant.minutes,
            as_written=variant.minutes is None,
            resume=resume,
        )
        if model.summary is None or model.summary.stopped == "interrupted":
            raise SeqloomError(f"{name} was interrupted and saved: run the same command to resume it")
        return model


def training_row(model: Predictor, folder: Path) -> Row:
    """What a record says of a training."""
    from seqloom.analysis.cost import training_flops
    from seqloom.storage.environment import stored_threads

    assert model.summary is not None
    return {
        "train_examples": model.summary.examples,
        "epochs": round(model.summary.epochs, 2),
        "steps": model.summary.steps,
        "train_minutes": round(model.summary.seconds / 60, 1),
        "train_flops": float(f"{training_flops(folder):.3g}"),
        "threads": stored_threads(folder),
    }


def command(name: str, settings: list[str]) -> str:
    """What a person types for a record."""
    return " ".join(["seqloom reproduce", name, *(f"--set {each}" for each in settings)])


def lowest(rows: list[Row], label: str, measure: str) -> Row:
    """The run of a variant with the lowest value of a measure."""
    return min((row for row in rows if row["variant"] == label), key=lambda row: row["measured"][measure])


def means(rows: list[Row]) -> Measures:
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
