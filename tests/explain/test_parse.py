"""The nodes of a parse tree, from the tokens of an output."""

from seqloom.data.codecs.text import Text
from seqloom.data.codecs.tree import Tree
from seqloom.explain.parse import branches, indented
from seqloom.explain.record import Branch
from seqloom.tasks.pairs import Pairs

TREE = "(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))"


def task(**settings):
    return Pairs(source=Text(units="word"), target=Tree(**settings).fit([TREE]))


def test_nodes_know_their_brackets_and_words():
    parsing = task()
    found = branches(parsing, parsing.encode(TREE).tolist(), "the loom weaves")
    assert found == [
        Branch("S", -1, 0, 8),
        Branch("NP", 0, 1, 4),
        Branch("DT", 1, 2, 2, "the"),
        Branch("NN", 1, 3, 3, "loom"),
        Branch("VP", 0, 5, 7),
        Branch("VBZ", 4, 6, 6, "weaves"),
    ]
    assert ["".join(line) for line in indented(found)] == [
        "S", "├─ NP", "│  ├─ DTthe", "│  └─ NNloom", "└─ VP", "   └─ VBZweaves",
    ]  # fmt: skip


def test_without_tags_words_have_no_label():
    parsing = task(tags=False)
    words = [node for node in branches(parsing, parsing.encode(TREE).tolist(), "the loom weaves") if node.word]
    assert [(node.label, node.word) for node in words] == [("", "the"), ("", "loom"), ("", "weaves")]


def test_outputs_that_are_no_tree_are_drawn_as_far_as_they_can_be_read():
    parsing = task()
    tokens = parsing.encode(TREE).tolist()
    assert branches(parsing, tokens[:3], "the") == [
        Branch("S", -1, 0, 2), Branch("NP", 0, 1, 2), Branch("DT", 1, 2, 2, "the"),
    ]  # fmt: skip
    torn = branches(parsing, [*tokens[3:5], *tokens[6:]], "the loom")  # closes what was never opened
    assert torn == [Branch("NN", -1, 0, 0, "the"), Branch("VBZ", -1, 2, 2, "loom")]
    assert list(indented([])) == []


def test_other_outputs_have_no_tree():
    plain = Pairs(source=Text(units="word"), target=Text(units="char").fit(["ab"]))
    assert branches(plain, [4, 5], "a") == []
