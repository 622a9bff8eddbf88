"""Cells of separated text, one row at a time: split at every separator, or with quotes as CSV has them (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from seqloom.data.as_text import LineError, too_long
from seqloom.data.columns import decode_line
from seqloom.errors import SeqloomError

Cells = tuple[int, list[str] | LineError]  # of one row, with the number of its first line


def plain_rows(raws: Iterable[bytes], separator: str, max_characters: int, title: str = "") -> Iterator[Cells]:
    """A row per line; every character between separators belongs to its cell."""
    for number, raw in enumerate(raws, start=1):
        try:
            yield number, decode_line(raw, max_characters).split(separator)
        except LineError as bad:
            yield number, bad


class _Feed:
    """Lines for `csv.reader`, which asks for as many as a row has. It remembers what is wrong with them."""

    def __init__(self, raws: Iterable[bytes], max_characters: int, title: str):
        self.raws, self.max_characters, self.title = iter(raws), max_characters, title
        self.number, self.text = 0, ""
        self.bad: LineError | None = None
        self.begin()

    def begin(self) -> None:
        """Before each row."""
        self.start, self.characters, self.bad = self.number + 1, 0, None

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        raw = next(self.raws)
        self.number += 1
        if self.characters > self.max_characters:
            raise self.unclosed(f"within {self.max_characters:,} characters (data.max_characters)")
        try:
            text = decode_line(raw, self.max_characters)
        except LineError as bad:
            self.bad = self.bad or bad
            text = raw.decode(errors="replace")
        self.text = text
        self.characters += len(text) + 1
        if self.characters > self.max_characters + 1:
            self.bad = self.bad or too_long(text, self.max_characters)
        return f"{text}\n"  # inside quotes, line ends belong to the cell

    def unclosed(self, where: str) -> SeqloomError:
        """A quote that is not closed makes nonsense of all lines that follow."""
        return SeqloomError(
            f"{self.title}, line {self.start}: a quote is opened and not closed {where}; close it (a quote inside "
            "quotes is written twice), or read quotes as text with --set data.quotes=false"
        )


def quoted_rows(raws: Iterable[bytes], separator: str, max_characters: int, title: str) -> Iterator[Cells]:
    """Rows whose cells may be in quotes, and then hold separators, line ends and doubled quotes."""
    csv.field_size_limit(min(max(csv.field_size_limit(), 5 * max_characters + 8), 2**31 - 1))
    feed = _Feed(raws, max_characters, title)
    reader = csv.reader(feed, delimiter=separator, strict=True)
    while True:
        feed.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise feed.unclosed("before the end of the file") from None
            expected = f"expected a closing quote to be followed by {separator!r} or the end of the line ({error})"
            yield feed.start, feed.bad or LineError("bad quotes", expected, feed.text)
            continue
        yield feed.start, feed.bad or cells
