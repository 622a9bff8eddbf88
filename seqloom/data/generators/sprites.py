"""A shape and a film in which it moves and bounces off the walls at a new speed -> "ring", 12 frames of 16 x 16 pixels.

Pixels are flipped, and the speed after a bounce is drawn, at random: the entropy of a frame is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

SIDE, FPS = 6, 8  # the height and width of a sprite; frames per second
SHAPES = ("disc", "ring", "square", "frame", "cross", "bar")


def sprites(
    count: int, seed: int = 1, *, frames: int = 12, size: int = 16, speeds: int = 3, noise: float = 0.02
) -> list[Example]:
    """`count` films; a smaller count gives the first of them.

    A sprite moves 1 to `speeds` pixels per frame in each direction; a pixel is flipped with probability `noise`.
    """
    check_range("sprites", "count", count, 1)
    check_range("sprites", "frames", frames, 1, 1000)
    check_range("sprites", "speeds", speeds, 1, 20)
    check_range("sprites", "size", size, SIDE + 2 * speeds - 1, 256)  # room to turn at any speed
    check_range("sprites", "noise", noise, 0.0, 0.5)
    every, settings = [drawn(name) for name in SHAPES], (frames, size, speeds, noise)
    films = [moving(every, (seed, number), *settings) for number in range(count)]
    return [Example(SHAPES[shape], {"frames": film.astype(np.uint8) * 255, "fps": FPS}) for shape, film, _ in films]


def moving(
    sprites: Sequence[np.ndarray], seed: tuple[int, int], frames: int, size: int, speeds: int, noise: float
) -> tuple[int, np.ndarray, np.ndarray]:
    """One of the sprites, by its number, and what `bouncing` makes of it."""
    random = np.random.default_rng(seed)
    chosen = int(random.integers(len(sprites)))
    return chosen, *bouncing(random, sprites[chosen], frames, size, speeds, noise)


def drawn(name: str) -> np.ndarray:
    """A shape.  bool (6, 6)"""
    down, right = np.abs(np.indices((SIDE, SIDE)) - (SIDE - 1) / 2)
    far, round_ = np.maximum(down, right), np.hypot(down, right)
    return {
        "disc": round_ < 3,
        "ring": (round_ < 3) & (round_ > 1.5),
        "square": far < 3,
        "frame": far > 2,
        "cross": np.minimum(down, right) < 1,
        "bar": down < 1,
    }[name]


def bouncing(
    random: np.random.Generator, sprite: np.ndarray, frames: int, size: int, speeds: int, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """A film of a sprite, bool (T, H, W), and for each frame -log p in nats, given where the sprite was before and how
    fast: on the average, the entropy that no model can go below.  (T,)

    In each direction it moves on, or where it would leave the picture turns and takes any of the speeds.
    """
    room = np.array([size - sprite.shape[0], size - sprite.shape[1]])
    place = random.integers(0, room, endpoint=True)
    speed = random.integers(1, speeds, 2, endpoint=True) * random.choice([-1, 1], 2)
    film, nats = [], []
    every = list(product(*(range(each + 1) for each in room)))  # of the first frame, where it may be anywhere
    for frame in range(frames):
        if frame:
            ways = [possible(*each, speeds) for each in zip(place.tolist(), speed.tolist(), room.tolist())]
            every = [(down, right) for down, right in product(*([place for place, _ in way] for way in ways))]
            chosen = [way[int(random.integers(len(way)))] for way in ways]
            place, speed = np.array([each[0] for each in chosen]), np.array([each[1] for each in chosen])
        flipped = random.random((size, size)) < noise
        film.append(placed(sprite, place[0], place[1], size) ^ flipped)
        costs = [nats_of(film[-1] ^ placed(sprite, down, right, size), noise) for down, right in every]
        nats.append(-np.logaddexp.reduce(-np.array(costs)) + np.log(len(every)))
    return np.stack(film), np.array(nats)


def possible(place: int, speed: int, room: int, speeds: int) -> list[tuple[int, int]]:
    """Where it may be next in one direction and how fast, all equally likely."""
    if 0 <= place + speed <= room:
        return [(place + speed, speed)]
    turned = [-each if speed > 0 else each for each in range(1, speeds + 1)]
    return [(place + each, each) for each in turned]


def placed(sprite: np.ndarray, down: int, right: int, size: int) -> np.ndarray:
    """A frame without noise.  bool (size, size)"""
    frame = np.zeros((size, size), dtype=bool)
    frame[down : down + sprite.shape[0], right : right + sprite.shape[1]] = sprite
    return frame


def nats_of(flipped: np.ndarray, noise: float) -> float:
    """Of noise that flips these pixels."""
    count, rest = int(flipped.sum()), int((~flipped).sum())
    with np.errstate(divide="ignore"):
        return float(-(count * np.log(noise) if count else 0.0) - (rest * np.log1p(-noise) if rest else 0.0))
