"""Trees over the words of a source, as tokens from left to right. Vinyals et al. 2015, "Grammar as a foreign language".

A value is a tree of the Penn Treebank, "(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))", or nested lists. Its tokens are
(S (NP DT NN )NP (VP VBZ )VP )S: a constituent opens and closes by its label, and a word is its tag, or as in the paper
XX for any word. The words themselves are those of the source, which has one for each: decoding puts them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeGuard

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.special_tokens import BOS, PAD, SPECIAL, UNK, UNKNOWN, as_ids, before_eos
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.metrics.trees import Step, as_text, is_name, lists_as_text, read_tree, spell, words_of
from seqloom.storage.files import LARGE, read_json, replace_file, saving, to_json

FIRST = len(SPECIAL)  # the token that opens a constituent with the first label
ANY = "XX"  # in place of a tag, and of a word that the source does not have


class Tree(Codec):
    """Trees <-> tokens. Without `tags` a word is XX, and decoded trees have XX for each tag.

    Tokens: the special ones, then (label, then )label, for each label, then the tags.
    """

    def __init__(self, *, tags: bool = True):
        self.tags = tags
        self._labels: list[str] = []
        self._tags: list[str] = []
        self._tokens: dict[Step, int] = {}

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        return FIRST + len(self._fitted()._tokens)

    @property
    def counts(self) -> tuple[int, int]:
        """How many labels and how many tags there are."""
        return len(self._fitted()._labels), len(self._tags)

    def fit(self, values: Iterable[Any]) -> Self:
        labels, tags = Counter[str](), Counter[str]()
        for value in values:
            for kind, label, _ in read_tree(value):
                if kind == "open":
                    labels[label] += 1
                elif kind == "word":
                    tags[label if self.tags else ANY] += 1
        if not labels:
            raise SeqloomError("trees were given nothing to learn from; expected at least one tree")
        return self._adopt(*(sorted(each, key=lambda name: (-each[name], name)) for each in (labels, tags)))

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        """The tokens of a tree; labels that were not in the training data are unknown."""
        steps, known = read_tree(value), self._fitted()._tokens
        if source is not None:
            check_words(words_of(steps), source)
        named = (Step(kind, label if self.tags or kind != "word" else ANY) for kind, label, _ in steps)
        return np.array([known.get(each, UNK) for each in named], dtype=np.int64)  # (T,)

    def check(self, value: Any, source: Any) -> None:
        """Refuse a tree over other words than those of the source."""
        check_words(words_of(read_tree(value)), source)

    def decode(self, values: Any, source: Any = None) -> str:
        """The tree over the words of the source, as text; tokens that make no tree are written as they are."""
        return as_text(self.steps([token for token in before_eos(values) if token not in (PAD, BOS)], source))

    def steps(self, tokens: Sequence[int], source: Any = None) -> list[Step]:
        """One step for each token; words are taken from the source in order, and are XX once it has no more."""
        known, words = [*self._fitted()._tokens], iter([] if source is None else words_in(source))
        found = [known[token - FIRST] if token >= FIRST else Step("word", UNKNOWN) for token in tokens]
        return [step._replace(word=next(words, ANY)) if step.kind == "word" else step for step in found]

    def pieces(self, values: Any) -> list[str]:
        """Each token for display: "(NP", ")NP", "DT"."""
        marks, known = {"open": "(", "close": ")", "word": ""}, [*self._fitted()._tokens]
        names = [*SPECIAL, *(f"{marks[step.kind]}{step.label}" for step in known)]
        return [names[token] for token in as_ids(values)]

    def content(self, value: Any) -> str:
        return self.normal(value)

    def elements(self, value: Any) -> int:
        return len(read_tree(value))

    def normal(self, value: Any) -> str:
        """The tree as text with single spaces. Its tags stay, whether they are tokens or not: metrics may need them."""
        return as_text(read_tree(value))

    def line(self, value: Any) -> str:
        return " ".join((value if isinstance(value, str) else lists_as_text(value)).split())

    def fingerprint(self) -> str:
        return f"{self.tags} {self._fitted()._labels} {self._tags}"

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        with saving(path):
            replace_file(path, to_json({"labels": self._fitted()._labels, "tags": self._tags}))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        learned = read_json(path, LARGE, "expected the labels of trees")
        labels, tags = learned.get("labels"), learned.get("tags")
        if not (are_labels(labels) and are_labels(tags)):
            raise SeqloomError(f'{path} has no labels of trees; expected {{"labels": ["S", ...], "tags": ["DT", ...]}}')
        return self._adopt(labels, tags)

    def _adopt(self, labels: list[str], tags: list[str]) -> Self:
        self._labels, self._tags = labels, tags
        kinds = (("open", labels), ("close", labels), ("word", tags))
        steps = (Step(kind, label) for kind, names in kinds for label in names)  # type: ignore[arg-type]
        self._tokens = {step: FIRST + place for place, step in enumerate(steps)}
        return self

    def _fitted(self) -> Self:
        if not self._tokens:
            raise SeqloomError("trees have no labels yet; fit the codec or load it first")
        return self

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.tree.json"


def words_in(source: Any) -> list[str]:
    """The words of a source as trees write them."""
    return [spell(word) for word in str(source).split()]


def check_words(ours: list[str], source: Any) -> None:
    """Refuse words of a tree that are not those of its source."""
    theirs = words_in(source)
    if ours == theirs:
        return
    expected = "expected a tree over the words of its source"
    if len(ours) != len(theirs):
        count = f"{len(ours)} word{'s' * (len(ours) != 1)}"
        raise UnreadableError(f"the tree has {count}, and its source {shown(source)} has {len(theirs)}; {expected}")
    place = next(place for place, (one, other) in enumerate(zip(ours, theirs)) if one != other)
    raise UnreadableError(
        f"word {place + 1} of the tree is {shown(ours[place])}, and of its source {shown(theirs[place])}; {expected}"
    )


def are_labels(names: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of different labels, at least one."""
    if not isinstance(names, list) or not all(is_name(each) and spell(each) == each for each in names):
        return False
    return 0 < len(names) == len({*names})
