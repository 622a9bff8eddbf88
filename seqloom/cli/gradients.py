"""`seqloom gradcheck` and `seqloom gradients`: whether gradients are right, and how far back they reach."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note


@click.command()
@click.argument("recipe")
@options.settings
@options.trust
def gradcheck(recipe: str, settings: tuple[str, ...], trust: bool) -> None:
    """Check every gradient of a recipe's model against finite differences.

    The model is made small first. The exit code is 1 if a gradient is wrong.
    """
    from seqloom.analysis.gradcheck import report
    from seqloom.analysis.small_model import make_small
    from seqloom.config.complete import complete
    from seqloom.config.recipes import override, read_recipe

    full = complete(override(read_recipe(recipe, trust), list(settings)), recipe, trust)
    checked = make_small(full, trust)
    if checked.changes:
        note(f"Made small: {', '.join(checked.changes)}.")
    if not report(checked, lambda line: print(line, flush=True)):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("names", metavar="RUN|RECIPE...", nargs=-1, required=True)
@options.pictures
@click.option("--length", type=click.IntRange(min=2), default=100, help="Steps to go back.")
@options.settings
@options.trust
def gradients(
    names: tuple[str, ...], out: tuple[Path, ...], length: int, settings: tuple[str, ...], trust: bool
) -> None:
    """Plot how far back a recurrent cell learns: the norm of dL/dh by the number of steps between."""
    from seqloom.analysis import plot
    from seqloom.analysis.gradients import flow_figure, flow_table, gradients

    pictures = options.picture_paths(out)
    found = gradients(list(names), list(settings), length=length, trust=trust)
    print(flow_table(found))
    for path in pictures:
        plot.save(flow_figure(found), path)
        note(f"The picture is {path}.")
