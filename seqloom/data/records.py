"""From a value of JSON to the columns of an example: objects by their keys, lists by their places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from seqloom.data.as_text import SIDES, LineError
from seqloom.data.columns import Columns, from_values
from seqloom.data.layout import Layout, ask, listed, position, shorten
from seqloom.errors import SeqloomError


class Records:
    """Reads the values of JSON: objects by their keys, lists by their places; for one column, strings and whole lists.

    Numbers choose among the keys of the first object.
    """

    def __init__(self, layout: Layout, sides: int, max_characters: int, title: str, option: str = "--keys"):
        self.layout, self.sides, self.max_characters = layout, sides, max_characters
        self.title, self.option = title, option  # how columns are chosen
        self.keys: list[str] | None = None

    def parse(self, text: str) -> Columns:
        """The values of a line of JSONL."""
        if not text.strip():
            raise LineError("blank line", "expected one JSON object per line", text)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            raise LineError("bad JSON", "expected one JSON object per line", text) from None
        return self.columns(record)

    def columns(self, record: Any) -> Columns:
        """The values of a record."""
        if isinstance(record, Mapping):
            values = self._of_object(record)
        elif isinstance(record, list) and (self.sides == 2 or self.layout.columns):
            values = self._of_list(record)
        elif isinstance(record, (str, list)) and self.sides == 1:
            values = [record]
        else:
            wanted = (
                "a JSON object or a list of source and target"
                if self.sides == 2
                else "a JSON object, a string or a list"
            )
            raise LineError("bad JSON", f"expected {wanted}", record)
        return from_values(values, self.max_characters)

    def _of_object(self, record: Mapping[str, Any]) -> list[Any]:
        if self.sides == 1 and not self.layout.columns and {*SIDES} <= record.keys():
            raise LineError("two columns", "a language model takes texts without a source", dict(record))
        self.keys = self.keys or self._keys_of(record)
        keys = self.keys
        if keys == ["target"] and "target" not in record and not self.layout.columns:
            keys = ["text"]
        for key in keys:
            if key not in record:
                both = " and ".join(f'"{shorten(each)}"' for each in keys)
                wanted = '"target" or "text"' if keys == ["text"] else both
                expected = f'expected an object with {wanted}, not without "{shorten(key)}"'
                raise LineError(f'no "{shorten(key)}" key', expected, dict(record))
        return [record[key] for key in keys]

    def _keys_of(self, first: Mapping[str, Any]) -> list[str]:
        names = list(first)
        if columns := self.layout.columns:
            if not any(isinstance(each, int) or each in names for each in columns):
                position(columns[0], names, self.title)  # not a bad line, but another file: fails
            return [each if isinstance(each, str) else names[position(each, names, self.title)] for each in columns]
        usual = [*SIDES] if self.sides == 2 else ["target"]
        if not {"text", *usual} & {*names} or (self.sides == 2 and not {*SIDES} & {*names}):
            raise SeqloomError(f"{self.title} has {listed(names)}: {ask(names, self.sides, self.option)}")
        return usual

    def _of_list(self, record: list[Any]) -> list[Any]:
        if self.layout.is_named:
            raise SeqloomError(f"{self.title} holds lists, which have no names; choose by number, as in --columns 1,2")
        places = [int(each) - 1 for each in self.layout.columns] or [0, 1]
        if max(places) >= len(record) or (not self.layout.columns and len(record) != 2):
            wanted = "source and target" if self.sides == 2 else f"at least {max(places) + 1} items"
            raise LineError(f"{len(record)} items", f"expected a list of {wanted}", record)
        return [record[place] for place in places]
