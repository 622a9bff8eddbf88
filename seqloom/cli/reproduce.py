"""`seqloom reproduce`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options


@click.command()
@click.argument("name", required=False)
@click.option("--out", type=options.FILE, default=Path("."), help="Where runs and results are written.")
@click.option("--only", multiple=True, metavar="VARIANT", help="Just this variant; may be given several times.")
@options.settings
def reproduce(name: str | None, out: Path, only: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Train a published result again and write results/NAME.json: gate, measured, time. Without NAME, list them."""
    from seqloom.studies.reproduce import list_results, reproduce_result

    if name is None:
        list_results()
    else:
        reproduce_result(name, out, list(settings), only)
