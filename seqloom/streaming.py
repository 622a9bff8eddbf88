"""One source as it comes: chunks go in, and what is certain by then comes out.

with model.stream() as stream:
    for chunk in chunks:
        print(stream.feed(chunk).final)
print(stream.close().final)

Codec, encoder and search each go on from where they stopped, so that a stream ends with the output of `predict`. What
nobody will look at again is forgotten: an hour of input takes as much memory as a minute.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from seqloom.contracts import Decoder
from seqloom.errors import SeqloomError
from seqloom.plain_contracts import Search
from seqloom.types import Memory, Padded

if TYPE_CHECKING:
    from seqloom.predict import Predictor

FORGET = 64  # states at a time: to forget copies what stays


@dataclass(frozen=True)
class SoFar:
    """What has been written: `final` will stay, `provisional` is the best guess of how it goes on."""

    final: str
    provisional: str
    times: list[float]  # for each symbol of `final`: inputs read by then, or seconds of sound


class Stream:
    """`Predictor.stream` makes it; `feed` takes what its codec feeds on: text, or samples of sound."""

    def __init__(self, predictor: Predictor, decoder: Decoder, search: Search):
        encoder, codec = predictor.model.encoder, predictor.task.source
        if encoder is None or codec is None:
            raise SeqloomError("this run is a language model and reads no source: use `generate`")
        if not encoder.streams:
            raise SeqloomError(
                "this encoder reads the end of a source before its beginning: "
                "train with encoder.bidirectional = false, or another encoder that streams"
            )
        if not decoder.online:
            raise SeqloomError("this decoder reads its whole source before it writes: give `wait`, or use `predict`")
        self.predictor, self.encoder, self.decoder, self.search = predictor, encoder, decoder, search
        self.feeding, self.seconds = codec.feed(), codec.seconds
        self.reading = encoder.start(1)
        self.memory: Memory | None = None
        self.beam: Any = None
        self.closed = False
        self.said: tuple[list[int], list[int]] = ([], [])
        self.shown = SoFar("", "", [])
        self.inputs = 0  # positions that were read
        self.began: float | None = None  # by the clock on the wall, when the first input came
        self.first_symbol: float | None = None  # seconds from then until something was certain
        self.working = 0.0  # seconds spent on all of it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and not self.closed and self.inputs:
            self.close()

    def feed(self, chunk: Any) -> SoFar:
        """Some more of the source; a chunk may be of any size, also empty."""
        if self.closed:
            raise SeqloomError("this stream is closed: begin another for the next source")
        return self.advance(self.feeding.feed(chunk))

    def close(self) -> SoFar:
        """The source is complete: all that is left to write."""
        if self.closed:
            return self.so_far()
        return self.advance(self.feeding.close(), closed=True)

    @torch.inference_mode()
    def advance(self, positions: np.ndarray, closed: bool = False) -> SoFar:
        began = time.perf_counter()
        self.began = began if self.began is None and len(positions) else self.began
        self.inputs += len(positions)
        if closed and not self.inputs:
            raise SeqloomError("the stream ended before there was anything to read: give at least one symbol or frame")
        if len(positions) or closed:
            self.read(positions, closed)
        if self.memory is not None and (self.memory.lengths[0] or self.beam is not None):
            if self.beam is None:
                constraints = self.predictor.constraints((), ())
                self.beam = self.search.start(self.decoder, self.memory, None, constraints)
            self.beam = self.search.advance(self.decoder, self.memory, self.beam)
            self.forget()
        found = self.so_far()
        now = time.perf_counter()
        self.working += now - began
        if found.final and self.first_symbol is None and self.began is not None:
            self.first_symbol = now - self.began
        return found

    def read(self, positions: np.ndarray, closed: bool) -> None:
        """The memory with what the encoder makes of further positions."""
        values = torch.as_tensor(positions, device=self.predictor.device)[None]
        chunk = Padded(values, torch.tensor([len(positions)], device=self.predictor.device))
        memory, self.reading = self.encoder.extend(chunk, self.reading, closed)
        self.closed = closed
        if self.memory is None or memory.states.shape[1]:
            memory = self.decoder.prepare(memory)
            self.memory = memory if self.memory is None else self.memory.append(memory)
        self.memory = replace(self.memory, closed=closed)

    def forget(self) -> None:
        """Drop the states that no hypothesis will look at again."""
        assert self.memory is not None
        spare = min(self.decoder.needed(self.beam.state) - self.memory.offset, int(self.memory.lengths[0]))
        if spare >= FORGET:
            self.memory = self.memory.forget(spare)

    def so_far(self) -> SoFar:
        """What has been written by now."""
        if self.beam is None:
            return self.shown
        if self.closed:
            assert self.memory is not None
            found = self.search.finish(self.decoder, self.memory, self.beam)[0]
            if not found:
                raise SeqloomError("no output of this stream meets the constraints within the length limit")
            tokens, times = found[0].tokens, found[0].times or []
            rest: list[int] = []
        else:
            tokens, rest, times = self.search.so_far(self.beam)[0]
        if (tokens, rest) != self.said:  # most inputs say nothing new
            decode = self.predictor.task.decode
            whole = decode([*tokens, *rest])
            final = decode(tokens) if rest else whole
            self.said, self.shown = (tokens, rest), SoFar(final, whole[len(final) :], self.moments(times, len(tokens)))
        return self.shown

    def moments(self, times: list[int], count: int) -> list[float]:
        """How much of the source states stand for: inputs, or seconds of sound."""
        inputs = [min(states * self.encoder.stride, self.inputs) for states in times[:count]]
        return [round(each * (self.seconds or 1), 3) for each in inputs]

    @property
    def real_time_factor(self) -> float | None:
        """Seconds of work for a second of sound."""
        return self.working / (self.inputs * self.seconds) if self.seconds and self.inputs else None
