"""What is wrong with a run, with figures, and what to try next.

The curves are read from metrics.jsonl. The outputs are those of the run's own search for some examples: of a file, or
of the run's own validation data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seqloom.analysis import plot
from seqloom.analysis.diagnosis import curves as losses
from seqloom.analysis.diagnosis import learning_rate as rate
from seqloom.analysis.diagnosis import outputs as lengths
from seqloom.analysis.diagnosis import unknown_words as unknown
from seqloom.analysis.diagnosis import where
from seqloom.analysis.diagnosis.answers import Answer, answer, choose_examples, training_words
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.confusions import confused_labels, confusions
from seqloom.analysis.diagnosis.finding import Finding, by_severity
from seqloom.analysis.diagnosis.next_steps import next_steps
from seqloom.analysis.diagnosis.picture import diagnosis_figure
from seqloom.config.multi_task import choose_task, name_tasks, tasks_of
from seqloom.data.layout import Layout
from seqloom.data.lines import paths_of
from seqloom.errors import SeqloomError, printable
from seqloom.inference.evaluation import gather
from seqloom.inference.loading import load_system
from seqloom.inference.system import System
from seqloom.storage.history import History
from seqloom.tasks.series import Series
from seqloom.types import Example

MOST = 500  # examples that are decoded: enough for shares within two or three per cent


@dataclass(frozen=True)
class Diagnosis:
    """Prints as text, saves as a picture; `to_json` for programs."""

    run: Path
    curves: losses.Curves
    findings: list[Finding]  # problems first
    next_steps: list[str]  # commands
    figures: dict[str, Any]
    facts: list[str] = field(default_factory=list)  # sentences that say what was measured
    notes: list[str] = field(default_factory=list)  # what could not be measured, and why
    by_length: where.Errors | None = None

    def __str__(self) -> str:
        found = [str(finding) for finding in self.findings] or ["Nothing stands out."]
        steps = ["What to try next:", *(f"  {command}" for command in self.next_steps)]
        lines = [f"{self.run}: {summary(self.curves)}", *self.facts, *self.notes, "", *found, "", *steps]
        return "\n".join(printable(line) for text in lines for line in text.split("\n"))

    def to_json(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        steps: dict[str, Any] = {"next": self.next_steps, "notes": self.notes}
        return {"run": str(self.run), "figures": finite(self.figures), "findings": findings, **steps}

    def figure(self) -> Any:
        return diagnosis_figure(self.curves, self.by_length)

    def save(self, path: Path | str) -> None:
        """Curves, and errors by length, as PNG or SVG."""
        plot.save(self.figure(), path)


def diagnose(
    run: Any,
    data: Any = None,
    *,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    examples: int = MOST,
    device: str = "auto",
    trust: bool = False,
    task: str = "",
    **options: Any,
) -> Diagnosis:
    """What is wrong with a run, given by its folder, as a predictor or as a system, and what to try next.

    `data` are files or pairs; without them, the run's own validation data. `columns` and `header` are for files that
    are laid out otherwise than those; `task` is one of several. Options are those of `predict`.
    """
    system = None if isinstance(run, (str, Path)) else getattr(run, "system", run)
    path = Path(run) if system is None else system.path
    if path is None:
        raise SeqloomError("this model has no run folder to diagnose: give the folder of a run")
    history = History.read(path)
    recipes = tasks_of(name_tasks(history.recipe))
    recipe = recipes[choose_task(recipes, task, str(path))] if system is None else system.recipe
    commands = Commands(path, recipe, paths_of(data), Layout().changed(columns, header))
    curves, findings, figures = diagnose_curves(history, commands)
    notes: list[str] = []
    if system is None and history.parameters is None:
        notes.append("The run has no weights to predict with: only its curves are diagnosed.")
    else:
        system = system or load_system(path, device, trust, task)
    found = Found(findings, figures, [], notes)
    if system is not None:
        given = None if data is None else gather(system, data, columns=columns, header=header)
        add_outputs(found, system, given, examples, commands, options)
    ranked = by_severity(found.findings)
    steps = next_steps(ranked, commands)
    return Diagnosis(path, curves, ranked, steps, found.figures, found.facts, found.notes, found.by_length)


@dataclass
class Found:
    """What is found on the way."""

    findings: list[Finding | None]
    figures: dict[str, Any]
    facts: list[str]
    notes: list[str]
    by_length: where.Errors | None = None


def diagnose_curves(history: History, commands: Commands) -> tuple[losses.Curves, list[Finding | None], dict[str, Any]]:
    """The findings that need no data."""
    curves, rates = losses.Curves.read(history), rate.Rates.read(history)
    too_fast = rate.too_high(curves, rates, commands)
    slow = rate.never_reached(rates, commands), losses.under_trained(curves, commands)
    findings = [*((too_fast,) if too_fast else slow), losses.over_trained(curves, commands)]  # advice that agrees
    return curves, findings, {"curves": curves.figures(), "learning_rate": rates.figures()}


def add_outputs(
    found: Found, system: System, data: list[Example] | None, most: int, commands: Commands, options: dict[str, Any]
) -> None:
    """The findings that need examples."""
    try:
        examples = choose_examples(system, data, most)
    except SeqloomError as error:
        if data is not None:
            raise
        found.notes.append(f"Only the curves are diagnosed: {error}.")
        return
    add_unknown_words(found, system, examples, commands)
    if isinstance(system.task, Series):
        found.notes.append("The run draws series, which have no right outputs: see what `seqloom evaluate` measures.")
        return
    if system.task.source is None or system.task.target.is_vectors or system.task.reads_itself:
        kind = "model of vectors" if system.task.target.is_vectors else "language model"
        found.notes.append(f"The run is a {kind}: it has no outputs to compare token by token.")
        return
    answers = answer(system, examples, **options)
    measured = lengths.Outputs.measure(answers)
    found.facts.insert(0, str(measured))
    found.figures["outputs"] = measured.figures()
    if not system.model.is_head:
        checks = (lengths.empty_outputs, lengths.wrong_lengths, lengths.repeated_outputs)
        found.findings += [check(measured, commands) for check in checks]
    found.findings.append(lengths.same_outputs(measured, commands))
    add_places(found, system, examples, answers, commands)
    if labels := confusions(answers):
        found.figures["confusions"] = labels.figures()
        found.findings.append(confused_labels(labels))


def add_unknown_words(found: Found, system: System, examples: Sequence[Example], commands: Commands) -> None:
    words = unknown.UnknownWords.count(system, examples)
    has_attention = "attention" in system.recipe["decoder"]
    found.figures["unknown_words"] = words.figures()
    found.facts += [str(words)] if str(words) else []
    found.findings += [
        unknown.unknown_targets(words, commands, has_attention),
        unknown.unknown_sources(words, commands),
    ]


def add_places(
    found: Found, system: System, examples: Sequence[Example], answers: Sequence[Answer], commands: Commands
) -> None:
    """Where errors concentrate."""
    found.by_length = where.by_length(answers)
    found.figures["errors_by_length"] = found.by_length.figures()
    found.findings.append(where.errors_by_length(found.by_length, commands))
    try:
        frequent = where.by_frequency(answers, training_words(system, examples))
    except SeqloomError as error:
        found.notes.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
        return
    found.figures["errors_by_frequency"] = frequent.figures()
    units = getattr(system.task.target, "units", "")
    found.findings.append(where.errors_by_frequency(frequent, commands, units))


def short_diagnosis(path: Path | str) -> list[str]:
    """At most three lines for the end of a training, from its curves alone."""
    history = History.read(path)
    _, findings, _ = diagnose_curves(history, Commands(history.path, history.recipe))
    found = by_severity(findings)[:2]
    lines = [f"{finding.sentence} {finding.advice}" for finding in found] or ["Nothing stands out in the curves."]
    return [*lines, f"More, and what to try next: seqloom diagnose {path}"]


def summary(curves: losses.Curves) -> str:
    best, first = curves.valid_at_best(), curves.start
    text = f"{curves.updates:,} updates"
    if best is not None:
        text += f", best validation at step {curves.best:,} (loss {best:.3g}"
        text += ")" if first is None else f", before the first update {first:.3g})"
    return text


def finite(value: Any) -> Any:
    """The value with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
