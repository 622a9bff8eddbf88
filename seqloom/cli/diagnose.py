"""`seqloom diagnose`: what is wrong with a run, and what to try next."""

from __future__ import annotations

import json
from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note


@click.command()
@options.run
@options.task
@options.data
@options.columns
@click.option("--examples", type=click.IntRange(min=1), default=500, help="At most so many examples are decoded.")
@click.option("--json", "as_json", is_flag=True, help="All figures and findings as JSON.")
@options.pictures
@options.beam_size
@options.replace_unknown
@options.settings
@options.device
@options.threads()
@options.trust
def diagnose(
    run: Path,
    task: str,
    data: tuple[Path, ...],
    columns: list[str | int] | None,
    header: bool | None,
    examples: int,
    as_json: bool,
    out: tuple[Path, ...],
    beam_size: int | None,
    replace_unknown: bool,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    trust: bool,
) -> None:
    """Say what is wrong with a run, with figures, and what to try next.

    RUN is a run folder. Without --data its own validation data are used. --set changes the search.
    """
    from seqloom.analysis.diagnosis.diagnose import diagnose
    from seqloom.compute.threads import choose_threads

    pictures = options.picture_paths(out)
    choose_threads(threads)
    asked = options.search_settings(settings, beam_size)
    if replace_unknown:
        asked["replace_unknown"] = True
    asked |= options.layout(data, columns, header)
    found = diagnose(run, options.paths(data), examples=examples, device=device, trust=trust, task=task, **asked)
    print(json.dumps(found.to_json(), ensure_ascii=False) if as_json else found)
    for path in pictures:
        found.save(path)
        note(f"The picture is {path}.")
