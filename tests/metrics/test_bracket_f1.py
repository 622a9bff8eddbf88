"""Brackets of trees, counted by hand."""

import pytest

from seqloom.metrics.bracket_f1 import bracket_f1, brackets, is_tree

TREE = "(S (NP XX XX ) (VP XX (NP XX ) ) )"


def test_constituents_are_spans_of_leaves():
    assert brackets(TREE) == {("S", 0, 4): 1, ("NP", 0, 2): 1, ("VP", 2, 4): 1, ("NP", 3, 4): 1}
    assert brackets("(S (S XX))") == {("S", 0, 1): 2}  # as often as they occur
    assert brackets("(S(NP XX)(VP XX))") == brackets("(S (NP XX ) (VP XX ) )")


def test_figures_of_a_hand_worked_pair():
    """Right: S and the first NP. The VP begins too late, and its NP is a PP."""
    found = bracket_f1(["(S (NP XX XX ) XX (VP (PP XX ) ) )"], [[TREE]])
    assert found["bracket_precision"] == 100 * 2 / 4
    assert found["bracket_recall"] == 100 * 2 / 4
    assert found["bracket_f1"] == 50
    assert found["well_formed"] == 100


def test_sums_are_over_all_trees_and_the_best_reference_counts():
    two = bracket_f1(["(S XX )", TREE], [["(S XX )"], ["(S XX )", TREE]])
    assert two["bracket_f1"] == 100
    mixed = bracket_f1(["(S XX )", "(X XX )"], [["(S XX )"], [TREE]])
    assert mixed["bracket_f1"] == pytest.approx(200 * 1 / (2 + 5))


def test_equal_brackets_count_as_often_as_both_have_them():
    assert bracket_f1(["(S (S (S XX )))"], [["(S (S XX ))"]])["bracket_f1"] == pytest.approx(200 * 2 / 5)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(S (NP XX", {("S", 0, 1): 1, ("NP", 0, 1): 1}),  # closed at the end
        ("(S XX ) ) XX", {("S", 0, 1): 1}),
        ("(S (NP ) XX )", {("S", 0, 1): 1}),  # an empty one has no place
        ("", {}),
        ("XX XX", {}),
    ],
)
def test_what_is_no_tree_has_the_brackets_that_can_be_read(text, made):
    assert brackets(text) == made
    assert not is_tree(text)
    assert bracket_f1([text], [[TREE]])["well_formed"] == 0


@pytest.mark.parametrize("text", ["(S XX", "S XX )", "(S XX ) (S XX )", "(S XX ) XX", "( XX )", "(S )", "()", ")("])
def test_a_tree_is_one_labelled_bracket_that_is_closed(text):
    assert is_tree("(S XX )")
    assert not is_tree(text)
