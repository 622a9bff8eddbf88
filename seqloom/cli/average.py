"""`seqloom average`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError


@click.command()
@options.run
@click.option("--out", type=options.FILE, required=True, help="The run folder to write.")
@click.option("--count", type=click.IntRange(min=2), default=5, help="How many of the newest checkpoints.")
def average(run: Path, out: Path, count: int) -> None:
    """Average the newest checkpoints of a run into another run."""
    from seqloom.storage.run import Run
    from seqloom.storage.weights import average
    from seqloom.train.resume import kept_checkpoints

    ours = Run.open(run)
    found = kept_checkpoints(ours)[-count:]
    if len(found) < 2:
        count_found = f"{run} has {len(found)} checkpoint{'s' * (len(found) != 1)}"
        raise SeqloomError(f"{count_found}: averaging takes two or more (train.keep = N keeps them)")
    Run.refuse_existing(out)
    ours.copy(out, average([each.verified("model.safetensors") for each in found]))
    note(f"The mean of steps {', '.join(str(each.step) for each in found)} is in {out}.")
