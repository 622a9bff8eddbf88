"""From a line, the cells of a row, or an item of a Python list to the columns of an example: source and target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seqloom.data.as_text import (
    SIDES,
    LineError,
    as_words,
    can_spell,
    check_text,
    is_missing,
    is_scalar,
    spell,
    too_long,
)
from seqloom.types import Example

Columns = tuple[Any, Any]  # source and target; the source of a language model is None
Row = tuple[int, Columns | LineError]  # what was read, or what is wrong with it, and its number


def attempt(parse: Callable[[Any], Columns], record: Any) -> Columns | LineError:
    """The columns of a record, or what is wrong with it."""
    try:
        return parse(record)
    except LineError as bad:
        return bad


def decode_line(raw: bytes, max_characters: int) -> str:
    """The text of a line, which must be UTF-8 and not too long."""
    if len(raw) > 4 * max_characters:  # no character takes more than four bytes
        raise too_long(raw[:400].decode(errors="replace"), max_characters)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        near = raw[max(error.start - 20, 0) : error.end + 20]
        expected = f"expected UTF-8, but byte {error.start + 1} is 0x{raw[error.start]:02X}; convert the file to UTF-8"
        raise LineError("invalid UTF-8", expected, near) from None
    if len(text) > max_characters:
        raise too_long(text, max_characters)
    return text


def from_text(text: str) -> Columns:
    """A line of plain text."""
    if "\t" in text:
        raise LineError("a tab", "a language model takes one text per line, without tabs", text)
    return None, text


def from_aligned(source: str, target: str) -> Columns:
    """A line of each of two files."""
    if not source.strip() and not target.strip():
        raise LineError("blank line", "the source is empty, and so is the target", source)
    return source, target


def from_values(values: Sequence[Any], max_characters: int) -> Columns:
    """The values of one row of typed columns, spelled as TSV would."""
    sides = zip(SIDES[-len(values) :], values)
    found = [check_text(spell(value, side), max_characters) for side, value in sides]
    return (None, found[0]) if len(found) == 1 else (found[0], found[1])


def from_cells(cells: Sequence[str], places: Sequence[int], width: int, separator: str) -> Columns:
    """The chosen cells of a row of a table, which must have as many as the others."""
    if not any(map(str.strip, cells)):
        wanted = "a source, a tab and a target" if separator == "\t" else f"cells with {separator!r} between"
        raise LineError("blank line", f"expected {wanted}", separator.join(cells))
    if len(cells) != width:
        between = "a tab" if separator == "\t" else repr(separator)
        sides = "(source, target)" if width == len(places) == 2 else "like line 1"
        count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
        expected = f"expected {width} column{'s' * (width > 1)} with {between} between {sides}, not {count}"
        raise LineError(count, expected, separator.join(cells))
    return (None, cells[places[0]]) if len(places) == 1 else (cells[places[0]], cells[places[1]])


def from_pair(pair: Any, columns: int, max_characters: int) -> Columns:
    """The values of an item of a Python list: a (source, target) tuple, an Example, or for one column a string
    or a list of numbers or vectors.
    """
    if isinstance(pair, Example):
        pair = (pair.source, pair.target)
    texts = isinstance(pair, (tuple, list)) and any(each is None or isinstance(each, str) for each in pair)
    if columns == 1 and not texts:
        pair = (None, pair)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise LineError("not a pair", "expected a (source, target) tuple", pair)
    if columns == 2 and is_missing(pair[0]):
        raise LineError("no source", "expected a (source, target) tuple with a source", pair)
    if columns == 1 and pair[0] is not None:
        raise LineError("two columns", "a language model takes texts without a source; give strings", pair)
    values = [as_words(value) for value in pair][-columns:]
    if isinstance(values[0], str) or is_scalar(values[0]) or is_missing(values[0]):  # as they would be in a file
        sides = zip(SIDES[-columns:], values)
        values = [spell(value, side) if can_spell(value) else value for side, value in sides]
    values = [check_text(value, max_characters) for value in values]
    return (None, values[0]) if columns == 1 else (values[0], values[1])


def check_not_empty(columns: Columns) -> None:
    """Refuse texts of white space only."""
    for side, value in zip(SIDES, columns):
        if isinstance(value, str) and not value.strip():
            raise LineError(f"empty {side}", f"the {side} is empty", value)
