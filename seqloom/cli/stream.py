"""`seqloom stream`: from standard input to standard output while it arrives: sound, films by name, or text."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError, UnreadableError

if TYPE_CHECKING:
    from seqloom.contracts import Codec
    from seqloom.inference.stream import SoFar, Stream


@click.command()
@options.run
@options.task
@options.wait
@options.beam_size
@click.option("--json", "as_json", is_flag=True, help="One JSON line per change: final, provisional, times.")
@click.option("--timing", is_flag=True, help="Print at the end how long it took.")
@options.limits
@options.settings
@options.device
@options.threads(1)
@options.trust
def stream(
    run: Path,
    task: str,
    wait: int | None,
    beam_size: int | None,
    as_json: bool,
    timing: bool,
    truncate: bool,
    max_characters: int | None,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    trust: bool,
) -> None:
    """Write while the input is still arriving: sound as a WAV stream, films by name, or text, one source per line."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor

    choose_threads(threads)
    model = Predictor.load(run, device, trust, task=task)
    options.set_limit(model, max_characters)
    chosen = options.search_settings(settings, beam_size)
    source = model.task.source
    stream_input(
        lambda: model.stream(wait=wait, truncate=truncate, **chosen), source, as_json, note if timing else None
    )


class Caption:
    """What has been shown of one source: as text, only what is final; as JSON, one line for every change."""

    def __init__(self, as_json: bool):
        self.as_json, self.final, self.provisional = as_json, "", ""

    def show(self, now: SoFar) -> None:
        if self.as_json:
            if (now.final, now.provisional) != (self.final, self.provisional):
                print(json.dumps(vars(now), ensure_ascii=False), flush=True)
        else:
            print(now.final[len(self.final) :], end="", flush=True)
        self.final, self.provisional = now.final, now.provisional

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.as_json and (error[0] is None or self.final):  # what was written ends with a line break
            print(flush=True)


def stream_input(
    begin: Callable[[], Stream], codec: Codec | None, as_json: bool, timing: Callable[[str], None] | None
) -> None:
    """One source of sound, or one source per line: a text, or the name of a film."""
    sound = codec is not None and codec.seconds is not None and not codec.moving
    for number, feed in enumerate([sound_chunks()] if sound else sources_of_lines(codec), start=1):
        stream, caption = begin(), Caption(as_json)
        with caption, nullcontext() if sound else naming(number):
            for chunk in feed:
                caption.show(stream.feed(chunk))
            if stream.inputs or sound:
                caption.show(stream.close())
        if timing and stream.inputs:
            timing(timing_line(stream))


@contextmanager
def naming(number: int) -> Iterator[None]:
    """An error names its line."""
    try:
        yield
    except UnreadableError as bad:
        raise SeqloomError(f"standard input, line {number}: {bad}") from None


def sources_of_lines(codec: Codec | None) -> Iterator[Iterator[Any]]:
    """Each line as it arrives, or the frames of the film that it names."""
    texts = lines(sys.stdin.fileno())
    return (frames_of(codec, "".join(name)) for name in texts) if codec is not None and codec.moving else texts


def frames_of(codec: Codec, name: str) -> Iterator[Any]:
    """The frames of a film one by one; of an empty line none."""
    if name:
        for frame in codec.encode(name):
            yield frame[None]


def timing_line(stream: Stream) -> str:
    """One line on how long it took."""
    first = "nothing was written" if stream.first_token is None else f"first token after {stream.first_token:.3f} s"
    speed = f"{1000 * stream.working / stream.inputs:.2f} ms per input"
    factor = stream.real_time_factor
    return f"{first}; {speed}{'' if factor is None else f'; {factor:.3f} s of computing per second of sound'}."


def sound_chunks() -> Iterator[Any]:
    """Samples of a WAV stream with their rate."""
    from seqloom.data.codecs.wav import samples

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
