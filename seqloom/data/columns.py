"""From a line, or an item of a Python list, to the columns of an example: source and target."""

from __future__ import annotations

import json
from typing import Any

from seqloom.types import Example

Columns = tuple[Any, Any]  # source and target; the source of a language model is None


class LineError(Exception):
    """A line that is not an example: a short reason to count, what was expected, and what was found."""

    def __init__(self, reason: str, expected: str, found: object):
        self.reason, self.expected, self.found = reason, expected, found


def decode_line(raw: bytes, max_characters: int) -> str:
    """The text of a line, which must be UTF-8 and not too long."""
    if len(raw) > 4 * max_characters:  # no character takes more than four bytes
        raise _too_long(raw[:400].decode(errors="replace"), max_characters)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        near = raw[max(error.start - 20, 0) : error.end + 20]
        expected = f"expected UTF-8, but byte {error.start + 1} is 0x{raw[error.start]:02X}; convert the file to UTF-8"
        raise LineError("invalid UTF-8", expected, near) from None
    if len(text) > max_characters:
        raise _too_long(text, max_characters)
    return text


def from_tabs(text: str, columns: int) -> Columns:
    """The cells of a line of TSV; with one column, a line of plain text."""
    cells = text.split("\t")
    if columns == 1:
        if len(cells) > 1:
            raise LineError("a tab", "a language model takes one text per line, without tabs", text)
        return None, text
    if not text.strip():
        raise LineError("blank line", "expected a source, a tab and a target", text)
    if len(cells) != 2:
        count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
        raise LineError(count, f"expected 2 columns with a tab between (source, target), not {count}", text)
    return cells[0], cells[1]


def from_json(text: str, columns: int) -> Columns:
    """The values of a line of JSONL."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise LineError("bad JSON", "expected one JSON object per line", text) from None
    if not isinstance(record, dict):
        raise LineError("bad JSON", "expected a JSON object", text)
    if columns == 1 and {"source", "target"} <= record.keys():
        raise LineError("two columns", "a language model takes texts without a source", text)
    keys = ["source", "target"] if columns == 2 else ["target" if "target" in record else "text"]
    values: list[str | None] = [] if columns == 2 else [None]
    for key in keys:
        if key not in record:
            wanted = '"source" and "target"' if columns == 2 else '"target" or "text"'
            raise LineError(f'no "{key}" key', f'expected an object with {wanted}, not without "{key}"', text)
        if not isinstance(record[key], str):
            raise LineError(f'"{key}" is not text', f'expected "{key}" to be a string', record[key])
        _check_unicode(record[key])
        values.append(record[key])
    return values[0], values[1]


def from_pair(pair: Any, columns: int, max_characters: int) -> Columns:
    """The values of an item of a Python list: a (source, target) tuple, an Example, or for one column a string."""
    if isinstance(pair, Example):
        pair = (pair.source, pair.target)
    if columns == 1 and not isinstance(pair, (tuple, list)):
        pair = (None, pair)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise LineError("not a pair", "expected a (source, target) tuple", pair)
    if columns == 2 and pair[0] is None:
        raise LineError("no source", "expected a (source, target) tuple with a source", pair)
    if columns == 1 and pair[0] is not None:
        raise LineError("two columns", "a language model takes texts without a source; give strings", pair)
    for value in pair:
        if isinstance(value, str):
            _check_unicode(value)
            if len(value) > max_characters:
                raise _too_long(value, max_characters)
    return pair[0], pair[1]


def check_not_empty(columns: Columns) -> None:
    """Refuse texts of white space only."""
    for side, value in zip(("source", "target"), columns):
        if isinstance(value, str) and not value.strip():
            raise LineError(f"empty {side}", f"the {side} is empty", value)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LineError("invalid Unicode", "expected text without half surrogate pairs", text) from None


def _too_long(text: str, max_characters: int) -> LineError:
    return LineError("too long", f"expected at most {max_characters:,} characters (data.max_characters)", text)
