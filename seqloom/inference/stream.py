"""One source as it arrives: chunks go in, and what is certain by then comes out.

with model.stream() as stream:
    for chunk in chunks:
        print(stream.feed(chunk).final)
print(stream.close().final)

Codec, encoder and search each continue from where they stopped, so a stream ends with the output of `predict`. States
that no hypothesis will read again are dropped: an hour of input takes as much memory as a minute.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from seqloom.contracts import Search
from seqloom.data.limits import length_of, overlong
from seqloom.errors import SeqloomError
from seqloom.inference.combined import combine
from seqloom.inference.constraints import build_constraints, no_output
from seqloom.inference.system import System, build_search
from seqloom.nn.combine.shallow_fusion import LM_WEIGHT
from seqloom.types import Memory, Padded

FORGET = 64  # states at a time: dropping some copies the rest


@dataclass(frozen=True)
class SoFar:
    """What has been written: `final` will not change, `provisional` is the best guess of what follows."""

    final: str
    provisional: str
    times: list[float]  # for each token of `final`: inputs read by then, or seconds of sound


class Stream:
    """`feed` takes what the codec of the source takes: text, or samples of sound."""

    def __init__(
        self,
        system: System,
        *,
        wait: int | None = None,
        lm: Any = None,
        lm_weight: float = LM_WEIGHT,
        search: Search | None = None,
        truncate: bool = False,
        **settings: Any,
    ):
        system = combine(system, wait=wait, lm=lm, lm_weight=lm_weight)
        encoder, decoder, codec = system.model.encoder, system.model.decoder, system.task.source
        if encoder is None or codec is None:
            raise SeqloomError("this run is a language model and reads no source: use `generate`")
        if not encoder.streams:
            raise SeqloomError(
                "this encoder reads the end of a source before its beginning: "
                "train with encoder.bidirectional = false, or another encoder that streams"
            )
        if not decoder.online:
            raise SeqloomError("this decoder reads its whole source before it writes: give `wait`, or use `predict`")
        self.system, self.encoder, self.decoder = system, encoder, decoder
        self.search = search or build_search(system, **settings)
        self.codec_feed, self.seconds = codec.feed(), codec.seconds
        self.truncate, self.fed = truncate, 0  # characters or items; sound may go on for ever
        self.encoder_state = encoder.start(1)
        self.positions: list[np.ndarray] = []  # the whole source, kept only if the task's constraints need it
        self.memory: Memory | None = None
        self.beam: Any = None
        self.closed = False
        self.written: tuple[list[int], list[int]] = ([], [])
        self.shown = SoFar("", "", [])
        self.inputs = 0  # positions that were read
        self.began: float | None = None  # when the first input came, by the wall clock
        self.first_token: float | None = None  # seconds from then until something was certain
        self.working = 0.0  # seconds of computing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and not self.closed and self.inputs:
            self.close()

    def feed(self, chunk: Any) -> SoFar:
        """Some more of the source; a chunk may have any size, also none."""
        if self.closed:
            raise SeqloomError("this stream is closed: open another for the next source")
        return self.advance(self.codec_feed.feed(self.admit(chunk)))

    def admit(self, chunk: Any) -> Any:
        """As much of a chunk as there is room for; more is refused, unless it is to be cut."""
        limit, length = self.system.max_characters, 0 if self.seconds else length_of(chunk)
        before, self.fed = self.fed, self.fed + length
        if self.fed <= limit:
            return chunk
        if not self.truncate:
            raise overlong("the stream", f"more than {limit:,} characters", limit)
        return chunk[: max(limit - before, 0)]

    def close(self) -> SoFar:
        """The source is complete: write the rest."""
        if self.closed:
            return self.so_far()
        return self.advance(self.codec_feed.close(), closed=True)

    @torch.inference_mode()
    def advance(self, positions: np.ndarray, closed: bool = False) -> SoFar:
        began = time.perf_counter()
        self.began = began if self.began is None and len(positions) else self.began
        self.inputs += len(positions)
        if closed and not self.inputs:
            raise SeqloomError("the stream ended before there was anything to read: give at least one token or frame")
        if len(positions) or closed:
            self.read(positions, closed)
        if self.memory is not None and self.may_write():
            if self.beam is None:
                self.beam = self.search.start(self.decoder, self.memory, None, self.constraints())
            self.beam = self.search.advance(self.decoder, self.memory, self.beam)
            self.forget()
        found = self.so_far()
        now = time.perf_counter()
        self.working += now - began
        if found.final and self.first_token is None and self.began is not None:
            self.first_token = now - self.began
        return found

    def read(self, positions: np.ndarray, closed: bool) -> None:
        """Extend the memory by what the encoder makes of further positions."""
        if self.system.task.constrained:
            self.positions.append(positions)
        device = self.system.model.device
        chunk = Padded(torch.as_tensor(positions, device=device)[None], torch.tensor([len(positions)], device=device))
        memory, self.encoder_state = self.encoder.extend(chunk, self.encoder_state, closed)
        self.closed = closed
        if self.memory is None or memory.states.shape[1]:
            memory = self.decoder.prepare(memory)
            self.memory = memory if self.memory is None else self.memory.append(memory)
        self.memory = replace(self.memory, closed=closed)

    def may_write(self) -> bool:
        """Constraints of the task are those of a whole source: until it is complete nothing can be certain."""
        if self.system.task.constrained and not self.closed:
            return False
        return self.beam is not None or bool(self.memory is not None and self.memory.lengths[0])

    def constraints(self) -> list[Any]:
        source = Padded.stack([np.concat(self.positions)]) if self.positions else None
        return build_constraints(self.system, source)

    def forget(self) -> None:
        """Drop the states that no hypothesis will look at again."""
        assert self.memory is not None
        spare = min(self.decoder.first_needed(self.beam.state) - self.memory.offset, int(self.memory.lengths[0]))
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
                raise no_output("this stream")
            tokens, times = found[0].tokens, found[0].times or []
            rest: list[int] = []
        else:
            tokens, rest, times = self.search.so_far(self.beam)[0]
        if (tokens, rest) != self.written:  # most inputs add nothing
            decode = self.system.task.decode
            whole = decode([*tokens, *rest])
            final = decode(tokens) if rest else whole
            self.written = tokens, rest
            self.shown = SoFar(final, whole[len(final) :], self.moments(times, len(tokens)))
        return self.shown

    def moments(self, times: list[int], count: int) -> list[float]:
        """Times in encoder states as inputs, or as seconds of sound."""
        inputs = [min(states * self.encoder.stride, self.inputs) for states in times[:count]]
        return [round(each * (self.seconds or 1), 3) for each in inputs]

    @property
    def real_time_factor(self) -> float | None:
        """Seconds of computing per second of sound."""
        return self.working / (self.inputs * self.seconds) if self.seconds and self.inputs else None
