"""Slots: dialogues in which the reply repeats a city that was named some turns before, and a number of the last turn.

Serban et al. 2016 ask whether a model remembers more than the last turn. With the city three turns before the reply:
"a table in oslo please . __eou__ of course . for how many ? __eou__ for seven . __eou__" -> "seven in oslo ."
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.dialogues import join_turns
from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example

CITIES = (
    *("athens", "berlin", "bern", "cairo", "dublin", "geneva", "hanoi", "kyoto", "lagos", "lima"),
    *("lisbon", "madrid", "nairobi", "oslo", "paris", "prague", "quito", "riga", "rome", "vienna"),
)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ORDERS = ("a table in {} please .", "i need a room in {} .", "find me a hotel in {} .", "we go to {} . any seats ?")
ANSWERS = ("of course .", "with pleasure .", "sure .", "let me see .", "a moment .")
QUESTIONS = ("for how many ?", "how many are you ?", "for how many people ?")
ASIDES = ("wait a moment please .", "no hurry .", "is it raining ?", "not that i know .", "thank you .", "all right .")
ENDINGS = ("for {} .", "{} of us .", "we are {} .", "{} please .", "just {} .")


def slots(count: int, seed: int = 1, *, distance: int = 3, cities: int = 20) -> list[Example]:
    """`count` dialogues; the city is named `distance` turns before the reply.

    A smaller count gives the first of them.
    """
    check_range("slots", "count", count, 1)
    check_range("slots", "distance", distance, 3, 50)
    check_range("slots", "cities", cities, 2, len(CITIES))
    return list(islice(distinct(draws(seed, distance, cities)), count))


def draws(seed: int, distance: int, cities: int) -> Iterator[Example]:
    """Dialogues without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        city, number = str(random.choice(CITIES[:cities])), str(random.choice(NUMBERS))
        turns = [str(random.choice(ORDERS)).format(city)]
        turns += [str(random.choice(ASIDES)) for _ in range(distance - 3)]
        turns.append(f"{random.choice(ANSWERS)} {random.choice(QUESTIONS)}")
        turns.append(str(random.choice(ENDINGS)).format(number))
        yield Example(join_turns(turns), f"{number} in {city} .")
