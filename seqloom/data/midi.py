"""A standard MIDI file of one track: a header, and events with the ticks since the one before (MIDI 1.0, format 0)."""

from __future__ import annotations

from collections.abc import Sequence

TICKS = 480  # per quarter note
NOTE_ON, NOTE_OFF, LOUDNESS = 0x90, 0x80, 80
END = bytes([0xFF, 0x2F, 0x00])


def midi_file(steps: Sequence[Sequence[int]], step_ms: int) -> bytes:
    """Notes, each step a quarter note that lasts `step_ms`; one that is in neighbouring steps is held."""
    track = [variable(0), bytes([0xFF, 0x51, 0x03]), (1000 * step_ms).to_bytes(3, "big")]  # the tempo
    sounding: set[int] = set()
    waited = 0
    for notes in [*map(set, steps), set()]:
        events = [(NOTE_OFF, note) for note in sorted(sounding - notes)]
        events += [(NOTE_ON, note) for note in sorted(notes - sounding)]
        for kind, note in events:
            track += [variable(waited), bytes([kind, note, LOUDNESS if kind == NOTE_ON else 0])]
            waited = 0
        sounding, waited = notes, waited + TICKS
    body = b"".join(track) + variable(0) + END
    header = b"MThd" + b"".join(each.to_bytes(size, "big") for each, size in ((6, 4), (0, 2), (1, 2), (TICKS, 2)))
    return header + b"MTrk" + len(body).to_bytes(4, "big") + body


def variable(number: int) -> bytes:
    """A number of variable length: seven bits per byte, all bytes but the last with the highest bit set."""
    found = [number & 0x7F]
    while number := number >> 7:
        found.append(0x80 | (number & 0x7F))
    return bytes(reversed(found))
