"""The parse tree of an output, for models whose outputs are trees over the words of their source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seqloom.contracts import Task
from seqloom.data.codecs.tree import Tree
from seqloom.explain.record import Branch


def branches(task: Task, tokens: Sequence[int], source: Any) -> list[Branch]:
    """The nodes of a tree from left to right; none if the task has other outputs. It may be ill-formed."""
    if not isinstance(task.target, Tree):
        return []
    found: list[Branch] = []
    begun: list[int] = []
    for place, (kind, label, word) in enumerate(task.target.steps(tokens, source)):
        parent = begun[-1] if begun else -1
        if kind == "open":
            begun.append(len(found))
            found.append(Branch(label, parent, place, len(tokens) - 1))
        elif kind == "word":
            found.append(Branch(label if task.target.tags else "", parent, place, place, word))
        elif begun:
            node = begun.pop()
            found[node] = Branch(found[node].label, found[node].parent, found[node].begin, place)
    return found


def indented(nodes: Sequence[Branch]) -> Iterator[tuple[str, str, str]]:
    """Each node on a line of its own: the lines that lead to it, its label, its word."""
    last = {node.parent: place for place, node in enumerate(nodes)}  # the last child of each
    stems: list[str] = []  # what stands before the children of a node
    for place, node in enumerate(nodes):
        above = stems[node.parent] if node.parent >= 0 else ""
        ends, inner = last[node.parent] == place, node.parent >= 0
        yield above + ("└─ " if ends else "├─ ") * inner, node.label, node.word
        stems.append(above + ("   " if ends else "│  ") * inner)
