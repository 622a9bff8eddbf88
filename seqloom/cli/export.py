"""`seqloom export`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note


@click.command()
@options.run
@options.task
@click.option("--to", required=True, help="ctranslate2 for Transformers, onnx for recurrent decoders.")
@click.option("--out", type=options.FILE, help="The folder to write; by default RUN-ctranslate2 or RUN-onnx.")
@click.option("--int8", is_flag=True, help="8-bit weights; what that loses is measured.")
@options.data
@options.columns
@click.option("--allow", type=float, default=1.0, help="How much of the first metric --int8 may lose.")
@click.option("--force", is_flag=True, help="Export even if it loses more.")
@options.trust
def export(
    run: Path,
    task: str,
    to: str,
    out: Path | None,
    int8: bool,
    data: tuple[Path, ...],
    columns: list[str | int] | None,
    header: bool | None,
    allow: float,
    force: bool,
    trust: bool,
) -> None:
    """Export a run to a folder that predicts without torch and starts in half a second."""
    from seqloom.engines.export import export as write

    given, chosen = options.paths(data), options.layout(data, columns, header)
    chosen |= {"allow": allow, "force": force, "trust": trust, "note": note, "task": task}
    found = write(run, to, out, int8=int8, data=given, **chosen)
    note(f"The exported model is in {found}. Try: echo ... | seqloom predict {found}")
