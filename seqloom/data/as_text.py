"""Values as a line of TSV would spell them, which every codec reads; and what is wrong with a value that is none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from seqloom.errors import UnreadableError
from seqloom.metrics.trees import lists_as_text

SIDES = ("source", "target")
EMPTY = "-"  # a vector without components
SCALARS = (int, float, Decimal, date, time)  # a bool is an int


class LineError(Exception):
    """A line that is not an example: a short reason to count, what was expected, and what was found."""

    def __init__(self, reason: str, expected: str, found: object):
        self.reason, self.expected, self.found = reason, expected, found


def as_words(value: Any) -> Any:
    """Lists of words, such as tokens and tags, as text; any other value as it is."""
    words = isinstance(value, (list, tuple)) and value and all(isinstance(each, str) for each in value)
    return " ".join(value) if words and not any(len(each.split()) != 1 for each in value) else value


def spell(value: Any, side: str) -> Any:
    """A value as TSV would write it: numbers as text, lists with spaces between, commas between components, trees.

    A vector without components is "-".
    """
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist") and getattr(value, "ndim", 3) <= 2:  # of NumPy or torch
        value = value.tolist()
    if is_missing(value):
        raise LineError(f"empty {side}", f"the {side} is missing", value)
    if isinstance(value, SCALARS):
        return str(value)
    if is_tree(value):
        try:
            return lists_as_text(value)
        except UnreadableError as bad:
            raise LineError("bad tree", str(bad).partition(": ")[2], value) from None
    if isinstance(value, (list, tuple)):
        vectors = bool(value) and all(isinstance(each, (list, tuple)) for each in value)
        parts = [",".join(map(_spell_item, each)) or EMPTY if vectors else _spell_item(each) for each in value]
        return " ".join(parts)
    if isinstance(value, (Mapping, bytes, set)):
        kind = "an object" if isinstance(value, Mapping) else type(value).__name__
        raise LineError(f"{side} is no text", f"expected the {side} to be text, a number or a list, not {kind}", value)
    return value


def is_tree(value: Any) -> bool:
    """Whether it is a label and what is below it: lists of no other kind mix texts and lists."""
    if not isinstance(value, (list, tuple)) or not value or not isinstance(value[0], str):
        return False
    return any(isinstance(each, (list, tuple)) for each in value[1:])


def _spell_item(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, SCALARS) and not is_missing(value):
        return str(value)
    raise LineError("bad list", "expected a list of texts, of numbers or of vectors", value)


def can_spell(value: Any) -> bool:
    """Whether it is a number, a list, or missing; pictures are not, and codecs of one's own may take anything else."""
    is_array = hasattr(value, "tolist") and getattr(value, "ndim", 3) <= 2 and not is_picture(value)
    return is_scalar(value) or is_array or isinstance(value, (list, tuple)) or is_missing(value)


def is_picture(value: Any) -> bool:
    """Whether it is a table of bytes, as pixels are."""
    return getattr(value, "ndim", 0) == 2 and str(getattr(value, "dtype", "")).endswith("uint8")


def is_scalar(value: Any) -> bool:
    """Whether it is one number or date, also of NumPy or torch."""
    return isinstance(value, SCALARS) or getattr(value, "ndim", None) == 0


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    not_a_number = isinstance(value, float) and value != value
    return value is None or not_a_number or type(value).__name__ in ("NAType", "NaTType")


def check_text(value: Any, max_characters: int) -> Any:
    """A value whose text is neither invalid nor too long."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise LineError("invalid Unicode", "expected text without half surrogate pairs", value) from None
        if len(value) > max_characters:
            raise too_long(value, max_characters)
    return value


def too_long(text: str, max_characters: int) -> LineError:
    count = f"{len(text):,}" if len(text) > max_characters else "more"  # of a line that was cut
    expected = f"expected at most {max_characters:,} characters (data.max_characters), not {count}"
    return LineError("too long", expected, text)
