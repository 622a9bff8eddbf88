"""`seqloom stream`: from standard input to standard output while it comes, sound or text."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

from seqloom.data.wav import samples
from seqloom.errors import SeqloomError
from seqloom.streaming import SoFar, Stream


class Caption:
    """What has been shown of one source: as text, what is final alone; as JSON, a line whenever something changes."""

    def __init__(self, as_json: bool):
        self.as_json, self.last = as_json, SoFar("", "", [])

    def show(self, now: SoFar) -> None:
        if self.as_json:
            if (now.final, now.provisional) != (self.last.final, self.last.provisional):
                print(json.dumps(vars(now), ensure_ascii=False), flush=True)
        else:
            print(now.final[len(self.last.final) :], end="", flush=True)
        self.last = now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.as_json and (error[0] is None or self.last.final):  # what was said ends with a line
            print(flush=True)


def live(begin: Callable[[], Stream], sound: bool, as_json: bool, timing: Callable[[str], None] | None) -> None:
    """One source of sound, or a source a line of text."""
    feeds = [spoken()] if sound else lines(sys.stdin.fileno())
    for feed in feeds:
        stream, caption = begin(), Caption(as_json)
        with caption:
            for chunk in feed:
                caption.show(stream.feed(chunk))
            if stream.inputs or sound:
                caption.show(stream.close())
        if timing and stream.inputs:
            timing(measured(stream))


def measured(stream: Stream) -> str:
    """One line on how long it took."""
    first = "nothing was written" if stream.first_symbol is None else f"first symbol after {stream.first_symbol:.3f} s"
    speed = f"{1000 * stream.working / stream.inputs:.2f} ms an input"
    factor = stream.real_time_factor
    return f"{first}; {speed}{'' if factor is None else f'; {factor:.3f} s of work for a second of sound'}."


def spoken() -> Iterator[Any]:
    """Samples of a WAV stream with their rate."""
    rate, chunks = samples(sys.stdin.buffer)
    for chunk in chunks:
        yield chunk, rate


def lines(descriptor: int) -> Iterator[Iterator[str]]:
    """The lines of a text, each in pieces as they are typed or arrive. Take a line to its end before the next."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = ""

    def more() -> bool:
        nonlocal rest
        data = os.read(descriptor, 4096)
        try:
            rest += decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise SeqloomError("standard input is not UTF-8; convert it first, for example with iconv") from None
        return bool(data)

    def pieces() -> Iterator[str]:
        nonlocal rest
        while True:
            head, newline, rest = rest.partition("\n")
            if head := head.removesuffix("\r"):
                yield head
            if newline or not more():
                return

    while rest or more():
        yield pieces()
