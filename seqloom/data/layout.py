"""How examples are found in a table: which columns, whether line 1 is a header, whether quotes enclose cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from seqloom.data.as_text import SIDES
from seqloom.data.headers import likely_columns
from seqloom.errors import SeqloomError, nearest, shown

KEYS = ("columns", "header", "quotes")  # of a recipe's [data]
LONG = 30  # characters of a column's name that a message shows


@dataclass(frozen=True)
class Layout:
    """The keys of a recipe's [data] that say how a table is read."""

    columns: tuple[str | int, ...] = ()  # source and target, by name or by number from 1; empty: by their usual names
    header: bool | None = None  # None: a first line that looks like a header is asked about
    quotes: bool | None = None  # None: in CSV always, in TSV where the lines make sense only so
    dialogues: bool = False  # lines are dialogues, see data/dialogues.py

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The layout in the [data] of a recipe."""
        return cls(
            tuple(data.get("columns") or ()), data.get("header"), data.get("quotes"), bool(data.get("dialogues"))
        )

    def changed(self, columns: Sequence[str | int] | None = None, header: bool | None = None) -> Layout:
        """For a file that is laid out otherwise. Other columns make what was known of the header void."""
        if columns:
            return Layout(tuple(check_columns(columns)), header, self.quotes)
        return self if header is None else Layout(self.columns, header, self.quotes, self.dialogues)

    def typed(self) -> list[str]:
        """The options of a command that say the same."""
        columns = ["--columns", ",".join(map(str, self.columns))] if self.columns else []
        return columns + ([] if self.header is None else ["--header" if self.header else "--no-header"])

    @property
    def is_named(self) -> bool:
        return any(isinstance(each, str) for each in self.columns)

    def check(self, sides: int) -> None:
        """Refuse another number of columns than an example has sides."""
        if self.dialogues and (sides == 1 or self.columns):
            why = "a language model has no turns before" if sides == 1 else "its lines have no columns"
            raise SeqloomError(f"data.dialogues = true: {why}; set data.dialogues = false")
        if self.columns and len(self.columns) != sides:
            wanted = "2 (source, target)" if sides == 2 else "1, a language model has no source"
            given = ", ".join(map(str, self.columns))
            raise SeqloomError(f"data.columns = {given}: {len(self.columns)} given, expected {wanted}")
        if any(isinstance(each, int) and each < 1 for each in self.columns):
            raise SeqloomError(f"data.columns = {', '.join(map(str, self.columns))}: columns are numbered from 1")

    def positions(self, names: Sequence[str], sides: int, title: str, option: str = "--columns") -> list[int]:
        """Where the sides of an example are among columns with these names."""
        wanted = self.columns or usual_columns(names, sides)
        if not wanted:
            both = " with a source" if sides == 1 and {*SIDES} <= {*names} else ""
            raise SeqloomError(f"{title} has {listed(names)}{both}: {ask(names, sides, option)}")
        return [position(each, names, title) for each in wanted]


PLAIN = Layout()


def settings_of(columns: Sequence[str | int] | None, header: bool | None) -> list[str]:
    """The columns and the header as "key=value" settings of a recipe."""
    chosen = [f"data.columns={json.dumps(check_columns(columns), ensure_ascii=False)}"] if columns else []
    return chosen + ([] if header is None else [f"data.header={json.dumps(header)}"])


def check_columns(columns: Any) -> list[str | int]:
    """A list of names and numbers, as users give it."""
    if not isinstance(columns, (list, tuple)) or not all(isinstance(each, (str, int)) for each in columns):
        raise SeqloomError(f'columns = {shown(columns)}: expected a list, such as ["text", "label"] or [1, 2]')
    return list(columns)


def usual_columns(names: Sequence[str], sides: int) -> tuple[str | int, ...]:
    """The columns of a table where none were named: source and target, or text; else all, where there are no more."""
    if {*SIDES} <= {*names}:
        return SIDES if sides == 2 else ()
    if sides == 1 and (found := [each for each in ("target", "text") if each in names]):
        return tuple(found[:1])
    return tuple(range(1, sides + 1)) if len(names) == sides else ()


def position(wanted: str | int, names: Sequence[str], title: str) -> int:
    """Where a column is, counted from 0."""
    if isinstance(wanted, int):
        if wanted > len(names):
            raise SeqloomError(f"{title} has no column {wanted}; it has {listed(names)}")
        return wanted - 1
    if wanted not in names:
        hint = nearest(wanted, names) if names else ""
        hint = hint if "did you mean" in hint else f"; it has {listed(names)}"
        raise SeqloomError(
            f'{title} has no column "{wanted}"{hint}; name its columns with --columns, by number without a header (1,2)'
        )
    if list(names).count(wanted) > 1:
        raise SeqloomError(
            f'{title} has {list(names).count(wanted)} columns called "{wanted}"; choose by number, '
            f"such as --columns {','.join(str(1 + place) for place, each in enumerate(names) if each == wanted)}"
        )
    return names.index(wanted)


def ask(names: Sequence[str], sides: int, option: str = "--columns") -> str:
    """What to type to choose columns, long names by number. Keyword arguments of Python end in an equals sign."""
    likely = [each if len(each) <= LONG else list(names).index(each) + 1 for each in likely_columns(names, sides)]
    typed = f"{option}{likely}".replace("'", '"') if option.endswith("=") else f"{option} {','.join(map(str, likely))}"
    what = "the text" if sides == 1 else "two of them" if len(names) > 2 else "the columns"
    return f"name {what} with {typed}"


def listed(names: Sequence[str], limit: int = 12) -> str:
    """How many columns there are, and which."""
    more = ", ..." * (len(names) > limit)
    return f"{len(names)} column{'s' * (len(names) != 1)} ({', '.join(map(shorten, names[:limit]))}{more})"


def shorten(name: object) -> str:
    """The name of a column as a message shows it."""
    text = str(name)
    return text if len(text) <= LONG else f"{text[: LONG - 3]}..."
