"""Labelled trees over words, as the Penn Treebank writes them: (S (NP (DT the) (NN loom)) (VP (VBZ weaves))).

A tree is read into its steps from left to right: constituents that open and close, and words with their tags between
them. Nothing here is recursive, so the depth of a tree is not limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from seqloom.errors import UnreadableError, shown

BRACKETS = {"(": "-LRB-", ")": "-RRB-"}  # how brackets within words are written
TOKENS = re.compile(r"\(\s*+([^\s()]++)\s++([^\s()]++)\s*+\)|\(\s*+([^\s()]*+)|\)|[^\s()]++")
OUTER = re.compile(
    r"\s*+\(\s*+(\(.*\))\s*\)\s*", re.DOTALL
)  # the bracket without a label around a tree of the treebank
EXAMPLE = 'such as "(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))"'
_CLOSE = object()


class Step(NamedTuple):
    """One step of a tree: a constituent opens or closes, or a word with its tag."""

    kind: Literal["open", "close", "word"]
    label: str  # of the constituent, or the tag
    word: str = ""


def read_tree(value: Any) -> list[Step]:
    """The steps of a tree, given as text or as nested lists: ["S", ["NP", ["DT", "the"], ...], ...]."""
    text = value if isinstance(value, str) else lists_as_text(value)
    steps, problem = scan(text)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        problem = "it has half a surrogate pair"
    if problem:
        raise UnreadableError(f"{shown(value)} is not a tree: {problem}; expected one tree, {EXAMPLE}")
    return steps


def scan(text: str) -> tuple[list[Step], str]:
    """The steps of a text, and why it is not a tree ("" if it is one).

    Brackets that close nothing, and empty ones, are left out; those that are never closed end with the text.
    """
    if whole := OUTER.fullmatch(text):
        text = whole[1]
    steps, begun, problems = list[Step](), list[str](), list[str]()
    for token in TOKENS.finditer(text):
        tag, word, label = token.groups()
        if label is not None:
            if steps and not begun:
                problems.append("it has more than one root")
            if not label:
                problems.append("a bracket has no label")
            begun.append(label)
            steps.append(Step("open", label))
        elif token[0] == ")":
            problems += close(steps, begun) if begun else ["a bracket closes that was never opened"]
        else:
            if not begun:
                problems.append(f"{shown(token[0])} is in no constituent")
            if tag is None:
                problems.append(f"the word {shown(token[0])} has no tag")
            steps.append(Step("word", tag or "", word or token[0]))
    if begun:
        problems.append(f"{len(begun)} bracket{'s are' if len(begun) > 1 else ' is'} never closed")
    while begun:
        close(steps, begun)
    return steps, next(iter(problems), "" if steps else "it is empty")


def close(steps: list[Step], begun: list[str]) -> list[str]:
    """Close the innermost constituent; an empty one is removed, which is a problem."""
    label = begun.pop()
    if steps[-1].kind == "open":
        steps.pop()
        return [f"({label}) has no words"]
    steps.append(Step("close", label))
    return []


def as_text(steps: Iterable[Step]) -> str:
    """Steps as text, with single spaces; they need not be a tree."""
    pieces = []
    for kind, label, word in steps:
        pieces.append(")" if kind == "close" else f" ({label}" if kind == "open" else f" ({label} {word})")
    return "".join(pieces).lstrip()


def words_of(steps: Iterable[Step]) -> list[str]:
    return [step.word for step in steps if step.kind == "word"]


def spell(word: str) -> str:
    """A word as trees write it: without brackets of its own."""
    return "".join(BRACKETS.get(letter, letter) for letter in word)


def lists_as_text(value: Any) -> str:
    """Nested lists as the text of a tree."""
    pieces, left = list[str](), [value]
    while left:
        node = left.pop()
        if node is _CLOSE:
            pieces.append(")")
            continue
        if not isinstance(node, (list, tuple)) or len(node) < 2 or not is_name(node[0]) or spell(node[0]) != node[0]:
            raise UnreadableError(
                f'{shown(node)} is not a tree: expected text or nested lists, such as ["NP", ["DT", "the"], ...]'
            )
        label, *children = node
        if len(children) == 1 and is_name(children[0]):
            pieces.append(f" ({label} {spell(children[0])})")
        else:
            pieces.append(f" ({label}")
            left += [_CLOSE, *reversed(children)]
    return "".join(pieces).lstrip()


def is_name(value: Any) -> bool:
    """Whether a value is a label or a word: text without white space."""
    return isinstance(value, str) and value.split() == [value]
