"""Brackets of trees, counted by hand, and as the package PYEVALB 0.1.3 counts them."""

import pytest

from seqloom.metrics.bracket_f1 import bracket_f1, brackets
from seqloom.metrics.trees import scan

TREE = "(S (NP (DT the) (NN loom)) (VP (VBZ weaves) (NP (NN cloth))) (. .))"


def spans(text, ignored=()):
    return brackets(scan(text)[0], ignored)


def test_constituents_are_spans_of_words_and_tags_are_none():
    assert spans(TREE) == {("S", 0, 5): 1, ("NP", 0, 2): 1, ("VP", 2, 4): 1, ("NP", 3, 4): 1}
    assert spans("(S (S (X a)))") == {("S", 0, 1): 2}  # as often as they occur
    assert spans("(TOP (S (PRT (X a))))") == {("S", 0, 1): 1, ("ADVP", 0, 1): 1}


def test_ignored_words_move_the_others_and_leave_no_empty_constituents():
    assert spans("(S (NP (X a) (X b)) (PRN (X c)) (VP (X d)))", {1, 2}) == {
        ("S", 0, 2): 1,
        ("NP", 0, 1): 1,
        ("VP", 1, 2): 1,
    }


def test_figures_of_a_hand_worked_pair():
    """Right: S and the first NP. The VP begins too late, and its NP is a PP."""
    found = bracket_f1(["(S (NP (DT the) (NN loom)) (VBZ weaves) (VP (PP (NN cloth))) (. .))"], [[TREE]])
    assert found["bracket_precision"] == 100 * 2 / 4
    assert found["bracket_recall"] == 100 * 2 / 4
    assert found["bracket_f1"] == 50
    assert (found["well_formed"], found["complete"]) == (100, 0)


def test_punctuation_is_that_of_the_reference_wherever_it_is_attached():
    moved = "(S (NP (DT the) (NN loom)) (VP (VBZ weaves) (NP (NN cloth)) (. .)))"
    for tagged in (moved, moved.replace("(. .)", "(XX .)")):
        assert bracket_f1([tagged], [[TREE]]) == dict.fromkeys(
            ("bracket_f1", "bracket_precision", "bracket_recall", "complete", "well_formed"), 100
        )
    assert bracket_f1([moved], [[TREE.replace("(. .)", "(SYM .)")]])["bracket_f1"] == 75


def test_sums_are_over_all_trees_and_the_best_reference_counts():
    two = bracket_f1(["(S (X a))", TREE], [["(S (X a))"], ["(S (X a))", TREE]])
    assert two["bracket_f1"] == 100
    other = TREE.replace("VP", "PP").replace("NP", "PP")
    mixed = bracket_f1(["(S (X a))", other], [["(S (X a))"], [TREE]])
    assert mixed["bracket_f1"] == pytest.approx(200 * 2 / (5 + 5))
    assert mixed["complete"] == 50


def test_equal_brackets_count_as_often_as_both_have_them():
    assert bracket_f1(["(S (S (S (X a))))"], [["(S (S (X a)))"]])["bracket_f1"] == pytest.approx(200 * 2 / 5)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(S (NP (X a)", {("S", 0, 1): 1, ("NP", 0, 1): 1}),  # closed at the end
        ("(S (X a)) )", {("S", 0, 1): 1}),
        ("(S (NP ) (X a))", {("S", 0, 1): 1}),  # an empty one has no place
        ("", {}),
        ("a", {}),
        ("(X a)", {}),
        ("(S (X a)) (S (X b))", {("S", 0, 1): 1, ("S", 1, 2): 1}),
    ],
)
def test_what_is_no_tree_has_the_brackets_that_can_be_read(text, made):
    assert spans(text) == made
    assert bracket_f1([text], [["(S (NP (X a)))"]])["well_formed"] == 0


@pytest.mark.parametrize("text", ["(S (X a))", "(S (X a) (X c))", "(S (X a) (X b) (X c))"])
def test_a_tree_over_other_words_misses_all_brackets(text):
    found = bracket_f1([text, TREE], [["(S (NP (X a) (X b)))"], [TREE]])
    assert (found["bracket_precision"], found["bracket_recall"]) == (100, pytest.approx(100 * 4 / 6))
    assert (found["well_formed"], found["complete"]) == (50, 50)


# (prediction, reference, brackets right, of the prediction, of the reference): the last three as PYEVALB 0.1.3 prints
# them. It has neither of the rules for punctuation, TOP and PRT, nor for equal brackets, so these trees have none.
PRINTED = [
    (
        "(S (NP (NP (DT the) (NN weaver)) (PP (IN with) (NP (DT the) (NN loom)))) (VP (VBD sang)))",
        "(S (NP (NP (DT the) (NN weaver)) (PP (IN with) (NP (DT the) (NN loom)))) (VP (VBD sang)))",
        6,
        6,
        6,
    ),
    (
        "(S (NP (PRP she)) (VP (VBD saw) (NP (NP (DT the) (NN weaver)) (PP (IN with) (NP (DT the) (NN loom))))))",
        "(S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN weaver)) (PP (IN with) (NP (DT the) (NN loom)))))",
        6,
        7,
        6,
    ),
    (
        "(S (NP (DT the) (JJ old) (NN loom)) (VP (VBZ is) (ADJP (JJ slow))))",
        "(S (NP (DT the) (ADJP (JJ old)) (NN loom)) (VP (VBZ is) (NP (JJ slow))))",
        3,
        4,
        5,
    ),
    (
        "(S (NP (NNS threads)) (VP (VBP run) (ADVP (RB up)) (CC and) (ADVP (RB down))))",
        "(S (NP (NNS threads)) (VP (VBP run) (ADVP (RB up) (CC and) (RB down))))",
        3,
        5,
        4,
    ),
    (
        "(SBARQ (WHNP (WP who)) (SQ (VP (VBD wove) (NP (DT this)))))",
        "(S (NP (WP who)) (VP (VBD wove) (NP (DT this))))",
        2,
        5,
        4,
    ),
]


@pytest.mark.parametrize(("prediction", "reference", "right", "predicted", "expected"), PRINTED)
def test_figures_are_those_of_pyevalb(prediction, reference, right, predicted, expected):
    found = bracket_f1([prediction], [[reference]])
    assert found["bracket_precision"] == pytest.approx(100 * right / predicted)
    assert found["bracket_recall"] == pytest.approx(100 * right / expected)
    assert found["bracket_f1"] == pytest.approx(200 * right / (predicted + expected))
