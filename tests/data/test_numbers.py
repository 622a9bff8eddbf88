"""Numbers: every form of a value is the same array, comes back, and mistakes are one line."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.corpus import Corpus
from seqloom.errors import SeqloomError
from seqloom.types import Example

number = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(number, min_size=width, max_size=width), min_size=1, max_size=6)
)


def complaint(function, *arguments):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@settings(max_examples=200, deadline=None)
@given(value=vectors)
def test_any_vectors_come_back_from_every_form(value):
    tensor = torch.tensor(value, dtype=torch.float32)
    codec = Numbers().fit([value])
    assert codec.features == len(value[0])
    for form in (value, tensor, tensor.numpy(), tensor.double().numpy(), tensor.tolist()):
        encoded = codec.encode(form)
        assert encoded.dtype == np.float32
        assert np.array_equal(encoded, tensor.numpy())
    for form in (tensor, tensor.numpy()):
        assert np.array_equal(codec.encode(codec.decode(form)), tensor.numpy())
    assert np.array_equal(codec.encode(codec.line(value)), tensor.numpy())


def test_a_text_has_spaces_between_vectors_and_commas_between_components():
    codec = Numbers().fit(["0.31,1 0.44,0"])
    assert codec.vocabulary is None
    assert codec.features == 2
    assert np.array_equal(codec.encode("0.31,1  0.44,0 "), np.array([[0.31, 1.0], [0.44, 0.0]], dtype=np.float32))
    assert codec.decode(codec.encode("0.31,1 0.44,0")) == [[0.31, 1.0], [0.44, 0.0]]
    assert codec.line([[0.31, 1], [0.44, 0]]) == "0.31,1 0.44,0"
    assert codec.pieces(codec.encode("0.31,1 -2e9,0")) == ["0.31,1", "-2e+09,0"]


@pytest.mark.parametrize("value", ["0.5 2 -1", [0.5, 2, -1], [[0.5], [2], [-1]], np.array([0.5, 2, -1])])
def test_numbers_alone_are_vectors_of_one_component(value):
    codec = Numbers().fit([value])
    assert codec.encode(value).tolist() == [[0.5], [2.0], [-1.0]]
    assert codec.normal(value) == [0.5, 2.0, -1.0]


@pytest.mark.parametrize("value", [0.25, "0.25", [0.25], np.float32(0.25), torch.tensor(0.25)])
def test_one_number_is_a_value_too(value):
    assert Numbers().fit([value]).encode(value).tolist() == [[0.25]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0.3,1 0.4", ["'0.3,1 0.4'", "vector 2", "1 component", "expected 2"]),
        ("0.3,1 0.4,x", ["'x' is not a number", "0.31,1 0.44,0"]),
        ("0.3,1 0.4,", ["'' is not a number"]),
        ("0.3 , 1", ["vector 2", "2 components"]),
        ("", ["empty"]),
        ("  ", ["empty"]),
        ([], ["empty"]),
        ([[], []], ["empty"]),
        ([[1, 2], [3]], ["[[1, 2], [3]]", "ragged"]),
        ([["a", "b"]], ["hold", "values"]),
        ([[True, False]], ["hold bool values"]),
        ({"a": 1}, ["hold object values"]),
        (None, ["None", "hold object values"]),
        (np.zeros((1, 2, 3)), ["3 axes"]),
        ("0.3,nan", ["not finite at vector 1"]),
        ([[1.0, 2.0], [3.0, float("inf")]], ["not finite at vector 2"]),
        ([[1e300, 0.0]], ["not finite"]),
        ("1,2,3", ["'1,2,3'", "3 components", "expected 2"]),
        ([[1.0] * 3] * 99, ["[[1.0, 1.0, 1.0], ", "...", "3 components", "expected 2"]),
    ],
)
def test_a_value_that_does_not_fit_is_named_when_fitting_and_when_encoding(value, words):
    codec = Numbers().fit([[[1.0, 2.0]]])
    for message in (complaint(Numbers().fit, [[[1.0, 2.0]], value]), complaint(codec.encode, value)):
        assert [word for word in words if word not in message] == []
        assert len(message) < 250


def test_what_is_not_fitted_says_so():
    assert "fit them or load them" in complaint(Numbers().encode, "1")
    assert "nothing to learn from" in complaint(Numbers().fit, [])


def test_saving_and_loading_keep_the_width(tmp_path):
    Numbers().fit(["1,2,3"]).save(tmp_path, "source")
    assert [path.name for path in tmp_path.iterdir()] == ["source.numbers.json"]
    assert Numbers().load(tmp_path, "source").features == 3
    assert "target.numbers.json cannot be read" in complaint(Numbers().load, tmp_path, "target")
    for content in ("[]", "{"):
        (tmp_path / "source.numbers.json").write_text(content)
        assert "expected the width of numbers" in complaint(Numbers().load, tmp_path, "source")
    for content in (
        '{"features": "2"}',
        '{"features": 1e9}',
        '{"features": 1000000000}',
        '{"features": 0}',
        '{"features": true}',
        "{}",
    ):
        (tmp_path / "source.numbers.json").write_text(content)
        assert "has no width of numbers" in complaint(Numbers().load, tmp_path, "source")
    assert "could not write" in complaint(Numbers().fit(["1"]).save, tmp_path / "missing", "source")


def test_a_corpus_keeps_vectors(tmp_path):
    source, target = Numbers().fit(["1,2"]), Numbers().fit(["1"])
    examples = [Example("0.5,1 0.25,0", "0.75", 1), Example("1,1", "2", 2)]
    corpus = Corpus.write(tmp_path / "corpus", examples, source, target)
    assert [[side.tolist() for side in row] for row in (corpus[0], corpus[1])] == [
        [[[0.5, 1.0], [0.25, 0.0]], [[0.75]]],
        [[[1.0, 1.0]], [[2.0]]],
    ]
    assert corpus.lengths.tolist() == [[2, 1], [1, 1]]
