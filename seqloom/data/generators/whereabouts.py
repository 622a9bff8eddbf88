"""Whereabouts: people walk about and carry things; where is a person, or a thing?

Weston et al. 2015, as in tasks 1 and 2:
"mary went to the garden. mary took the milk. mary went to the office. where is the milk?" -> "office"
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example

PEOPLE = ("mary", "john", "sandra", "daniel")
PLACES = ("garden", "office", "kitchen", "hallway", "bedroom", "bathroom")
THINGS = ("milk", "apple", "football")


def whereabouts(
    count: int, seed: int = 1, *, shortest: int = 3, longest: int = 8, facts: int = 2, entities: int = 0
) -> list[Example]:
    """`count` stories of `shortest` to `longest` sentences. Questions are about things (`facts` = 2) or people (1).

    With `entities`, people, places and things get random names of e0, e1, ... in every story: the answer is only in the
    story. A smaller count gives the first of them.
    """
    check_range("whereabouts", "count", count, 1)
    check_range("whereabouts", "facts", facts, 1, 2)
    check_range("whereabouts", "shortest", shortest, facts)
    check_range("whereabouts", "longest", longest, max(shortest, 3))
    if entities:
        check_range("whereabouts", "entities", entities, len(PEOPLE + PLACES + THINGS))
    return list(islice(distinct(draws(seed, shortest, longest, facts, entities)), count))


def draws(seed: int, shortest: int, longest: int, facts: int, entities: int) -> Iterator[Example]:
    """Stories without end, not all distinct."""
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
            text, answer = " ".join(rename(word, called) for word in text.split()), called[answer]
        yield Example(text, answer)


def story(random: np.random.Generator, length: int, carries: bool) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Its sentences, and where each person and thing that it mentions is at its end."""
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


def rename(word: str, names: dict[str, str]) -> str:
    """A word by its other name, if it has one; marks at its end stay."""
    plain = word.rstrip(".?")
    return names.get(plain, plain) + word[len(plain) :]
