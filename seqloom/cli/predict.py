"""`seqloom predict`: from standard input to standard output, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError, UnreadableError


@click.command()
@options.runs
@options.n_best
@options.beam_size
@click.option("--json", "as_json", is_flag=True, help="JSON lines with scores and tokens; n-best lists are JSON too.")
@click.option("--attention", is_flag=True, help="JSON lines with the attention to the source as well.")
@options.replace_unknown
@options.wait
@options.helpers
@click.option("--prefix", help="Every output begins with this.")
@click.option("--ban", "banned", multiple=True, help="No output contains this; may be given several times.")
@click.option("--require", "required", multiple=True, help="Every output contains this; may be given several times.")
@options.geometric
@options.settings
@options.device
@options.threads()
@options.trust
def predict(
    runs: tuple[Path, ...],
    n_best: int | None,
    beam_size: int | None,
    as_json: bool,
    geometric: bool,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    trust: bool,
    **given: Any,
) -> None:
    """Predict: one source per line on stdin, one output per line on stdout. An empty line stays empty.

    RUNS are run folders, several of them an ensemble, or one exported folder.
    """
    from seqloom.engines.load import load

    average: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=average, threads=threads)
    asked = {**options.loaded_helpers(model, given), **given, **options.search_settings(settings, beam_size)}
    if n_best is not None:
        asked["n_best"] = n_best
    predict_lines(model, as_json or given["attention"] or asked.get("n_best", 1) > 1, asked)


def predict_lines(model: Any, as_json: bool, asked: dict[str, Any]) -> None:
    """One source per line in, one output per line out. `asked` are the options of `candidates`."""
    from seqloom.inference.candidates import is_blank
    from seqloom.inference.constraints import no_output
    from seqloom.inference.system import has_unknown_source

    sources_in_all = unknown = lines = 0
    for sources in chunks(sys.stdin.buffer):
        filled = [source for source in sources if not is_blank(source)]
        try:
            answers = model.candidates(sources, details=as_json, **asked)
        except UnreadableError:
            name_line(model, sources, lines)
            raise
        sources_in_all += len(filled)
        unknown += sum(has_unknown_source(model.system, source) for source in filled)
        for source, found in zip(sources, answers):
            if not found and not is_blank(source):
                raise no_output(source)
            if as_json:
                print(json.dumps({"source": source, "outputs": [vars(one) for one in found]}, ensure_ascii=False))
            else:
                print(model.task.target.line(found[0].text) if found else "")
        lines += len(sources)
        sys.stdout.flush()
    if unknown:
        note(f"{unknown:,} of {sources_in_all:,} lines have tokens that this model has never seen.")


def name_line(model: Any, sources: list[str], before: int) -> None:
    """Fail with the number of the first line that cannot be read."""
    from seqloom.inference.system import encode_source

    for line, source in enumerate(sources, start=before + 1):
        try:
            if source.strip():
                encode_source(model.system, source)
        except UnreadableError as bad:
            raise SeqloomError(f"standard input, line {line}: {bad}") from None


def chunks(stream: Any, size: int = 256) -> Iterator[list[str]]:
    """Lines as they arrive: those that are there are answered before more are waited for."""
    number, rest = 0, b""
    while True:
        block = stream.read1(1 << 16)
        *lines, rest = (rest + block).split(b"\n")
        if not block and rest:
            lines, rest = [rest], b""
        found = []
        for line in lines:
            number += 1
            try:
                found.append(line.decode("utf-8").removesuffix("\r"))
            except UnicodeDecodeError:
                message = f"standard input, line {number}: not UTF-8; convert it first, for example with iconv"
                raise SeqloomError(message) from None
        yield from (found[start : start + size] for start in range(0, len(found), size))
        if not block:
            return
