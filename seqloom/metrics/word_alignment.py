"""The words of two sentences matched as METEOR does it: most matches, then fewest chunks, then the shortest distance.

Denkowski & Lavie 2014, section 2.1, "Meteor Universal": every word may be matched once. Stages match words in turn:
exact words, then stems, then perhaps synonyms; two words are matched by the first stage in which they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Stage = Callable[[str], Collection[str]]  # what a word may be matched by: itself, its stem, its sets of synonyms
BEAM = 40  # as in the program of METEOR 1.5


@dataclass(frozen=True)
class Alignment:
    """`matches` counts pairs of words by stage; `chunks` are runs of them that are adjacent in both sentences."""

    matches: tuple[int, ...]
    chunks: int


@dataclass(frozen=True, slots=True)
class Path:
    """The matches of the first words of a sentence."""

    matches: tuple[int, ...]  # by stage
    chunks: int = 0
    distance: int = 0
    used: int = 0  # places of the other sentence, as bits
    last: int = -2  # the place that the word before was matched with; -2: it was not

    def worth(self) -> tuple[int, int, int, tuple[int, ...]]:
        """Lower is better; of equal paths that with more matches by earlier stages."""
        return -sum(self.matches), self.chunks, self.distance, tuple(-each for each in self.matches)

    def match(self, word: int, place: int, stage: int) -> Path:
        matches = tuple(each + (number == stage) for number, each in enumerate(self.matches))
        chunks, distance = self.chunks + (place != self.last + 1), self.distance + abs(word - place)
        return Path(matches, chunks, distance, self.used | 1 << place, place)

    def skip(self) -> Path:
        return Path(self.matches, self.chunks, self.distance, self.used)


def align(found: Sequence[str], expected: Sequence[str], stages: Sequence[Stage]) -> Alignment:
    """The best alignment that a beam from left to right finds."""
    choices = candidates(found, expected, stages)
    rivals = [sum(place in each for each in choices) for place in range(len(expected))]
    paths = [Path((0,) * len(stages))]
    for word, places in enumerate(choices):
        may_skip = not places or any(rivals[place] > 1 for place in places)  # else a match takes nothing from others
        longer: dict[tuple[int, int], Path] = {}  # the best of those that differ in nothing that matters later
        for path in paths:
            further = [path.match(word, place, stage) for place, stage in places.items() if not path.used >> place & 1]
            for each in [*further, path.skip()] if may_skip or not further else further:
                key = each.used, each.last
                if key not in longer or each.worth() < longer[key].worth():
                    longer[key] = each
        paths = sorted(longer.values(), key=Path.worth)[:BEAM]
    return Alignment(paths[0].matches, paths[0].chunks)


def candidates(found: Sequence[str], expected: Sequence[str], stages: Sequence[Stage]) -> list[dict[int, int]]:
    """For each word the places of the other sentence that it may be matched with, and the stage."""
    choices: list[dict[int, int]] = [{} for _ in found]
    for number, stage in enumerate(stages):
        theirs: dict[str, list[int]] = {}
        for place, word in enumerate(expected):
            for form in stage(word):
                theirs.setdefault(form, []).append(place)
        for places, word in zip(choices, found):
            for form in stage(word):
                for place in theirs.get(form, ()):
                    places.setdefault(place, number)
    return choices
