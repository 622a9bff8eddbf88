"""`seqloom predict` on an exported model, without what other commands import: that would take as long as the answer.

Whatever it is not sure of is left to seqloom/cli.py, which says the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from seqloom.errors import SeqloomError, UnreadableError

# The options of `seqloom predict` that this knows: their argument, and how a value is read; a list may come again.
OPTIONS: dict[str, tuple[str, type]] = {
    "--n-best": ("n_best", int),
    "--beam-size": ("beam_size", int),
    "--json": ("as_json", bool),
    "--attention": ("attention", bool),
    "--replace-unknown": ("replace_unknown", bool),
    "--wait": ("wait", int),
    "--prefix": ("prefix", str),
    "--ban": ("ban", list),
    "--require": ("require", list),
    "--set": ("settings", list),
    "--threads": ("threads", int),
}


def main() -> None:
    """The entry point of all commands."""
    asked = request(sys.argv[1:])
    if asked is None:
        from seqloom import cli

        cli.main()
    else:
        in_one_line(lambda: answer(*asked))


def request(arguments: list[str]) -> tuple[Path, dict[str, Any]] | None:
    """The exported folder that is asked and the options, as long as they are plain: "--name value", none unknown."""
    if arguments[:1] != ["predict"]:
        return None
    folders: list[Path] = []
    options: dict[str, Any] = {}
    rest = iter(arguments[1:])
    for each in rest:
        name, read = OPTIONS.get(each, ("", None))
        if not each.startswith("-"):
            folders.append(Path(each))
        elif read is bool:
            options[name] = True
        elif (value := next(rest, None)) is None or read is None or (read is int and not value.isdecimal()):
            return None
        else:
            options[name] = [*options.get(name, ()), value] if read is list else read(value)
    if len(folders) != 1 or not (folders[0] / "engine.json").is_file():
        return None
    return folders[0], options


def answer(folder: Path, options: dict[str, Any]) -> None:
    from seqloom.engines.exported import Exported

    predict_lines(Exported.load(folder, threads=options.pop("threads", 0) or 1), **options)


def predict_lines(
    model: Any,
    *,
    n_best: int | None = None,
    beam_size: int | None = None,
    as_json: bool = False,
    attention: bool = False,
    wait: int | None = None,
    prefix: str | None = None,
    ban: list[str] | None = None,
    require: list[str] | None = None,
    settings: list[str] | None = None,
    **helpers: Any,
) -> None:
    """A source a line on stdin, an output a line on stdout. The arguments are the options of `seqloom predict`."""
    options = {**search_settings(settings, beam_size), "attention": attention, "wait": wait, **helpers}
    if n_best is not None:
        options["n_best"] = n_best
    options |= {"prefix": prefix, "banned": ban or (), "required": require or ()}
    as_json = as_json or attention or options.get("n_best", 1) > 1
    asked_in_all = unknown = lines = 0
    for sources in chunks(sys.stdin.buffer):
        asked = [source for source in sources if source.strip()]
        try:
            answers = iter(model.candidates(asked, details=as_json, **options))
        except UnreadableError:
            name_line(model, sources, lines)
            raise
        asked_in_all += len(asked)
        unknown += sum(map(model.has_unknown, asked))
        for source in sources:
            found = next(answers) if source.strip() else []
            if not found and source.strip():
                raise SeqloomError(f"no output for {source!r} meets the constraints within the length limit")
            if as_json:
                print(json.dumps({"source": source, "outputs": [vars(one) for one in found]}, ensure_ascii=False))
            else:
                print(model.task.target.line(found[0].text) if found else "")
        lines += len(sources)
        sys.stdout.flush()
    if unknown:
        note(f"{unknown:,} of {asked_in_all:,} lines have symbols that this model has never seen.")


def name_line(model: Any, sources: list[str], before: int) -> None:
    """Complain of the first source that cannot be read, with its line."""
    for line, source in enumerate(sources, start=before + 1):
        try:
            if source.strip():
                model.read(source)
        except UnreadableError as bad:
            raise SeqloomError(f"standard input, line {line}: {bad}") from None


def search_settings(assignments: list[str] | None, beam_size: int | None = None) -> dict[str, Any]:
    """ "length_penalty=0.6" or "search.length_penalty=0.6" as settings of the search."""
    from seqloom import config

    named = [each if each.startswith("search.") else f"search.{each}" for each in assignments or []]
    found = dict(config.override({}, named).get("search", {}))
    return found if beam_size is None else {**found, "beam_size": beam_size}


def chunks(stream: Any, size: int = 256) -> Iterator[list[str]]:
    """Lines as they come: those that are there are answered, before more are waited for."""
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


def in_one_line(run: Callable[[], None]) -> None:
    """A user's mistake is one line, and exit code 2."""
    try:
        run()
    except SeqloomError as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a folder nobody may write to
        fail(f"{error.filename or 'a file'}: {error.strerror or error}")


def note(text: str) -> None:
    """To the person, not into the pipe."""
    print(text, file=sys.stderr)


def fail(reason: str) -> NoReturn:
    note(f"seqloom: {' '.join(reason.split())}")
    sys.exit(2)
