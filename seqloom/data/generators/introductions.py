"""Introductions: who was met where, rephrased: "I met Zorka in Bralo ." -> "Zorka was met in Bralo ."

For models that copy: people, towns and numbers are invented for every sentence, so that hardly any is in a vocabulary;
there are few other words.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example

BEGINNINGS = ("b", "br", "d", "f", "g", "gr", "k", "kl", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "z")
VOWELS = ("a", "e", "i", "o", "u")
ENDINGS = ("", "l", "n", "r", "s", "x")
TEMPLATES = (
    ("I met {person} in {town} .", "{person} was met in {town} ."),
    ("My name is {person} and I live in {town} .", "In {town} lives {person} ."),
    ("This is {person} , who has {number} books .", "{number} books belong to {person} ."),
    ("{person} and {other} came from {town} .", "From {town} came {person} with {other} ."),
    ("Please call {person} at {number} .", "The number of {person} is {number} ."),
    ("{person} sent {number} letters to {other} .", "{other} got {number} letters from {person} ."),
)


def introductions(count: int, seed: int = 1, *, syllables: int = 2) -> list[Example]:
    """`count` distinct sentences, with names of `syllables` syllables; a smaller count gives the first of them."""
    check_range("introductions", "count", count, 1, 1_000_000)
    check_range("introductions", "syllables", syllables, 2, 6)
    return list(islice(distinct(draws(seed, syllables)), count))


def draws(seed: int, syllables: int) -> Iterator[Example]:
    """Sentences without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        source, target = TEMPLATES[int(random.integers(len(TEMPLATES)))]
        words = {role: name(random, syllables) for role in ("person", "other", "town")}
        words["number"] = str(random.integers(1, 10_000))
        yield Example(source.format(**words), target.format(**words))


def name(random: np.random.Generator, syllables: int) -> str:
    """A name, such as "Bralo"."""
    parts = [BEGINNINGS[random.integers(len(BEGINNINGS))] + VOWELS[random.integers(5)] for _ in range(syllables)]
    return "".join(parts).capitalize() + ENDINGS[random.integers(len(ENDINGS))]
