"""The items of a JSON array, one at a time, so that a file of any size takes little memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any

from seqloom.data.lines import open_file, title_of
from seqloom.errors import SeqloomError, one_line

CHUNK = 1 << 16  # bytes
MAX_ITEM = 1 << 24  # characters; where an item is malformed, no more is read to find its end
SPACE = " \t\n\r"


def is_array(name: str) -> bool:
    """Whether a file begins as a JSON array; else it may hold one object per line."""
    with open_file(name) as file:
        begin = file.read(CHUNK).removeprefix(b"\xef\xbb\xbf").lstrip()
    return begin.startswith(b"[")


def array_items(name: str) -> Iterator[Any]:
    """The items of an array. What is not JSON is named with its line."""
    with open_file(name) as file:
        yield from _Items(file, title_of(name))


class _Items:
    """A window of the text, from which items are taken."""

    def __init__(self, file: IO[bytes], title: str):
        self.file, self.title = file, title
        self.decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self.text, self.place, self.lines, self.ended = "", 0, 1, False

    def __iter__(self) -> Iterator[Any]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
        else:
            while True:
                yield self._item()
                if self._expect(",]") == "]":
                    break
        if self._peek():
            raise self._error("expected the end of the file after the array", self.place)

    def _item(self) -> Any:
        self._peek()
        size = CHUNK
        while True:
            try:
                value, self.place = json.JSONDecoder().raw_decode(self.text, self.place)
                return value
            except RecursionError:
                raise self._error("the item is nested too deeply", self.place) from None
            except json.JSONDecodeError as error:  # perhaps only because the window ends
                if len(self.text) - self.place > MAX_ITEM or not self._more(size):
                    raise self._error(f"{error.msg[0].lower()}{error.msg[1:]}", error.pos) from None
                size *= 2
            except ValueError as error:  # a number of thousands of digits
                raise self._error(one_line(error), self.place) from None

    def _peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in SPACE:
                self.place += 1
            if self.place < len(self.text) or not self._more():
                return self.text[self.place : self.place + 1]

    def _expect(self, characters: str) -> str:
        found = self._peek()
        if not found or found not in characters:
            wanted = " or ".join(f"{each!r}" for each in characters)
            raise self._error(f"expected {wanted}", self.place)
        self.place += 1
        return found

    def _more(self, size: int = CHUNK) -> bool:
        """Move the window on; False at the end of the file."""
        if self.ended:
            return False
        raw = self.file.read(size)
        self.ended = not raw
        try:
            added = self.decode(raw, self.ended)
        except UnicodeDecodeError as error:
            byte = raw[min(error.start, len(raw) - 1)] if raw else 0
            raise self._error(f"expected UTF-8, found byte 0x{byte:02X}", len(self.text)) from None
        self.lines += self.text.count("\n", 0, self.place)
        self.text, self.place = self.text[self.place :] + added, 0
        return not self.ended

    def _error(self, what: str, place: int) -> SeqloomError:
        line = self.lines + self.text.count("\n", 0, place)
        end = ", where the file ends" if self.ended and place >= len(self.text.rstrip()) else ""
        return SeqloomError(f"{self.title} is not a JSON array: {what} in line {line:,}{end}; write the file again")
