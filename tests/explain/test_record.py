"""The record of an explanation: JSON loses nothing, and what does not fit is refused in one line."""

import json
from dataclasses import replace
from math import inf, nan

import pytest

from seqloom.errors import SeqloomError
from seqloom.explain.page import page
from seqloom.explain.record import Branch, Explanation, TreeNode
from seqloom.explain.terminal import render
from tests.explain.examples import EXAMPLES, adaptive, copying, drawing, each, mixture, parsing, picture


@each
def test_an_explanation_survives_json(name: str):
    written = json.dumps(EXAMPLES[name].to_json())
    assert Explanation.from_json(json.loads(written)) == EXAMPLES[name]


def test_a_zero_probability_survives_json_as_null():
    impossible = replace(EXAMPLES["one"].hypotheses[0], log_probs=[-inf, 0.0], score=-inf)
    record = replace(EXAMPLES["one"], hypotheses=[impossible])
    written = json.dumps(record.to_json(), allow_nan=False)
    assert json.loads(written)["hypotheses"][0]["log_probs"] == [None, 0.0]
    assert Explanation.from_json(json.loads(written)) == record
    assert "0.0%" in render(record)
    assert page(record)


def test_matrices_that_do_not_fit_are_refused_in_one_line():
    record = EXAMPLES["date"]
    best = record.hypotheses[0]
    wrong = {
        "alignment": replace(best, alignment=best.alignment[1:]),
        "source_attention": replace(best, source_attention=[[[[1.0]]]]),
    }
    for where, broken in wrong.items():
        with pytest.raises(SeqloomError, match=where) as caught:
            replace(record, hypotheses=[broken])
        assert "\n" not in str(caught.value)
    with pytest.raises(SeqloomError, match="finite"):
        replace(EXAMPLES["one"], encoder_attention=[[[[nan]]]])
    with pytest.raises(SeqloomError, match="log_probs"):
        replace(best, log_probs=[])
    with pytest.raises(SeqloomError, match="hypotheses"):
        replace(record, hypotheses=[])


@pytest.mark.parametrize("parent", [0, 5, -2])
def test_a_tree_whose_parents_are_not_earlier_nodes_is_refused(parent: int):
    with pytest.raises(SeqloomError, match=r"tree\[0\]"):
        replace(EXAMPLES["one"], tree=[TreeNode(0, parent, "a", 0.0)])


@pytest.mark.parametrize(("value", "where"), [({}, "source"), (3, "top level"), ({"source": 1}, "source")])
def test_json_that_is_no_explanation_is_refused_in_one_line(value: object, where: str):
    with pytest.raises(SeqloomError, match=where) as caught:
        Explanation.from_json(value)
    assert "\n" not in str(caught.value)


def test_times_steps_and_copies_must_fit_their_tokens():
    for values in ([1.0], [1.0, -1.0, 0.0, 0.0], [1.0, inf, 0.0, 0.0]):
        for name in ("times", "steps", "copied"):
            with pytest.raises(SeqloomError, match=f"{name} does not fit"):
                replace(adaptive().hypotheses[0], **{name: values})
    for broken in ([1.0], [1.0, -1.0]):
        with pytest.raises(SeqloomError, match="steps does not fit"):
            replace(adaptive(), steps=broken)
    with pytest.raises(SeqloomError, match="copied does not fit"):
        replace(adaptive().hypotheses[0], copied=[0.5, 1.2, 0.0, 0.0])


def test_experts_must_fit_their_tokens():
    for broken in ([[1, 0]], [[1, 0], []], [[1, 0], [-1, 2]]):
        with pytest.raises(SeqloomError, match=r"experts\.layers\.1 does not fit"):
            replace(mixture(), experts={"layers.1": broken})
    with pytest.raises(SeqloomError, match=r"experts\.layers\.0 does not fit: expected 4 lists"):
        replace(mixture().hypotheses[0], experts={"layers.0": [[1]]})


@pytest.mark.parametrize("record", [adaptive(), copying(), mixture()])
def test_steps_and_copies_survive_json(record: Explanation):
    assert Explanation.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_parse_tree_survives_json_and_one_that_does_not_fit_is_refused():
    record = parsing()
    assert Explanation.from_json(json.loads(json.dumps(record.to_json()))) == record
    for wrong in (Branch("S", 0, 0, 1), Branch("S", -2, 0, 1), Branch("S", -1, 2, 1), Branch("S", -1, 0, 99)):
        with pytest.raises(SeqloomError, match=r"parse\[0\]"):
            replace(record.hypotheses[0], parse=[wrong])


@pytest.mark.parametrize(
    ("change", "wrong"),
    [({"uri": "https://example.org/a.png"}, "image.uri"), ({"rows": 0}, "image.rows"), ({"columns": 2}, "image")],
)
def test_a_picture_is_inside_the_record_and_fits_its_source(change: dict, wrong: str):
    written = picture().to_json()
    written["image"].update(change)
    with pytest.raises(SeqloomError, match=wrong) as caught:
        Explanation.from_json(written)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"values": [0]}, "pixels.values"),
        ({"values": [3] * 12}, "pixels.values"),
        ({"log_probs": [0.0]}, "pixels.log_probs"),
        ({"fields": {2: [0]}}, "pixels.fields.2"),
        ({"fields": {1: [256]}}, "pixels.fields.1"),
        ({"first": 12}, "pixels.first"),
        ({"chances": [[1.0]] * 11}, "pixels.chances"),
    ],
)
def test_pixels_must_fit_their_picture(change: dict, wrong: str):
    with pytest.raises(SeqloomError, match=wrong):
        replace(drawing().pixels, **change)
