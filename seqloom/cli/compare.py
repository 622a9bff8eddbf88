"""`seqloom compare`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note


@click.command()
@options.runs
@options.pictures
@click.option("--by", help="The measure to rank by; by default the one that the runs were selected by.")
def compare(runs: tuple[Path, ...], out: tuple[Path, ...], by: str | None) -> None:
    """Compare runs: what differs in their recipes, their results and learning curves.

    RUNS are run folders; those that differ only in their seed count as one.
    """
    from seqloom.analysis.compare import compare

    pictures = options.picture_paths(out)
    found = compare(list(runs), by)
    print(found)
    for path in pictures:
        found.save(path)
        note(f"The picture is {path}.")
