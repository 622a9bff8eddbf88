"""`seqloom train`."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import one_line


class Resumable(click.Command):
    """--resume is a flag that also takes one value, after an equals sign: what follows it may be the recipe."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--resume-auto" if each == "--resume=auto" else each for each in args])


@click.command(cls=Resumable)
@click.argument("recipe", required=False)
@options.data
@options.columns
@click.option("--valid", type=options.FILE, multiple=True, help="Validation pairs; without them some are held out.")
@options.out
@options.settings
@click.option("--minutes", type=float, help="A limit for the whole command; the training is laid out over it.")
@click.option("--as-written", is_flag=True, help="Take the recipe to the letter: do not fit it to the data.")
@click.option("--dry-run", is_flag=True, help="Stop before the first update: show the choice and the forecast.")
@click.option("--resume", is_flag=True, help="Continue the run in --out; --resume=auto: start it if there is none.")
@click.option("--resume-auto", is_flag=True, hidden=True)
@click.option("--device", help="cpu, cuda, mps or auto.")
@click.option("--init", type=options.FILE, help="Start from the weights of a trained run.")
@options.skip_bad
@options.trust
def train(
    recipe: str | None,
    data: tuple[Path, ...],
    columns: list[str | int] | None,
    header: bool | None,
    valid: tuple[Path, ...],
    out: Path | None,
    settings: tuple[str, ...],
    minutes: float | None,
    as_written: bool,
    dry_run: bool,
    resume: bool,
    resume_auto: bool,
    device: str | None,
    init: Path | None,
    skip_bad: bool,
    trust: bool,
) -> None:
    """Train a model on pairs.

    RECIPE is a packaged recipe or a TOML file; without one, a recipe is chosen that suits the data.
    """
    from seqloom.data.layout import settings_of

    if out is None:
        name = Path(recipe).stem if recipe else data[0].name.split(".")[0] if data else "run"
        out = Path("runs") / name
    changes = list(settings)
    for key, value in (("train.device", device), ("init", init)):
        if value is not None:
            changes.append(f"{key}={json.dumps(str(value))}")
    if skip_bad:
        changes.append("data.skip_bad=true")
    changes += settings_of(**options.layout(data, columns, header))
    given: dict[str, Any] = {"valid": options.paths(valid), "settings": changes, "trust": trust}
    given |= {"minutes": minutes, "as_written": as_written, "resume": "auto" if resume_auto else resume}
    from seqloom.train.interruption import Terminated, sigterm_interrupts

    try:
        with sigterm_interrupts():
            from seqloom.train import processes
            from seqloom.train.display import Display
            from seqloom.train.fit import fit
            from seqloom.train.prepare import prepare_training

            if dry_run:
                prepare_training(options.paths(data), recipe, out=out, **given, display=Display())
                note("Nothing was trained (--dry-run).")
                return
            model = fit(options.paths(data), recipe, out=out, **given)
    except KeyboardInterrupt as stop:  # before the first update, or a second time
        note(what_is_left(out))
        raise click.exceptions.Exit(
            exit_code(signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
        ) from None
    summary = model.summary
    interrupted = summary is not None and summary.stopped == "interrupted"
    if processes.is_lead() and not interrupted:
        note_diagnosis(out)
        note(f"The run is in {out}. Try: {next_command(model)} {out}")
    processes.end()
    if summary is not None and interrupted:
        note(f"Interrupted and saved. Continue with --resume: seqloom train --resume --out {out}")
        raise click.exceptions.Exit(exit_code(summary.signal))


def next_command(model: Any) -> str:
    """What to do with a trained run, but for its name."""
    if model.tasks:
        return f"echo ... | seqloom predict --task {model.tasks[0]}"
    if model.task.reads_itself:
        return "echo '... [MASK] ...' | seqloom fill"
    reads = model.task.source is not None
    if suffix := model.task.target.suffix:
        return f"seqloom generate {'--source ... ' * reads}--out new{suffix}"
    return "echo ... | seqloom predict" if reads else "seqloom generate"


def exit_code(number: int) -> int:
    """Of a command that a signal has ended, as shells count: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + number


def note_diagnosis(out: Path) -> None:
    """What the curves say; a diagnosis that fails must not fail the training."""
    from seqloom.analysis.diagnosis.diagnose import short_diagnosis

    try:
        for line in short_diagnosis(out):
            note(line)
    except Exception as error:
        note(f"No diagnosis of the curves: {one_line(error)}")


def what_is_left(out: Path) -> str:
    """What a training leaves that was stopped at once: no run, one without a checkpoint, or its newest checkpoint."""
    if not (out / "format.json").exists():
        return "Interrupted before the first update; no run was written."
    from seqloom.storage.run import Run

    again = f"Continue with --resume: seqloom train --resume --out {out}"
    if Run.open(out).newest() is None:
        return f"Interrupted before the first update; the run has no checkpoint yet. {again}"
    return f"Interrupted; the newest checkpoint is kept, updates after it are lost. {again}"
