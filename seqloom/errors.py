"""The one exception a user meets: what went wrong, where, what was expected, what to do; and text made safe to show."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any
from unicodedata import category

REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # would turn around the rest of a line


def steers(character: str) -> bool:
    """Whether a terminal would obey a character instead of showing it; half a surrogate pair cannot even be written."""
    return category(character) in ("Cc", "Cs", "Zl", "Zp") or character in REORDERING


def printable(text: str) -> str:
    """Text on one line that cannot steer a terminal: an escape character is shown as \\u001b.

    Everything that comes from a file passes through here before a person sees it: in errors, messages, the display of
    a training, tables. Outputs of a model are data, and stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(f"\\u{ord(character):04x}" if steers(character) else character for character in text)


class SeqloomError(Exception):
    """A mistake that the user can fix. The message is one line; the CLI prints it and exits with code 2."""

    def __init__(self, message: str):
        super().__init__(printable(" ".join(message.split())))


class UnreadableError(SeqloomError):
    """A value that its codec cannot read: in a file of examples, a bad line."""


def shown(value: Any) -> str:
    """A value, or its beginning, on one line, as an error quotes it."""
    try:
        text = " ".join(repr(value[:120] if isinstance(value, str) else value).split())
    except (ValueError, RecursionError):  # an integer of thousands of digits, thousands of lists in each other
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint for a misspelt name: ' (did you mean "lstm"?)', or the choices when nothing is close."""
    choices = sorted(known)
    close = get_close_matches(name, choices, n=1, cutoff=0.5)
    if close:
        return f' (did you mean "{close[0]}"?)'
    return f" (known: {', '.join(choices)})" if choices else ""


def show(value: Any) -> str:
    """A value of a recipe on one line, as JSON, as an error quotes it."""
    try:
        text = json.dumps(value[:120] if isinstance(value, str) else value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return shown(value)
    text = printable(text)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """The first line of an exception's message."""
    lines = str(error).strip().splitlines()
    return printable(lines[0]) if lines else type(error).__name__


def under(key: str, name: str) -> str:
    """The dotted key of an entry of a table."""
    return f"{key}{'' if key.endswith(': ') else '.'}{name if name.isprintable() and len(name) <= 60 else show(name)}"
