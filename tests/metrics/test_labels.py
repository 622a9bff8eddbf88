"""Metrics of labels and tags: by hand, and against seqeval and scikit-learn."""

import warnings

import pytest
import seqeval.metrics
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import SeqloomError
from seqloom.metrics.accuracy import accuracy
from seqloom.metrics.chunk_f1 import chunk_f1, chunks
from seqloom.metrics.macro_f1 import macro_f1
from seqloom.metrics.tag_accuracy import tag_accuracy

TAGS = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("NP", "X-Y"))]
BIO = [tag for tag in TAGS if tag[0] in "BIO"]
labels = st.sampled_from(["very good", "good", "bad"])


def sentences(tags):
    pair = st.integers(1, 9).flatmap(
        lambda n: st.tuples(*[st.lists(st.sampled_from(tags), min_size=n, max_size=n)] * 2)
    )
    return st.lists(pair, min_size=1, max_size=5)


def test_a_label_is_right_as_a_whole():
    found = ["very good", "bad", "good", "bad"]
    assert accuracy(found, [["very good"], ["bad"], ["very good"], ["good", "bad"]]) == {"accuracy": 75.0}


def test_macro_f1_of_a_hand_worked_corpus():
    # a: 1 right of 2 predicted and 1 referred to, F1 2/3; b: 0; c: 0 of 0 predicted
    assert macro_f1(["a", "a", "b"], [["a"], ["b"], ["c"]]) == {"macro_f1": pytest.approx(100 * (2 / 3) / 3)}


@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=12))
def test_macro_f1_is_that_of_scikit_learn(pairs):
    found, expected = map(list, zip(*pairs))
    theirs = sklearn.metrics.f1_score(expected, found, average="macro", zero_division=0)
    assert macro_f1(found, [[each] for each in expected])["macro_f1"] == pytest.approx(100 * theirs)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-NP I-NP O B-NP", [("NP", 0, 2), ("NP", 3, 4)]),
        ("B-NP B-NP I-VP", [("NP", 0, 1), ("NP", 1, 2), ("VP", 2, 3)]),
        ("I-NP I-NP B-NP I-NP", [("NP", 0, 2), ("NP", 2, 4)]),  # IOB: B only between two of a kind
        ("O I-PER O", [("PER", 1, 2)]),
        ("S-A B-A E-A I-A", [("A", 0, 1), ("A", 1, 3), ("A", 3, 4)]),
        ("B-a-b I-a-b I-b", [("a-b", 0, 2), ("b", 2, 3)]),
        ("B I O", [("", 0, 2)]),
        ("NN NN IN", [("NN", 0, 1), ("NN", 1, 2), ("IN", 2, 3)]),  # no scheme: each tag is a chunk
    ],
)
def test_chunks_are_read_as_conlleval_reads_them(tags, expected):
    assert chunks(tags.split()) == expected


def test_chunk_f1_of_a_hand_worked_sentence():
    found = chunk_f1(["B-NP I-NP B-VP O"], [["B-NP I-NP I-NP B-VP"]])
    assert found == {"chunk_f1": 0.0, "chunk_precision": 0.0, "chunk_recall": 0.0}
    found = chunk_f1(["B-NP I-NP B-VP O", "O"], [["B-NP I-NP O B-VP"], ["O"]])
    assert found == {"chunk_f1": 50.0, "chunk_precision": 50.0, "chunk_recall": 50.0}
    assert tag_accuracy(["B-NP I-NP B-VP O", "O"], [["B-NP I-NP O B-VP"], ["O"]]) == {"tag_accuracy": 60.0}


@pytest.mark.parametrize("tags", [BIO, TAGS], ids=["BIO", "IOBES"])
def test_chunk_f1_is_that_of_seqeval(tags):
    @given(sentences(tags))
    def check(pairs):
        found, expected = map(list, zip(*pairs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing predicted, nothing expected
            theirs = [
                measure(expected, found)
                for measure in (seqeval.metrics.f1_score, seqeval.metrics.precision_score, seqeval.metrics.recall_score)
            ]
        ours = chunk_f1([" ".join(each) for each in found], [[" ".join(each)] for each in expected])
        assert [*ours.values()] == pytest.approx([100 * float(each) for each in theirs])

    check()


def test_the_reference_that_agrees_best_counts():
    assert chunk_f1(["B-A O"], [["O O", "B-A O"]])["chunk_f1"] == 100
    assert tag_accuracy(["B-A O"], [["O O", "B-A O"]])["tag_accuracy"] == 100


@pytest.mark.parametrize("metric", [chunk_f1, tag_accuracy])
def test_outputs_of_another_length_are_refused_in_one_line(metric):
    with pytest.raises(SeqloomError, match="prediction 2 has 1 tags and its reference 2"):
        metric(["O", "O"], [["O"], ["O O"]])
