"""Tables of separated text: TSV, read plainly unless only quotes make sense of it, and CSV.

The first lines tell the separator of CSV (a comma, a semicolon or a tab), whether TSV has quotes, and whether line 1
looks like a header. Rows are read one at a time.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from seqloom.data.as_text import LineError
from seqloom.data.columns import Row, from_cells
from seqloom.data.headers import looks_like_header
from seqloom.data.layout import Layout, ask, listed
from seqloom.data.lines import lines, title_of
from seqloom.data.separated import plain_rows, quoted_rows
from seqloom.errors import SeqloomError

HEAD = (200, 64_000)  # lines and bytes that are looked at first
SEPARATORS = "\t;,"  # where several fit equally well, the first


def table_rows(name: str, sides: int, layout: Layout, max_characters: int, *, is_csv: bool) -> Iterator[Row]:
    """The examples of a table, or what is wrong with them."""
    title = title_of(name)
    raws: Iterator[bytes] = lines(name, max_characters)
    head = _first_lines(raws)
    texts = [raw.decode(errors="replace") for raw in head]
    separator = _separator(texts) if is_csv else "\t"
    quoted = layout.quotes if layout.quotes is not None else is_csv or _needs_quotes(texts)
    sample = _split_quoted(texts, separator)[0] if quoted else [text.split(separator) for text in texts]
    places, width, has_header = _arrange(sample, sides, layout, title)

    raws = chain(head, raws)
    split = quoted_rows if quoted else plain_rows
    rows = split(raws, separator, max_characters, title)
    if has_header:
        next(rows)
    empty = True
    for number, cells in rows:
        empty = False
        try:
            yield number, cells if isinstance(cells, LineError) else from_cells(cells, places, width, separator)
        except LineError as bad:
            yield number, bad
    if empty and has_header:
        raise SeqloomError(f"{title} has a header and no rows; expected at least one example")


def _arrange(sample: list[list[str]], sides: int, layout: Layout, title: str) -> tuple[list[int], int, bool]:
    """Which cells of a row are used, how many a row has, and whether the first row is a header."""
    if not sample:  # the first row does not end: reading it says so
        return list(range(sides)), sides, False
    first = sample[0]
    names = [cell.strip() for cell in first]
    if layout.is_named and layout.header is False:
        raise SeqloomError(f"{title}: columns without a header have no names; choose by number, as in --columns 1,2")
    if layout.is_named or layout.header:
        return layout.positions(names, sides, title), len(first), True
    if layout.header is None and looks_like_header(sample):
        way = "say that it is one with --header" if layout.columns else ask(names, sides)
        shown = ", ".join(names[:12])
        raise SeqloomError(
            f"{title}, line 1 looks like a header ({shown}): {way}, or say that there is none with --no-header"
        )
    if layout.columns:
        return layout.positions(names, sides, title), len(first), False
    if len(first) > sides and all(len(row) == len(first) for row in sample if any(row)):
        way = f"--columns {','.join(map(str, range(1, sides + 1)))}"
        wanted = "source and target" if sides == 2 else "the text"
        raise SeqloomError(
            f"{title}, line 1: expected {sides} column{'s' * (sides > 1)}, not {listed(names)}; choose {wanted} by "
            f"number, such as {way}, or by name if line 1 is a header"
        )
    return list(range(sides)), sides, False


def _first_lines(raws: Iterator[bytes]) -> list[bytes]:
    head: list[bytes] = []
    size = 0
    for raw in islice(raws, HEAD[0]):
        head.append(raw)
        size += len(raw)
        if size > HEAD[1]:
            break
    return head


def _split_quoted(texts: Sequence[str], separator: str) -> tuple[list[list[str]], int, bool]:
    """The rows of the first lines, how many lines they take, and whether all is well so far: the last may be cut."""
    reader = csv.reader((f"{text}\n" for text in texts), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    used = 0
    try:
        for row in reader:
            rows.append(row)
            used = reader.line_num
    except csv.Error as error:
        return rows, used, "unexpected end" in str(error)
    return rows, used, True


def _separator(texts: Sequence[str]) -> str:
    """The separator that splits most rows into the same number of cells, two or more."""

    def agreement(separator: str) -> float:
        widths = Counter(len(row) for row in _split_quoted(texts, separator)[0] if row)
        width, rows = widths.most_common(1)[0] if widths else (0, 0)
        return rows / widths.total() if width > 1 else 0.0

    best = max(SEPARATORS, key=agreement)
    return best if agreement(best) else ","


def _needs_quotes(texts: Sequence[str]) -> bool:
    """Whether lines of TSV make sense only if quotes enclose cells, or all cells are in quotes.

    A lone quote is text, and so is a cell like "Yes." in quotes where others have none.
    """
    if not any('"' in text for text in texts):
        return False
    rows, used, well = _split_quoted(texts, "\t")
    plain = [text.split("\t") for text in texts[:used] if text.strip()]
    cells = [cell for row in plain for cell in row]
    widths, plain_widths = {len(row) for row in rows if row}, {len(row) for row in plain}
    if not well or len(widths) != 1 or widths == {1} or not any(cell.startswith('"') for cell in cells):
        return False
    if len(plain_widths) > 1:  # a tab and a line end in one cell: two stray quotes, rather, and lines between them
        return not any("\t" in cell and "\n" in cell for row in rows for cell in row)
    return plain_widths == widths and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
