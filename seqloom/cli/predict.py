"""`seqloom predict`: from standard input to standard output, line by line."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.data.limits import overlong, refuse_long
from seqloom.errors import SeqloomError, UnreadableError


@click.command()
@options.runs
@options.task
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
@options.limits
@options.geometric
@options.settings
@options.device
@options.threads()
@options.trust
def predict(
    runs: tuple[Path, ...],
    task: str,
    n_best: int | None,
    beam_size: int | None,
    as_json: bool,
    geometric: bool,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    trust: bool,
    max_characters: int | None,
    **given: Any,
) -> None:
    """Predict: one source per line on stdin, one output per line on stdout. An empty line stays empty.

    RUNS are run folders, several of them an ensemble, or one exported folder.
    """
    from seqloom.engines.load import load

    average: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=average, threads=threads, task=task)
    if (suffix := model.task.target.suffix) and model.task.source is not None:
        raise SeqloomError(f"this run writes {suffix} files: use seqloom generate --source ... --out new{suffix}")
    options.set_limit(model, max_characters)
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
    for sources in chunks(sys.stdin.buffer, model.max_characters, asked["truncate"]):
        filled = [source for source in sources if not is_blank(source)]
        try:
            answers = model.candidates(sources, details=as_json, **asked)
        except UnreadableError:
            name_line(model, sources, lines, asked["truncate"])
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
    for codec in model.system.sources:
        for line in codec.notes():
            note(line)
    if unknown:
        note(f"{unknown:,} of {sources_in_all:,} lines have tokens that this model has never seen.")


def name_line(model: Any, sources: list[str], before: int, truncate: bool) -> None:
    """Fail with the number of the first line that cannot be read."""
    from seqloom.inference.system import admit_source, encode_source

    for line, source in enumerate(sources, start=before + 1):
        try:
            if source.strip():
                encode_source(model.system, admit_source(model.system, source, "it", truncate))
        except UnreadableError as bad:
            raise SeqloomError(f"standard input, line {line}: {bad}") from None


def chunks(
    stream: Any, limit: int, truncate: bool = False, size: int = 256, name: str = "standard input"
) -> Iterator[list[str]]:
    """Lines as they arrive: those that are there are answered before more are waited for.

    Of a line that is too long no more is kept than can be used, and no more is read unless it is to be cut.
    """
    number, kept, length = 0, list[bytes](), 0  # of the line that has not ended
    while block := stream.read1(1 << 16):
        found = []
        for place, piece in enumerate(block.split(b"\n")):
            if place:  # a line has ended before it
                number += 1
                found.append(text_of(b"".join(kept), f"{name}, line {number}", limit, truncate))
                kept, length = [], 0
            if piece and length <= 4 * limit:  # no character has more than four bytes
                kept.append(piece)
                length += len(piece)
            if length > 4 * limit + 1 and not truncate:
                raise overlong(f"{name}, line {number + 1},", f"more than {limit:,} characters", limit)
        yield from (found[start : start + size] for start in range(0, len(found), size))
    if kept:
        yield [text_of(b"".join(kept), f"{name}, line {number + 1}", limit, truncate)]


def text_of(line: bytes, place: str, limit: int, truncate: bool) -> str:
    """The text of a line, cut or refused where it is too long."""
    try:
        # A line that was cut may end within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(line, final=not truncate or len(line) <= 4 * limit)
    except UnicodeDecodeError:
        message = f"{place}: not UTF-8; convert it first, for example with iconv"
        raise SeqloomError(message) from None
    text = text.removesuffix("\r")
    if not truncate:
        refuse_long(text, limit, f"{place},")
    return text[:limit]
