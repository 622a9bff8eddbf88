"""Which kind of text pairs it is, if not any text to any text: labels, tags, trees, numbers, copies, names of files.

The rules are plain, and nearly all examples have to agree (bad lines are reported when the data is read). What none of
them holds for is translated like any other text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from seqloom.data.codecs.tree import Tree
from seqloom.data.kinds import LABELS, NEARLY, ONE_NUMBER, Kind
from seqloom.errors import UnreadableError
from seqloom.types import Example

FILES = {  # by the ends of their names
    "recordings": (".wav", ".flac"),
    "pictures": (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"),
    "films": (".npz", ".mp4", ".m4v", ".avi", ".mkv", ".mov", ".webm"),
}
PER_LABEL = 8  # examples that a label must have on average, and half as many different sources
LABEL_CHARACTERS = 40  # longer targets are texts, even where they repeat
WORDS_PER_TAG = 4  # different words of the sources for each different tag: fewer are spelled or copied words
RARE = 2  # a word is rare if no more targets than this have it
COPIED, COPIES = 0.3, 0.2  # of rare words, those in their own source; of examples, those with such a word
MARKS = 0.2  # of a target's words without a letter or digit: more are code


def detect_text_kind(examples: Sequence[Example], counted: Sequence[Example]) -> Kind | None:
    """The first of the kinds that holds for some examples; None for any other text. Labels are those of `counted`."""
    pairs = [(each.source, each.target) for each in examples]
    if is_parsing(pairs):
        return Kind("trees", sum(len(source.split()) for source, _ in pairs) / len(pairs))
    if not pairs or not all(isinstance(side, str) for pair in pairs for side in pair):
        return None
    for kind, ends in FILES.items():
        if share(source.lower().endswith(ends) and len(source.split()) == 1 for source, _ in pairs) >= NEARLY:
            return Kind(kind, 1.0)
    words = [(source.split(), target.split()) for source, target in pairs]
    length = sum(len(source) for source, _ in words) / len(words)
    if is_tagging(words, length):
        return Kind("tags", length, len({tag for each in counted for tag in each.target.split()}))
    labels = {" ".join(target) for _, target in words}
    if is_number(words, labels):
        return Kind("number", length)
    if is_classification(pairs, labels):
        every = {" ".join(each.target.split()) for each in counted}
        return Kind("name labels" if length < 1.5 else "labels", length, len(every))
    if is_copying(words):
        marks = share(not any(map(str.isalnum, word)) for _, target in words for word in target)
        return Kind("code" if marks >= MARKS else "copies", length)
    return None


def is_parsing(pairs: list[tuple[Any, Any]]) -> bool:
    """Targets are trees over the words of their sources, written as text or as lists."""
    return share(isinstance(source, str) and is_tree_over(source, target) for source, target in pairs) >= NEARLY


def is_tree_over(source: str, target: Any) -> bool:
    if isinstance(target, str) and not target.lstrip().startswith("("):  # quickly
        return False
    try:
        Tree().check(target, source)
    except UnreadableError:
        return False
    return True


def is_tagging(words: list[tuple[list[str], list[str]]], length: float) -> bool:
    """As many words in a target as in its source, from a small set, and few of them words of the source."""
    if length < 2 or share(len(source) == len(target) for source, target in words) < NEARLY:
        return False
    read, tags = ({*chain(*side)} for side in zip(*words))
    repeated = share(word in source for source, target in words for word in target)
    return 2 <= len(tags) <= min(LABELS, len(read) / WORDS_PER_TAG) and repeated < 0.5


def is_number(words: list[tuple[list[str], list[str]]], labels: set[str]) -> bool:
    """Targets are quantities, with decimals, and sources texts of several words."""
    text = share(any(map(str.isalpha, word)) for source, _ in words for word in source)
    numbers = share(ONE_NUMBER.fullmatch(label) is not None for label in labels)
    return numbers >= NEARLY and any("." in label for label in labels) and text > 0.5


def is_classification(pairs: list[tuple[str, str]], labels: set[str]) -> bool:
    """Few different targets, short ones, each of several different sources."""
    sources = {source for source, _ in pairs}
    mean = sum(len(target) for _, target in pairs) / len(pairs)
    enough = len(pairs) >= PER_LABEL * len(labels) and len(sources) >= PER_LABEL // 2 * len(labels)
    return enough and 2 <= len(labels) <= LABELS and mean <= LABEL_CHARACTERS


def is_copying(words: list[tuple[list[str], list[str]]]) -> bool:
    """Rare words of the targets are often words of their own source."""
    if any(sum(map(len, side)) < 3 * len(words) for side in zip(*words)):  # names and strings, not sentences
        return False
    counts = Counter(chain(*({*target} for _, target in words)))
    rare = [({word for word in target if counts[word] <= RARE}, {*source}) for source, target in words]
    copied = [len(those & source) for those, source in rare]
    total = sum(len(those) for those, _ in rare)
    return sum(copied) >= COPIED * max(total, 1) and share(map(bool, copied)) >= COPIES


def share(values: Iterable[bool]) -> float:
    """The share of true values; 0 of none."""
    found = list(values)
    return sum(found) / max(len(found), 1)
