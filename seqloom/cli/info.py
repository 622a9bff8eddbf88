"""`seqloom info`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from seqloom.cli import options


@click.command()
@click.argument("name", metavar="RUN|RECIPE")
@options.task
@options.data
@options.settings
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.trust
def info(name: str, task: str, data: tuple[Path, ...], settings: tuple[str, ...], as_json: bool, trust: bool) -> None:
    """Print how large a run or a recipe is and what it costs: parameters, memory, FLOPs, speed.

    A run is measured on its training data, a recipe on --data, or without it on random examples. FLOPs are those of
    matrix products, an addition and a multiplication each.
    """
    from seqloom.analysis.info import info

    found = info(name, options.paths(data), list(settings), trust=trust, task=task)
    print(json.dumps(found.json(), indent=2) if as_json else found)
