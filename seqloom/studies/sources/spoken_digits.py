"""Strings of spoken digits, made of the recordings of the Free Spoken Digit Dataset."""

from __future__ import annotations

import tarfile
import wave
from pathlib import Path

import numpy as np

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_STRINGS = {  # how many strings, and the numbers of the takes: 0 to 4 are the test set of the data set itself
    "train": (6000, range(8, 50)),
    "valid": (500, range(5, 8)),
    "test": (500, range(5)),
}
Takes = dict[tuple[str, int, int], np.ndarray]  # by speaker, digit and number


def spoken_digits(folder: Path) -> Splits:
    """Strings of three to five digits, each by one speaker. No take is in two of the splits.

    A table is written after its recordings: if there is one, it is complete.
    """
    home = folder / "spoken-digits"
    takes: Takes = {}
    made = []
    for seed, (name, (count, numbers)) in enumerate(DIGIT_STRINGS.items()):
        table = home / f"{name}.tsv"
        if not table.exists():
            takes = takes or read_takes(data_set("fsdd", "recordings.tar.xz"))
            (home / name).mkdir(parents=True, exist_ok=True)
            chance, lines = np.random.default_rng(seed), []
            for number in range(count):
                digits, samples = digit_string(takes, numbers, chance)
                write_wave(home / name / f"{number:05}.wav", samples)
                lines.append(f"{name}/{number:05}.wav\t{' '.join(DIGITS[digit] for digit in digits)}\n")
            write_file(home, table.name, "".join(lines))
        made.append([str(table)])
    return Splits(*made)


def read_takes(path: Path) -> Takes:
    """The recordings of single digits, 16 bit at 8 kHz, as digit_speaker_number.wav."""
    takes: Takes = {}
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.name.endswith(".wav"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            with wave.open(file) as recording:
                samples = np.frombuffer(recording.readframes(recording.getnframes()), dtype="<i2")
            digit, speaker, number = Path(member.name).stem.split("_")
            takes[speaker, int(digit), int(number)] = samples
    return takes


def digit_string(takes: Takes, numbers: range, chance: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """The digits of a string and its samples: takes of one speaker with up to 100 ms of faint noise around each."""
    speaker = str(chance.choice(sorted({speaker for speaker, _, _ in takes})))
    digits = chance.integers(0, 10, chance.integers(3, 6)).tolist()
    parts = [faint_noise(chance)]
    for digit in digits:
        parts += [takes[speaker, digit, int(chance.choice(numbers))], faint_noise(chance)]
    return digits, np.concatenate(parts)


def faint_noise(chance: np.random.Generator) -> np.ndarray:
    return chance.normal(0, 4, chance.integers(0, 801)).round().astype("<i2")


def write_wave(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(8000)
        recording.writeframes(samples.tobytes())
