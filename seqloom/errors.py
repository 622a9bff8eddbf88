"""The one exception a user meets: what went wrong, where, what was expected, what to do."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class SeqloomError(Exception):
    """A mistake that the user can fix. The message is one line; the CLI prints it and exits with code 2."""


class UnreadableError(SeqloomError):
    """A value that its codec cannot read: in a file of examples, a bad line."""


def shown(value: Any) -> str:
    """A value, or its beginning, on one line, as an error quotes it."""
    text = " ".join(repr(value[:120] if isinstance(value, str) else value).split())
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
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """The first line of an exception's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def under(key: str, name: str) -> str:
    """The dotted key of an entry of a table."""
    return f"{key}{'' if key.endswith(': ') else '.'}{name if name.isprintable() else show(name)}"
