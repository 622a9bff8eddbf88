"""A survey of the data, to choose a recipe by: how much it is, of which kind, how long and how alike its sides are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from seqloom.data.kinds import Kind, detect_kind, is_text
from seqloom.data.text_kinds import detect_text_kind
from seqloom.types import Example

PHONEME_CHARACTERS = 4  # "AH0" has three, an IPA affricate with length four
PHONEME_INVENTORY = 200  # no language has more, stress and tone marks included
KIND_EXAMPLES = 2_000  # enough to tell kinds of data apart


@dataclass(frozen=True)
class Side:
    """Mean lengths of the texts of one side."""

    mean_characters: float
    mean_words: float  # separated by white space


@dataclass(frozen=True)
class Survey:
    """What is found in a sample of the data."""

    examples: int  # of all the data
    source: Side | None  # None for a language model
    target: Side
    phoneme_share: float  # of the target's words that look like phonemes: near 1 for "L UW M"
    shares_alphabet: bool  # both sides have the same characters
    kind: Kind | None = None  # None for any text
    text: bool = True  # all values are strings


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
        return Side(mean_characters=self.length / texts, mean_words=self.words.total() / texts)


def survey(examples: Iterable[Example], limit: int = 20_000) -> Survey:
    """Survey a sample of `limit` examples. It is drawn from all: a file may be sorted, its beginning unlike the rest.

    Values that are not text are measured as Python prints them.
    """
    count, sample, random = 0, list[Example](), Random(0)
    for count, example in enumerate(examples, start=1):
        if len(sample) < limit:
            sample.append(example)
        elif (place := random.randrange(count)) < limit:  # reservoir sampling (Vitter 1985)
            sample[place] = example
    source, target = _Counts(), _Counts()
    for example in sample:
        if example.source is not None:
            source.add(str(example.source))
        target.add(str(example.target))
    some = sample[:: max(1, len(sample) // KIND_EXAMPLES)]
    return Survey(
        examples=count,
        source=source.side() if source.texts else None,
        target=target.side(),
        phoneme_share=_phoneme_share(target),
        shares_alphabet=source.texts > 0 and min(_common(source, target), _common(target, source)) >= 0.9,
        kind=detect_kind(some) or detect_text_kind(some, sample),
        text=is_text(sample),
    )


def _phoneme_share(counts: _Counts) -> float:
    """The share of words that are short and among the few most frequent.

    Phonemes repeat, and several make a word: neither words that occur once nor single words count.
    """
    if counts.words.total() < max(2 * counts.texts, 1):
        return 0.0
    inventory = [
        times
        for word, times in counts.words.most_common(PHONEME_INVENTORY)
        if len(word) <= PHONEME_CHARACTERS and times > 1
    ]
    return sum(inventory) / counts.words.total()


def _common(counts: _Counts, other: _Counts) -> float:
    """The share of characters that the other side has, too."""
    both = sum(times for character, times in counts.characters.items() if character in other.characters)
    return both / max(counts.characters.total(), 1)
