"""Whereabouts: people walk about and carry things; where is somebody, or something?

Weston et al. 2015, in the manner of tasks 1 and 2:
"mary went to the garden. mary took the milk. mary went to the office. where is the milk?" -> "office"
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.drawing import distinct, expect
from seqloom.types import Example

PEOPLE = ("mary", "john", "sandra", "daniel")
PLACES = ("garden", "office", "kitchen", "hallway", "bedroom", "bathroom")
THINGS = ("milk", "apple", "football")


def whereabouts(
    count: int, seed: int = 1, *, shortest: int = 3, longest: int = 8, facts: int = 2, entities: int = 0
) -> list[Example]:
    """So many stories of so many sentences. With 2 `facts` the questions are about things, with 1 about people.

    With `entities`, people, places and things are called e0, e1, ... of so many names, drawn anew for every story: who
    answers must have read it. Fewer of the same seed are the first of them.
    """
    expect("whereabouts", "count", count, 1)
    expect("whereabouts", "facts", facts, 1, 2)
    expect("whereabouts", "shortest", shortest, facts)
    expect("whereabouts", "longest", longest, max(shortest, 3))
    if entities:
        expect("whereabouts", "entities", entities, len(PEOPLE + PLACES + THINGS))
    return list(islice(distinct(draws(seed, shortest, longest, facts, entities)), count))


def draws(seed: int, shortest: int, longest: int, facts: int, entities: int) -> Iterator[Example]:
    """Stories without end; the same may come twice."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        sentences, people, things = story(random, length, carries=facts == 2)
        whereabouts = things if facts == 2 else people
        if not whereabouts:  # nothing was taken
            continue
        asked = str(random.choice(list(whereabouts)))
        question = f"where is {'the ' * (facts == 2)}{asked}?"
        text, answer = " ".join([*sentences, question]), whereabouts[asked]
        if entities:
            names = [f"e{number}" for number in random.permutation(entities)]
            called = dict(zip((*PEOPLE, *PLACES, *THINGS), names))
            text, answer = " ".join(renamed(word, called) for word in text.split()), called[answer]
        yield Example(text, answer)


def story(random: np.random.Generator, length: int, carries: bool) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Its sentences, and where everybody and everything is at its end, as far as it tells."""
    people: dict[str, str] = {}
    things: dict[str, str] = {}
    holders: dict[str, str] = {}
    sentences: list[str] = []
    while len(sentences) < length:
        person = str(random.choice(PEOPLE))
        held = [thing for thing, holder in holders.items() if holder == person]
        free = [thing for thing in THINGS if thing not in holders and things.get(thing, people.get(person)) is not None]
        free = [thing for thing in free if things.get(thing, people.get(person)) == people.get(person)]
        deed = random.random()
        if carries and person in people and deed < 0.3 and free:
            thing = str(random.choice(free))
            holders[thing], things[thing] = person, people[person]
            sentences.append(f"{person} took the {thing}.")
        elif carries and held and deed < 0.45:
            del holders[thing := str(random.choice(held))]
            sentences.append(f"{person} dropped the {thing}.")
        else:
            people[person] = str(random.choice([place for place in PLACES if place != people.get(person)]))
            things |= dict.fromkeys(held, people[person])
            sentences.append(f"{person} went to the {people[person]}.")
    return sentences, people, things


def renamed(word: str, names: dict[str, str]) -> str:
    """A word by its other name, if it has one; what ends a sentence stays."""
    plain = word.rstrip(".?")
    return names.get(plain, plain) + word[len(plain) :]
