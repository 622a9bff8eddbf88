"""What a first look at the data tells: how much, how long, how alike the two sides are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from seqloom.data.kinds import Kind, is_text, kind_of
from seqloom.types import Example

PHONEME_CHARACTERS = 4  # "AH0" has three, an IPA affricate with length four
PHONEME_INVENTORY = 200  # no language has more, stress and tone marks included
ENOUGH = 2_000  # examples, spread over all, to tell kinds of data apart


@dataclass(frozen=True)
class Side:
    """The texts of one side."""

    mean_characters: float
    mean_words: float  # between white space


@dataclass(frozen=True)
class Survey:
    """What the choice of a recipe needs."""

    examples: int  # in all
    source: Side | None  # None for a language model
    target: Side
    phoneme_share: float  # of the running target words, those that look like phonemes: near 1 for "L UW M"
    shares_alphabet: bool  # the same characters on both sides
    kind: Kind | None = None  # what it is if more than two texts
    text: bool = True  # each value is


class _Counts:
    def __init__(self) -> None:
        self.characters: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.texts = self.length = 0

    def add(self, text: str) -> None:
        words = text.split()
        self.texts += 1
        self.length += len(text)
        self.words.update(words)
        for word in words:
            self.characters.update(word)

    def side(self) -> Side:
        texts = max(self.texts, 1)
        return Side(
            mean_characters=self.length / texts,
            mean_words=self.words.total() / texts,
        )


def survey(examples: Iterable[Example], limit: int = 20_000) -> Survey:
    """Look at `limit` examples drawn from all: a file may be sorted, and its beginning unlike the rest.

    Values that are not text are looked at as Python would print them.
    """
    count, drawn, random = 0, list[Example](), Random(0)
    for count, example in enumerate(examples, start=1):
        if len(drawn) < limit:
            drawn.append(example)
        elif (place := random.randrange(count)) < limit:  # a reservoir (Vitter 1985): each example alike
            drawn[place] = example
    source, target = _Counts(), _Counts()
    for example in drawn:
        if example.source is not None:
            source.add(str(example.source))
        target.add(str(example.target))
    return Survey(
        examples=count,
        source=source.side() if source.texts else None,
        target=target.side(),
        phoneme_share=_phoneme_share(target),
        shares_alphabet=source.texts > 0 and min(_known(source, target), _known(target, source)) >= 0.9,
        kind=kind_of(drawn[:: max(1, len(drawn) // ENOUGH)]),
        text=is_text(drawn),
    )


def _phoneme_share(counts: _Counts) -> float:
    """The share of running words that are short and among the few most frequent, standing beside others.

    Phonemes repeat: a word met once is none, and a target of a single word is a word.
    """
    if counts.words.total() < max(2 * counts.texts, 1):
        return 0.0
    inventory = [
        times
        for word, times in counts.words.most_common(PHONEME_INVENTORY)
        if len(word) <= PHONEME_CHARACTERS and times > 1
    ]
    return sum(inventory) / counts.words.total()


def _known(counts: _Counts, other: _Counts) -> float:
    """The share of running characters that the other side has too."""
    both = sum(times for character, times in counts.characters.items() if character in other.characters)
    return both / max(counts.characters.total(), 1)
