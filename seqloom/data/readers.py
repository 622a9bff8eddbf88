"""From files and Python objects to examples, one at a time.

A bad line stops the reading with a message that names it, or is counted and skipped; a bad file always stops it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seqloom.contracts import Codec
from seqloom.data.as_text import LineError
from seqloom.data.columns import Row, check_not_empty
from seqloom.data.formats import file_rows, format_of
from seqloom.data.frames import is_table, python_rows
from seqloom.data.layout import PLAIN, Layout
from seqloom.data.limits import length_of
from seqloom.data.lines import Data, paths_of, title_of
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
    noun: str = "line"  # what one is called: "line", "row" or "item"

    def skip(self, reason: str, line: int) -> None:
        self.skipped += 1
        self.reasons[reason] += 1
        self.first_lines.setdefault(reason, line)

    def sentence(self, title: str) -> str:
        """What was skipped and why."""
        reasons = ", ".join(
            f"{count:,} x {reason} (first at {self.noun} {self.first_lines[reason]:,})"
            for reason, count in self.reasons.most_common()
        )
        return f"Skipped {self.skipped:,} {title} {self.noun}{'s' * (self.skipped != 1)}: {reasons}."

    def all_skipped(self, title: str) -> SeqloomError:
        """The error for data without a good line."""
        reasons = ", ".join(f"{count} x {reason}" for reason, count in self.reasons.most_common())
        return SeqloomError(f"{title} has no usable {self.noun}: all {self.read} were skipped ({reasons})")


def read(
    paths: Sequence[str | Path],
    columns: int = 2,
    *,
    layout: Layout = PLAIN,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
    located: Collection[str] = (),
) -> Iterator[Example]:
    """The examples of one file of pairs, of two line-aligned files, or (columns=1) of a file of text.

    In a running text every line counts, empty ones too, and a tab is a character. Values of `located` sides
    are paths, relative to the folder of the file that names them, or else to the current one.
    """
    names = [str(path) for path in paths]
    _check_paths(names, columns)
    layout.check(columns)
    rows, noun = file_rows(names, columns, layout, max_characters, running)
    found = _examples(rows, title_of(names), skip_bad, tally, running, noun)
    if not located:
        yield from found
        return
    folder = Path(names[0]).absolute().parent
    for each in found:
        yield replace(each, **{side: _locate(getattr(each, side), folder) for side in located})


def from_pairs(
    pairs: Iterable[Any],
    columns: int = 2,
    *,
    layout: Layout = PLAIN,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
) -> Iterator[Example]:
    """The examples of what Python holds (see `frames`), such as (source, target) tuples. Line 1 is the first."""
    title, noun = title_of(pairs), "row" if is_table(pairs) else "line"
    rows = python_rows(pairs, columns, layout, max_characters, title)
    yield from _examples(rows, title, skip_bad, tally, running, noun)


def located_sides(source: Codec | None, target: Codec) -> tuple[str, ...]:
    """The sides whose values are names of files."""
    sides = {"source": source, "target": target}
    return tuple(side for side, codec in sides.items() if codec is not None and codec.names_files)


def examples(data: Data, columns: int, *, located: Collection[str] = (), **options: Any) -> Iterator[Example]:
    """The examples of files or of what Python holds; the options are those of `read`."""
    paths = paths_of(data)
    return read(paths, columns, located=located, **options) if paths else from_pairs(data, columns, **options)  # type: ignore[arg-type]


def reading_options(data: Mapping[str, Any]) -> dict[str, Any]:
    """How the [data] of a completed recipe is read, as options of `read`."""
    return {"layout": Layout.of(data), **{name: data[name] for name in ("skip_bad", "max_characters")}}


def readable(
    rows: Iterable[Example],
    source: Codec | None,
    target: Codec,
    title: str,
    tally: Tally,
    *,
    skip_bad: bool,
    max_characters: int = MAX_CHARACTERS,
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
            first = None if source is None else content(source, example.source, side, max_characters)
            side = "target"
            second = content(target, example.target, side, max_characters)
            side = "pair"
            if check is not None:
                check(example)
        except UnreadableError as bad:
            if not skip_bad:
                raise _bad_line(title, example.line, str(bad), tally.noun) from None
            tally.skip(f"unreadable {side}", example.line)
            if refused is not None:
                refused.add(example.line)
            continue
        good = True
        yield example, first, second
    if not good:
        raise tally.all_skipped(title)


def content(codec: Codec, value: Any, side: str, max_items: int) -> Any:
    """What identifies a value. A list or array that is too long is unreadable, as a text of so many characters is."""
    if (length := length_of(value, codec)) > max_items and not isinstance(value, str):
        limit = f"at most {max_items:,} (data.max_characters)"
        raise UnreadableError(f"the {side} has {length:,} items; expected {limit}")
    return codec.content(value)


def _examples(
    rows: Iterable[Row], title: str, skip_bad: bool, tally: Tally | None, running: bool, noun: str
) -> Iterator[Example]:
    tally = Tally() if tally is None else tally
    tally.noun = noun
    good = False
    for index, columns in _without_blank_end(rows):
        tally.read += 1
        try:
            if isinstance(columns, LineError):
                raise columns
            if not running:
                check_not_empty(columns)
        except LineError as bad:
            if not skip_bad:
                raise _bad_line(title, index, f"{bad.expected}, found {shown(bad.found)}", noun) from None
            tally.skip(bad.reason, index)
            continue
        good = True
        yield Example(*columns, index)
    if not tally.read:
        raise SeqloomError(f"{title} is empty; expected at least one example")
    if not good:
        raise tally.all_skipped(title)


def _without_blank_end(rows: Iterable[Row]) -> Iterator[Row]:
    """Blank lines at the end are nothing; others are bad lines."""
    blank: list[Row] = []
    for row in rows:
        if isinstance(row[1], LineError) and row[1].reason == "blank line":
            blank.append(row)
            continue
        yield from blank
        blank.clear()
        yield row


def _bad_line(title: str, line: int, what: str, noun: str) -> SeqloomError:
    return SeqloomError(f"{title}, {noun} {line}: {what}; correct the {noun}, or skip bad {noun}s with --skip-bad")


def _locate(name: Any, folder: Path) -> Any:
    if not isinstance(name, str):
        return name
    beside, here = folder / name, Path(name).absolute()
    return str(here if here.exists() and not beside.exists() else beside)


def _check_paths(names: list[str], columns: int) -> None:
    if columns not in (1, 2):
        raise SeqloomError(f"columns is {columns}; expected 2 (source, target), or 1 for a language model")
    if not 1 <= len(names) <= columns:
        wanted = "one file of pairs or two aligned files" if columns == 2 else "one file of text"
        raise SeqloomError(f"{len(names)} paths were given ({', '.join(names[:3])}); expected {wanted}")
    if len(names) == 2 and ("-" in names or any(format_of(name) in ("json", "jsonl", "parquet") for name in names)):
        raise SeqloomError(f"{' and '.join(names)}: two aligned files must be plain text files; give pairs as one file")
