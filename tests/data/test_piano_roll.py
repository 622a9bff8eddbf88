"""Piano rolls: notes to vectors and back, mistakes in one line, MIDI files read back by a reader of the test's own."""

import json

import numpy as np
import pytest

from seqloom.data.codecs.piano_roll import PianoRoll
from seqloom.data.midi import midi_file, variable
from seqloom.data.readers import read
from seqloom.errors import UnreadableError

PIECE = [[60, 64, 67], [60], [], [21, 108]]


def test_the_keys_of_a_step_are_ones():
    roll = PianoRoll().encode(PIECE)
    assert roll.shape == (4, 88)
    assert roll.dtype == np.float32
    assert np.argwhere(roll).tolist() == [[0, 39], [0, 43], [0, 46], [1, 39], [3, 0], [3, 87]]
    assert PianoRoll().decode(roll) == PIECE


@pytest.mark.parametrize("value", [PIECE, "60,64,67 60 - 21,108", "67,60,64,60 60  -  108,21"])
def test_lists_and_texts_are_one_piece(value):
    codec = PianoRoll()
    assert codec.normal(value) == PIECE
    assert codec.line(value) == "60,64,67 60 - 21,108"
    assert codec.elements(value) == 4
    assert codec.content(value) == codec.content(PIECE)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "has no steps"),
        ([], "has no steps"),
        ([[60], 61], "step 2 of the piece is 61"),
        ("60 61,x", "step 2 of the piece has 'x', which is no note"),
        ([[60], [True]], "step 2 of the piece has True"),
        ([[60.5]], "step 1 of the piece has 60.5"),
        ("60 20", "step 2 of the piece has the note 20, which no key plays; expected 21 to 108"),
        ([[109]], "the note 109"),
        ("60,,61", "step 1 of the piece has"),
    ],
)
def test_what_is_no_piece_is_one_line(value, problem):
    with pytest.raises(UnreadableError, match=problem) as caught:
        PianoRoll().encode(value)
    assert "\n" not in str(caught.value)


def test_a_json_line_is_a_piece_and_silent_steps_stay(tmp_path):
    path = tmp_path / "pieces.jsonl"
    path.write_text("".join(json.dumps(piece) + "\n" for piece in (PIECE, [[], [61], []])))
    found = [example.target for example in read([path], 1)]
    assert found == ["60,64,67 60 - 21,108", "- 61 -"]


def notes_of_file(content: bytes) -> list[tuple[int, int, int]]:
    """(begin, end, note) in ticks, of a MIDI file of one track."""
    assert content[:14] == b"MThd" + bytes([0, 0, 0, 6, 0, 0, 0, 1]) + (480).to_bytes(2, "big")
    assert content[14:18] == b"MTrk"
    assert int.from_bytes(content[18:22], "big") == len(content) - 22
    place, now, begun, found = 22, 0, {}, []
    while place < len(content):
        delta = 0
        while True:
            byte = content[place]
            place, delta = place + 1, delta << 7 | byte & 0x7F
            if byte < 0x80:
                break
        now += delta
        kind = content[place]
        if kind == 0xFF:
            place += 3 + content[place + 2]
            continue
        note, place = content[place + 1], place + 3
        if kind == 0x90:
            assert note not in begun
            begun[note] = now
        else:
            found.append((begun.pop(note), now, note))
    assert not begun
    return sorted(found)


def test_a_midi_file_has_every_note_and_holds_those_of_neighbouring_steps():
    expected = [(0, 480, 64), (0, 480, 67), (0, 960, 60), (1440, 1920, 21), (1440, 1920, 108)]
    assert notes_of_file(PianoRoll().to_file(PIECE)) == expected


def test_a_long_silence_is_one_number_of_several_bytes():
    steps = [[60], *[[]] * 1000, [60]]
    assert notes_of_file(midi_file(steps, 250)) == [(0, 480, 60), (1001 * 480, 1002 * 480, 60)]
    assert [variable(n).hex() for n in (0, 127, 128, 16383, 16384)] == ["00", "7f", "8100", "ff7f", "818000"]


def test_the_tempo_is_that_of_the_steps():
    assert bytes([0xFF, 0x51, 3]) + (125_000).to_bytes(3, "big") in PianoRoll(step_ms=125).to_file(PIECE)
