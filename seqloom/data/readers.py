"""From files to examples, one line at a time: TSV, JSONL, two line-aligned texts, standard input, any of them gzipped.

A bad line stops the reading with a message that names it, or is counted and skipped; a bad file always stops it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seqloom.contracts import Codec
from seqloom.data.columns import Columns, LineError, check_not_empty, decode_line, from_json, from_pair, from_tabs
from seqloom.data.lines import Data, aligned_lines, lines, paths_of, title_of
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.types import Example

MAX_CHARACTERS = 20_000


@dataclass
class Tally:
    """How many lines were read and skipped, and why."""

    read: int = 0  # lines, good and bad
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)  # the first line skipped for each reason

    def skip(self, reason: str, line: int) -> None:
        self.skipped += 1
        self.reasons[reason] += 1
        self.first_lines.setdefault(reason, line)

    def sentence(self, title: str) -> str:
        """What was skipped and why."""
        reasons = ", ".join(
            f"{count:,} x {reason} (first at line {self.first_lines[reason]:,})"
            for reason, count in self.reasons.most_common()
        )
        return f"Skipped {self.skipped:,} {title} line{'s' * (self.skipped != 1)}: {reasons}."

    def all_skipped(self, title: str) -> SeqloomError:
        """The error for data without a good line."""
        reasons = ", ".join(f"{count} x {reason}" for reason, count in self.reasons.most_common())
        return SeqloomError(f"{title} has no usable line: all {self.read} were skipped ({reasons})")


def read(
    paths: Sequence[str | Path],
    columns: int = 2,
    *,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
    located: bool = False,
) -> Iterator[Example]:
    """The examples of one file of pairs, of two line-aligned files, or (columns=1) of a file of plain text.

    In a running text every line counts, empty ones too, and a tab is a character. `located` sources are paths, relative
    to the folder of the file that names them, or, where they do not exist there, to the current one.
    """
    names = [str(path) for path in paths]
    _check_paths(names, columns)

    def parse(raws: tuple[bytes, ...]) -> Columns:
        texts = [decode_line(raw, max_characters) for raw in raws]
        if len(texts) == 2:
            return texts[0], texts[1]
        if _is_json(names[0]):
            return from_json(texts[0], columns)
        if running:
            return None, texts[0]
        return from_tabs(texts[0], columns)

    rows: Iterable[tuple[bytes, ...] | None]
    rows = aligned_lines(names, max_characters) if len(names) == 2 else zip(lines(names[0], max_characters))
    if columns == 1 and not running and not _is_json(names[0]):
        rows = (raws if raws and raws[0].strip() else None for raws in rows)  # plain text has paragraphs
    found = _examples(rows, parse, title_of(names), skip_bad, tally, running)
    folder = Path(names[0]).absolute().parent
    yield from (replace(each, source=_locate(each.source, folder)) for each in found) if located else found


def from_pairs(
    pairs: Iterable[Any],
    columns: int = 2,
    *,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
) -> Iterator[Example]:
    """The examples of a Python list: (source, target) tuples, or for columns=1 strings. Line 1 is the first."""

    def parse(pair: Any) -> Columns:
        return from_pair(pair, columns, max_characters)

    yield from _examples(pairs, parse, title_of(None), skip_bad, tally, running)


def examples(data: Data, columns: int, *, located: bool = False, **options: Any) -> Iterator[Example]:
    """The examples of files or of a list; the options are those of `read`."""
    paths = paths_of(data)
    return read(paths, columns, located=located, **options) if paths else from_pairs(data, columns, **options)  # type: ignore[arg-type]


def readable(
    rows: Iterable[Example],
    source: Codec | None,
    target: Codec,
    title: str,
    tally: Tally,
    *,
    skip_bad: bool,
    check: Callable[[Example], None] | None = None,
    refused: set[int] | None = None,
) -> Iterator[tuple[Example, Any, Any]]:
    """Examples with the contents of both sides. What a codec or `check` finds unreadable is a bad line.

    The numbers of such lines are added to `refused`.
    """
    good = False
    for example in rows:
        side = "source"
        try:
            first = None if source is None else source.content(example.source)
            side = "target"
            second = target.content(example.target)
            side = "pair"
            if check is not None:
                check(example)
        except UnreadableError as bad:
            if not skip_bad:
                raise _bad_line(title, example.line, str(bad)) from None
            tally.skip(f"unreadable {side}", example.line)
            if refused is not None:
                refused.add(example.line)
            continue
        good = True
        yield example, first, second
    if not good:
        raise tally.all_skipped(title)


def _examples(
    rows: Iterable[Any],
    parse: Callable[[Any], Columns],
    title: str,
    skip_bad: bool,
    tally: Tally | None,
    running: bool,
) -> Iterator[Example]:
    tally = Tally() if tally is None else tally
    seen = good = False
    for number, row in enumerate(rows, start=1):
        if row is None:
            continue
        seen = True
        tally.read += 1
        try:
            columns = parse(row)
            if not running:
                check_not_empty(columns)
        except LineError as bad:
            if not skip_bad:
                raise _bad_line(title, number, f"{bad.expected}, found {shown(bad.found)}") from None
            tally.skip(bad.reason, number)
            continue
        good = True
        yield Example(*columns, number)
    if not seen:
        raise SeqloomError(f"{title} is empty; expected at least one example")
    if not good:
        raise tally.all_skipped(title)


def _bad_line(title: str, line: int, what: str) -> SeqloomError:
    return SeqloomError(f"{title}, line {line}: {what}; correct the line, or skip bad lines with --skip-bad")


def _locate(name: str, folder: Path) -> str:
    beside, here = folder / name, Path(name).absolute()
    return str(here if here.exists() and not beside.exists() else beside)


def _is_json(name: str) -> bool:
    return name.removesuffix(".gz").endswith(".jsonl")


def _check_paths(names: list[str], columns: int) -> None:
    if columns not in (1, 2):
        raise SeqloomError(f"columns is {columns}; expected 2 (source, target), or 1 for a language model")
    if not 1 <= len(names) <= columns:
        wanted = "one file of pairs or two aligned files" if columns == 2 else "one file of text"
        raise SeqloomError(f"{len(names)} paths were given ({', '.join(names[:3])}); expected {wanted}")
    if len(names) == 2 and ("-" in names or any(map(_is_json, names))):
        raise SeqloomError(f"{' and '.join(names)}: two aligned files must be plain text files; give pairs as one file")
