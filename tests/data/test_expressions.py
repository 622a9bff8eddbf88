"""Expressions and their trees: the words of the source, and the value that Python gives the same expression."""

import math

import pytest

from seqloom.data.generators.expressions import expressions
from seqloom.errors import SeqloomError
from seqloom.metrics.trees import Step, as_text, read_tree, spell, words_of


def value(steps: list[Step]) -> int:
    """The value of a tree, from its constituents alone: operators are left to right within one of them."""
    parts: list[list[str | int]] = [[]]
    for kind, label, word in steps:
        if kind == "open":
            parts.append([])
        elif kind == "word":
            if label in ("NUM", "OP"):
                parts[-1].append(int(word) if label == "NUM" else word)
        else:
            items = parts.pop()
            numbers, signs = items[::2], items[1::2]
            if label == "PRODUCT":
                assert set(signs) == {"*"}
                parts[-1].append(math.prod(numbers))
            else:
                assert set(signs) <= {"+", "-"}
                parts[-1].append(
                    sum(number if sign == "+" else -number for number, sign in zip(numbers, ["+", *signs]))
                )
    return parts[0][0]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_trees_have_the_words_of_their_source_and_its_value(depth):
    deepest = 0
    for example in expressions(300, depth=depth):
        steps = read_tree(example.target)
        assert as_text(steps) == example.target
        assert words_of(steps) == [spell(word) for word in example.source.split()]
        assert value(steps) == eval(example.source)
        nesting = [sum((each == "(") - (each == ")") for each in example.source[:end]) for end in range(99)]
        deepest = max(deepest, *nesting)
    assert deepest == depth


def test_settings_out_of_range_are_refused():
    with pytest.raises(SeqloomError, match="longest is 1, expected 2 to 5"):
        expressions(3, longest=1)
    with pytest.raises(SeqloomError, match="depth"):
        expressions(3, depth=9)
