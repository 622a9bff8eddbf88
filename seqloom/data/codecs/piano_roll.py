"""Polyphonic music as a piano roll: at each time step, which of the 88 keys sound.

A value is a list of time steps, each a list of MIDI numbers (60 is middle C), or a text with steps separated by spaces
and notes by commas, "-" for silence: "60,64,67 62 -". Boulanger-Lewandowski, Bengio & Vincent 2012.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.midi import midi_file
from seqloom.errors import UnreadableError, shown

LOWEST, HIGHEST = 21, 108  # the keys of a piano, A0 to C8
KEYS = HIGHEST - LOWEST + 1
SILENCE = "-"
EXPECTED = 'expected steps of notes, such as "60,64,67 62 -" or [[60, 64, 67], [62], []]'


class PianoRoll(Codec):
    """Pieces <-> float32 (T, 88), 1 where a key sounds. `step_ms` is how long a step lasts in a MIDI file."""

    features = KEYS
    suffix: ClassVar[str] = ".mid"

    def __init__(self, *, step_ms: int = 250):
        if not 1 <= step_ms <= 10_000:
            raise ValueError(f"step_ms = {step_ms} must be from 1 to 10,000")
        self.step_ms = step_ms

    def fit(self, values: Iterable[Any]) -> Self:
        """There is nothing to learn."""
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        steps = notes_of(value)
        roll = np.zeros((len(steps), KEYS), dtype=np.float32)
        for row, notes in zip(roll, steps):
            row[[note - LOWEST for note in notes]] = 1
        return roll  # (T, 88)

    def decode(self, values: Any, source: Any = None) -> list[list[int]]:
        return [(np.flatnonzero(row > 0.5) + LOWEST).tolist() for row in as_numpy(values)]

    def content(self, value: Any) -> str:
        return self.line(value)

    def elements(self, value: Any) -> int:
        return len(notes_of(value))

    def normal(self, value: Any) -> list[list[int]]:
        """The value as a perfect output would be."""
        return self.decode(self.encode(value))

    def line(self, value: Any) -> str:
        return " ".join(",".join(map(str, sorted(set(notes)))) or SILENCE for notes in notes_of(value))

    def pieces(self, values: Any) -> list[str]:
        """Each step for display."""
        return self.line(self.decode(values)).split()

    def to_file(self, value: Any) -> bytes:
        """A MIDI file; a note that sounds in neighbouring steps is held."""
        return midi_file(notes_of(value), self.step_ms)

    def save(self, folder: Path, name: str) -> None:
        """There is nothing to save."""

    def load(self, folder: Path, name: str) -> Self:
        return self


def notes_of(value: Any) -> list[list[int]]:
    """The notes of each step; one line about the first that is none."""
    steps = [[] if step == SILENCE else step.split(",") for step in value.split()] if isinstance(value, str) else value
    if not isinstance(steps, (list, tuple)) or not steps:
        raise UnreadableError(f"the piece {shown(value)} has no steps; {EXPECTED}")
    found = []
    for place, step in enumerate(steps, start=1):
        if not isinstance(step, (list, tuple)):
            raise UnreadableError(f"step {place} of the piece is {shown(step)}; {EXPECTED}")
        found.append([note_of(note, place) for note in step])
    return found


def note_of(note: Any, place: int) -> int:
    """A MIDI number, of a text or of a whole number."""
    number = note
    if isinstance(note, str) and note.isascii() and note.isdigit() and len(note) <= 4:
        number = int(note)
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise UnreadableError(f"step {place} of the piece has {shown(note)}, which is no note; {EXPECTED}")
    if not LOWEST <= number <= HIGHEST:
        raise UnreadableError(
            f"step {place} of the piece has the note {number}, which no key plays; expected {LOWEST} to {HIGHEST}"
        )
    return int(number)
