"""Mouths that speak: films of 12 x 12 pixels with their sound -> "pat no red dog".

Each letter has a shape of the mouth and two tones. Lips do not tell p from b and t from d, nor the sound m from n and o
from u; what a word is then follows from its place in the sentence. Speakers differ in size, place and pitch. A value is
a dictionary of arrays, which `seqloom data mouths --out FILE` writes as NPZ files beside the table.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

PIXELS, FPS, RATE = 12, 25, 8000
STEP = RATE // FPS  # samples per frame
SENTENCE = (
    ("pat", "need", "drag", "melt", "pare", "tip"),
    ("a", "no", "ten", "our"),
    ("red", "big", "tame", "old", "bare", "pale"),
    ("bat", "dog", "dame", "rope", "dip", "lamb", "nail", "moon"),
    ("on", "in", "at"),
    ("land", "sea", "lake", "road", "park", "pond"),
)  # the words that may stand at each place
MOUTHS = {  # half the width and height of the opening, teeth, tongue, pressed lips
    "a": (4.0, 4.0, 0, 0, 0),
    "e": (4.8, 2.2, 1, 0, 0),
    "i": (5.0, 1.0, 1, 0, 0),
    "o": (2.6, 3.4, 0, 0, 0),
    "u": (1.6, 1.6, 0, 0, 0),
    "p": (4.0, 0.0, 0, 0, 0),
    "b": (4.0, 0.0, 0, 0, 0),
    "m": (3.0, 0.0, 0, 0, 1),
    "t": (3.4, 1.6, 1, 1, 0),
    "d": (3.4, 1.6, 1, 1, 0),
    "n": (3.0, 1.0, 0, 1, 0),
    "l": (3.4, 3.0, 0, 1, 0),
    "r": (2.0, 2.2, 1, 0, 0),
    "s": (4.2, 0.7, 1, 0, 0),
    "k": (3.0, 2.6, 0, 0, 0),
    "g": (3.0, 2.6, 1, 1, 0),
    " ": (3.5, 0.2, 0, 0, 0),
}
TONES = {  # in Hz; letters without a voice are noise of that colour
    "a": (700, 1200),
    "e": (500, 1900),
    "i": (300, 2300),
    "o": (430, 900),
    "u": (430, 900),
    "p": (900, 1500),
    "b": (350, 1500),
    "m": (250, 1100),
    "t": (1700, 2800),
    "d": (400, 2700),
    "n": (250, 1100),
    "l": (380, 1400),
    "r": (480, 1600),
    "s": (2600, 3400),
    "k": (1300, 2000),
    "g": (420, 2100),
}
VOICELESS = frozenset("ptks")


def mouths(
    count: int,
    seed: int = 1,
    *,
    words: int = 6,
    sound: bool = True,
    noise: float = 12.0,
    snr: float = 10.0,
    shortest: int = 3,
    longest: int = 6,
) -> list[Example]:
    """`count` films; a smaller count gives the first of them.

    A film has up to `words` words that follow each other, a letter `shortest` to `longest` frames; pixels have noise of
    that deviation, and the sound is `snr` decibels louder than its own.
    """
    check_range("mouths", "count", count, 1)
    check_range("mouths", "words", words, 1, len(SENTENCE))
    check_range("mouths", "noise", noise, 0, 100)
    check_range("mouths", "snr", snr, -60, 60)
    check_range("mouths", "shortest", shortest, 1, 20)
    check_range("mouths", "longest", longest, shortest, 20)
    return [
        spoken(np.random.default_rng((seed, number)), words, sound, noise, snr, shortest, longest)
        for number in range(count)
    ]


def spoken(
    random: np.random.Generator, words: int, sound: bool, noise: float, snr: float, shortest: int, longest: int
) -> Example:
    """One film and its text."""
    count = int(random.integers(1, words, endpoint=True))
    first = int(random.integers(0, len(SENTENCE) - count, endpoint=True))
    text = " ".join(str(random.choice(each)) for each in SENTENCE[first : first + count])
    durations = [1 if letter == " " else int(random.integers(shortest, longest, endpoint=True)) for letter in text]
    letters = [" ", *(letter for letter, frames in zip(text, durations) for _ in range(frames)), " "]
    film = {"frames": render(random, letters, noise), "fps": FPS}
    return Example(film | ({"sound": pronounce(random, letters, snr), "rate": RATE} if sound else {}), text)


def render(random: np.random.Generator, letters: list[str], noise: float) -> np.ndarray:
    """A mouth in each frame, which moves from one shape to the next.  uint8 (T, 12, 12)"""
    shapes = np.array([MOUTHS[letter] for letter in letters], dtype=float)  # (T, 5)
    shapes[1:] = 0.7 * shapes[1:] + 0.3 * shapes[:-1]
    wander = np.cumsum(random.normal(0, 0.15, (len(letters), 2)), axis=0) + random.uniform(-0.7, 0.7, 2)
    wide, high, teeth, tongue, pressed = (each[:, None, None] for each in shapes.T * random.uniform(0.9, 1.1))
    down, right = np.indices((PIXELS, PIXELS))[:, None] + 0.5 - PIXELS / 2 - wander.T.clip(-1.2, 1.2)[:, :, None, None]
    reach = np.hypot(right / (wide + 0.3), down / (high + 0.3))  # 1 at the rim of the opening
    lips = np.hypot(right / (wide + 1.6), down / (high + 1.4 - 0.5 * pressed))
    skin, red, dark = random.uniform(150, 190), random.uniform(90, 110), 20.0
    picture = np.full((len(letters), PIXELS, PIXELS), skin)
    picture = np.where(lips <= 1, red - 40 * pressed, picture)
    inside = (reach <= 1) & (high > 0.3)
    picture = np.where(inside, dark, picture)
    picture = np.where(inside & (down < -0.3 * high), dark + 210 * teeth, picture)
    picture = np.where(inside & (down > 0.3 * high), dark + 90 * tongue, picture)
    return np.clip((picture + random.normal(0, noise, picture.shape)).round(), 0, 255).astype(np.uint8)


def pronounce(random: np.random.Generator, letters: list[str], snr: float) -> np.ndarray:
    """Two tones for each letter, in noise.  int16 (n,)"""
    pitch, loudness = random.uniform(0.95, 1.05), 0.15
    tones = np.array([TONES.get(letter, (0, 0)) for letter in letters], dtype=float) * pitch  # (T, 2)
    phases = 2 * np.pi * np.cumsum(np.repeat(tones, STEP, axis=0) / RATE, axis=0)  # (n, 2)
    voice = np.sin(phases) @ np.array([1.0, 0.7])
    hoarse = np.repeat([letter in VOICELESS for letter in letters], STEP)
    voice = np.where(hoarse, 0.8 * voice * random.normal(0, 1, len(voice)), voice)
    silent = np.repeat([letter == " " for letter in letters], STEP)
    power = float(np.mean(voice[~silent] ** 2))
    heard = np.where(silent, 0, voice) + random.normal(0, np.sqrt(power / 10 ** (snr / 10)), len(voice))
    heard *= loudness / np.sqrt(np.mean(heard**2))
    return np.clip((heard * 2**15).round(), -(2**15), 2**15 - 1).astype(np.int16)
