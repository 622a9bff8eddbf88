"""Trees as tokens: there and back without loss, over the words of their source and no others."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from seqloom.data.codecs.places import Places
from seqloom.data.codecs.text import Text
from seqloom.data.codecs.tree import Tree
from seqloom.data.codecs.words import Words
from seqloom.data.readers import examples
from seqloom.data.special_tokens import EOS, SPECIAL, UNK
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.metrics.trees import as_text, read_tree, words_of
from seqloom.tasks.pairs import Pairs
from seqloom.types import Example

TREE = "(S (NP (DT the) (NN loom)) (VP (VBZ weaves) (NP (NP (NN cloth)))) (. .))"
WORDS = "the loom weaves cloth ."
BRACKETED = "(S (NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-)) (VP (VB b)))"


def test_tokens_are_labels_that_open_and_close_and_tags():
    codec = Tree().fit([TREE])
    assert codec.pieces(codec.encode(TREE)) == (
        "(S (NP DT NN )NP (VP VBZ (NP (NP NN )NP )NP )VP . )S".split()  # noqa: SIM905  # as the paper writes it
    )
    assert codec.vocabulary == len(SPECIAL) + 2 * 3 + 4
    assert codec.counts == (3, 4)
    without = Tree(tags=False).fit([TREE])
    assert "".join(without.pieces(without.encode(TREE))) == "(S(NPXXXX)NP(VPXX(NP(NPXX)NP)NP)VPXX)S"


@pytest.mark.parametrize("tree", [TREE, BRACKETED, "(S (S (S (X a))))", "(X (Y (Z a)) (Y (Z b) (Y (Z c))))"])
def test_words_are_put_back_from_the_source(tree):
    codec, words = Tree().fit([tree]), " ".join(words_of(read_tree(tree)))
    tokens = codec.encode(tree, words)
    assert codec.decode([*tokens.tolist(), EOS, 5], words) == tree
    assert np.array_equal(codec.encode(codec.decode(tokens)), tokens)  # without a source words are XX


def test_every_tree_of_the_treebank_comes_back():
    folder = Path(os.environ.get("SEQLOOM_DATA", "/nowhere"), "treebank-sample")
    if not folder.exists():
        pytest.skip("the treebank is not there")
    texts = [gzip.decompress(path.read_bytes()).decode("ascii") for path in sorted(folder.glob("*.gz"))]
    trees = [line for text in texts for line in text.splitlines()]
    for codec in (Tree().fit(trees), Tree(tags=False).fit(trees)):
        for tree in trees:
            steps = read_tree(tree)
            words = " ".join(words_of(steps))
            kept = as_text(step if codec.tags or step.kind != "word" else step._replace(label="XX") for step in steps)
            assert codec.decode(codec.encode(tree, words), words) == kept
    assert len(trees) == 3914


def test_brackets_in_words_are_written_as_the_treebank_does():
    codec = Tree().fit([BRACKETED])
    tokens = codec.encode(BRACKETED, "( a ) b")
    assert np.array_equal(tokens, codec.encode(BRACKETED, "-LRB- a -RRB- b"))
    assert codec.decode(tokens, "( a ) b") == BRACKETED


@pytest.mark.parametrize(
    "value",
    [
        "( (S (NP (DT the) (NN loom)) (VP (VBZ weaves))) )",
        "(S(NP(DT the)(NN loom))(VP(VBZ weaves)))",
        " ( S\n( NP (DT  the ) (NN loom))\t(VP (VBZ weaves)) )",
        ["S", ["NP", ["DT", "the"], ["NN", "loom"]], ["VP", ["VBZ", "weaves"]]],
        ("S", ("NP", ("DT", "the"), ("NN", "loom")), ("VP", ("VBZ", "weaves"))),
    ],
)
def test_a_tree_may_be_spaced_otherwise_or_be_lists(value):
    plain = "(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))"
    codec = Tree().fit([value])
    assert codec.normal(value) == codec.content(value) == plain
    assert codec.elements(value) == len(codec.encode(value)) == 9
    assert codec.decode(codec.encode(value, "the loom weaves"), "the loom weaves") == plain


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "it is empty"),
        ("(S (NP (DT the) (NN loom)", "2 brackets are never closed"),
        ("(S (DT the)", "1 bracket is never closed"),
        ("(S (DT the)))", "a bracket closes that was never opened"),
        ("(S (DT the)) (S (NN loom))", "more than one root"),
        ("(S (DT the) (NP ))", "(NP) has no words"),
        ("(S (DT the) loom)", "the word 'loom' has no tag"),
        ("(DT the)", "'(DT the)' is in no constituent"),
        ("(S ((DT the)))", "a bracket has no label"),
        ("the loom", "'the' is in no constituent"),
        ("(S (DT \ud800))", "half a surrogate pair"),
        (["S", "the", "loom"], "nested lists"),
        (["S"], "nested lists"),
        (["S", ["DT", "the loom"]], "nested lists"),
        (["S (", ["DT", "the"]], "nested lists"),
        ([["DT", "the"]], "nested lists"),
        (7, "nested lists"),
        ({"S": 1}, "nested lists"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_line(value, problem):
    with pytest.raises(UnreadableError, match="is not a tree") as raised:
        Tree().content(value)
    assert problem in str(raised.value)


def test_the_depth_of_a_tree_is_not_limited():
    deep = ["X", "a"]
    for _ in range(5000):
        deep = ["S", deep]
    codec = Tree().fit([deep])
    text = codec.decode(codec.encode(deep), "a")
    assert text == "(S " * 5000 + "(X a)" + ")" * 5000
    with pytest.raises(UnreadableError, match="5000 brackets are never closed"):
        codec.normal("(S " * 5000)


def test_files_may_have_trees_as_lists(tmp_path):
    path = tmp_path / "trees.jsonl"
    good = {"source": "a b", "target": ["S", ["NP", ["X", "a"]], ["Y", "b"]]}
    path.write_text(json.dumps(good) + "\n")
    for data in ([path], [good], [(good["source"], good["target"])]):
        (example,) = examples(data, 2)
        assert (example.source, example.target) == ("a b", "(S (NP (X a)) (Y b))")
    path.write_text("".join(json.dumps({**good, "target": each}) + "\n" for each in (["S", ["NP"]], good["target"])))
    with pytest.raises(SeqloomError, match=r"trees.jsonl, line 1: expected text or nested lists, .* --skip-bad"):
        list(examples([path], 2))
    assert len(list(examples([path], 2, skip_bad=True))) == 1


def test_trees_over_other_words_are_refused():
    codec = Tree().fit([TREE])
    with pytest.raises(UnreadableError, match=r"has 5 words, and its source 'the loom weaves' has 3; expected a tree"):
        codec.encode(TREE, "the loom weaves")
    with pytest.raises(UnreadableError, match=r"word 2 of the tree is 'loom', and of its source 'Loom'"):
        codec.check(TREE, "the Loom weaves cloth .")
    codec.check(TREE, f" {WORDS} ")
    task = Pairs(source=Text(units="bpe"), target=Tree())
    task.check(Example(WORDS, TREE, 1))
    with pytest.raises(UnreadableError, match="over the words of its source"):
        task.check(Example("the loom", TREE, 1))


def test_tokens_that_make_no_tree_are_written_as_they_are():
    codec = Tree().fit([TREE])
    tokens = codec.encode(TREE).tolist()
    assert codec.decode(tokens[:3], WORDS) == "(S (NP (DT the)"
    assert codec.decode(tokens[2:5], WORDS) == "(DT the) (NN loom))"
    assert codec.decode(tokens, "the loom") == TREE.replace("weaves", "XX").replace("cloth", "XX").replace(
        "(. .", "(. XX"
    )
    assert codec.line("(S  (NP") == "(S (NP"
    other = codec.encode("(S (ADJP (JJ slow)))")  # labels that were not in the training data
    assert other.tolist() == [codec.encode("(S (NP (NN a)))")[0], UNK, UNK, UNK, tokens[-1]]
    codec.decode(other)


def test_a_folder_holds_the_labels(tmp_path):
    codec = Tree().fit([TREE, BRACKETED])
    codec.save(tmp_path, "target")
    assert [path.name for path in tmp_path.iterdir()] == ["target.tree.json"]
    again = Tree().load(tmp_path, "target")
    assert np.array_equal(again.encode(TREE), codec.encode(TREE))
    assert again.fingerprint() == codec.fingerprint() != Tree(tags=False).fit([TREE, BRACKETED]).fingerprint()


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"labels": [], "tags": ["X"]},
        {"labels": ["S", "S"], "tags": ["X"]},
        {"labels": ["S)"], "tags": ["X"]},
        {"labels": ["S"], "tags": [7]},
        {"labels": "S", "tags": ["X"]},
    ],
)
def test_a_damaged_folder_is_one_line(tmp_path, damage):
    (tmp_path / "target.tree.json").write_text(json.dumps(damage))
    with pytest.raises(SeqloomError, match="has no labels of trees"):
        Tree().load(tmp_path, "target")
    with pytest.raises(SeqloomError, match="fit the codec or load it first"):
        Tree().encode(TREE)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"source": Text(units="word"), "target": Text(), "valid": "tree"}, r'set target\.type = "tree"'),
        (
            {"source": Text(units="bpe"), "target": Tree(), "valid": "tree"},
            r'set source\.units = "word", or valid = ""',
        ),
        ({"source": Text(units="word"), "target": Tree(), "valid": "tour"}, 'set valid = "tree"'),
        ({"target": Tree()}, "over the words of a text"),
        ({"source": Places(), "target": Tree()}, "over the words of a text"),
        ({"source": Text(units="word"), "target": Tree(), "joint": True}, "not joint"),
        ({"source": Tree(), "target": Text()}, "a target, not a source"),
        ({"source": Text(units="word"), "target": Tree(), "copy": True}, "no unknown words to copy"),
    ],
)
def test_a_task_says_what_does_not_fit_trees(settings, problem):
    with pytest.raises(ValueError, match=problem):
        Pairs(**settings)


def test_words_with_their_spelling_are_counted_too():
    assert Pairs(source=Words(), target=Tree(), valid="tree").constrained
    assert not Pairs(source=Words(), target=Tree()).constrained
