"""Metrics against hand-worked numbers and against sacrebleu itself."""

from importlib import import_module
from math import exp, isclose
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.complete import metric_name
from seqloom.errors import SeqloomError
from seqloom.metrics import names
from seqloom.metrics.bleu import bleu, signature
from seqloom.metrics.caption_bleu import caption_bleu
from seqloom.metrics.cer import cer
from seqloom.metrics.chrf import chrf
from seqloom.metrics.cider import cider
from seqloom.metrics.copy_recall import copy_recall
from seqloom.metrics.distinct import distinct
from seqloom.metrics.exact import exact
from seqloom.metrics.gleu import gleu
from seqloom.metrics.iou import iou
from seqloom.metrics.meteor import meteor
from seqloom.metrics.mse import mse
from seqloom.metrics.parsable import parsable
from seqloom.metrics.per import per
from seqloom.metrics.rouge import rouge
from seqloom.metrics.rouge_l import rouge_l
from seqloom.metrics.rouge_stemmed import rouge_stemmed
from seqloom.metrics.wer import wer

NAMES = ("exact", "bleu", "chrf", "gleu", "wer", "cer", "per", "rouge_l", "iou", "caption_bleu", "meteor")
METRICS = (exact, bleu, chrf, gleu, wer, cer, per, rouge_l, iou, caption_bleu, meteor)
PREDICTIONS = ["The cat sat on the mat.", "A dog runs fast in the park", "Hello there, world!"]
REFERENCES = ["The cat sat on a mat.", "The dog runs quickly in the park.", "Hello, world!"]


def one_each(references: list[str]) -> list[list[str]]:
    return [[reference] for reference in references]


def test_latency_is_measured_of_times_and_is_no_metric_of_outputs() -> None:
    with pytest.raises(SeqloomError, match='"latency": no such metric'):
        metric_name("latency", "recipe")


def test_exact_counts_predictions_equal_to_any_reference() -> None:
    assert exact(["a", "b", "c", "D"], [["a"], ["x", "b"], ["x"], ["d"]]) == {"exact": 50.0}


def test_word_error_rate_of_a_hand_worked_corpus() -> None:
    # the -> a is one substitution in 6 words, "very" one insertion in 2: 2 edits, 8 words
    predictions = ["the cat sat on the mat", "hello very world"]
    assert wer(predictions, [["the cat sat on a mat"], ["hello world"]]) == {"wer": 25.0}


def test_character_error_rate_counts_spaces() -> None:
    assert cer(["kitten"], [["sitting"]]) == {"cer": pytest.approx(100 * 3 / 7)}
    assert cer(["ab"], [["a b"]]) == {"cer": pytest.approx(100 / 3)}


def test_phoneme_error_rate_takes_phonemes_whole() -> None:
    assert per(["L UW M"], [["L AH1 M"]]) == {"per": pytest.approx(100 / 3)}


def test_errors_can_exceed_the_reference() -> None:
    assert wer(["a b c"], [["x"]]) == {"wer": 300.0}


def test_white_space_between_words_does_not_count() -> None:
    assert wer(["  a   b\t"], [["a b"]]) == {"wer": 0.0}


def test_the_reference_with_the_lowest_rate_counts_not_the_one_with_the_fewest_edits() -> None:
    # against "a" it is 1 edit in 1 word (100 %), against the other 2 edits in 4 (50 %)
    assert wer(["a b"], [["a", "a b c d"]]) == {"wer": 50.0}


def test_of_two_equal_rates_the_longer_reference_counts() -> None:
    # "a x" is 1 edit in 2, "a b c d" 2 edits in 4; with the sentence "z" the totals tell which was taken
    predictions, last = ["a b", "z"], ["z"]
    for choices in (["a x", "a b c d"], ["a b c d", "a x"]):
        assert wer(predictions, [choices, last]) == {"wer": 100 * 2 / 5}


def test_an_empty_reference_fits_only_an_empty_prediction() -> None:
    assert wer(["a", "b"], [["", "x"], ["b"]]) == {"wer": 50.0}
    assert wer(["", "b"], [["", "x"], ["b"]]) == {"wer": 0.0}


def test_references_that_are_all_empty_have_no_rate() -> None:
    with pytest.raises(SeqloomError, match="all references are empty"):
        wer(["a"], [[""]])


@given(st.text("ab ", max_size=8), st.text("ab ", min_size=1, max_size=8))
def test_character_error_rate_is_the_textbook_edit_distance(prediction: str, reference: str) -> None:
    row = list(range(len(reference) + 1))
    for i, found in enumerate(prediction, start=1):
        before, row = row, [i]
        for j, expected in enumerate(reference, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (found != expected)))
    assert cer([prediction], [[reference]])["cer"] == pytest.approx(100 * row[-1] / len(reference))


def test_bleu_of_a_hand_worked_sentence() -> None:
    # matches 5/5, 4/4, 3/3, 2/2 of 5 words against 6: only the brevity penalty exp(1 - 6/5) is left
    assert isclose(bleu(["a b c d e"], [["a b c d e f"]])["bleu"], 100 * exp(-0.2))


def test_bleu_and_chrf_are_those_of_sacrebleu() -> None:
    references = one_each(REFERENCES)
    assert bleu(PREDICTIONS, references)["bleu"] == sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES]).score
    assert chrf(PREDICTIONS, references)["chrf"] == sacrebleu.corpus_chrf(PREDICTIONS, [REFERENCES]).score
    assert 10 < bleu(PREDICTIONS, references)["bleu"] < 90


def test_sentences_may_have_different_numbers_of_references() -> None:
    references = [[REFERENCES[0]], [REFERENCES[1], "A dog runs fast in the park"], [REFERENCES[2]]]
    second = [None, references[1][1], None]
    expected = sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES, second]).score
    assert bleu(PREDICTIONS, references)["bleu"] == expected > bleu(PREDICTIONS, one_each(REFERENCES))["bleu"]
    assert chrf(PREDICTIONS, references)["chrf"] > chrf(PREDICTIONS, one_each(REFERENCES))["chrf"]
    assert "nrefs:var" in signature(PREDICTIONS, references)


def test_the_signature_names_tokeniser_references_and_version() -> None:
    text = signature(PREDICTIONS, one_each(REFERENCES))
    assert text == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_mean_squared_error_of_hand_worked_numbers() -> None:
    # 1, 4 and 0 over three components; of two references the closer counts
    assert mse([[1.0, 2.0], [5.0]], [[[2.0, 4.0]], [[9.0], [5.0]]]) == {"mse": pytest.approx(5 / 3)}
    assert mse([[[1.0, 2.0], [3.0, 4.0]]], [[[[1.0, 2.0], [3.0, 6.0]]]]) == {"mse": 1.0}
    assert not import_module("seqloom.metrics.mse").HIGHER_IS_BETTER


@pytest.mark.parametrize(
    ("prediction", "reference", "words"),
    [
        ([1.0], "one", "example 1 has 'one', expected numbers"),
        ("1", [1.0], "example 1 has '1', expected numbers"),
        ([], [1.0], "expected numbers"),
        ([1.0], [1.0, 2.0], r"shape \[1\] and a reference of \[2\], expected the same"),
    ],
)
def test_what_is_no_number_has_no_squared_error(prediction: Any, reference: Any, words: str) -> None:
    with pytest.raises(SeqloomError, match=f"^mse: .*{words}") as caught:
        mse([prediction], [[reference]])
    assert "\n" not in str(caught.value)


def test_higher_is_better_where_a_metric_declares_it() -> None:
    for name, metric in zip(NAMES, METRICS):
        right = metric(REFERENCES, one_each(REFERENCES))[name]
        wrong = metric(["no such thing"] * 3, one_each(REFERENCES))[name]
        assert (right > wrong) == import_module(f"seqloom.metrics.{name}").HIGHER_IS_BETTER
        assert right == pytest.approx(100.0 if right > wrong else 0.0)


@pytest.mark.parametrize("metric", [*METRICS, cider, distinct, mse, rouge, rouge_stemmed])
def test_what_has_no_score_is_refused_in_one_line(metric) -> None:
    for predictions, references in (([], []), (["a"], []), (["a"], [[]]), (["a"], ["a"])):
        with pytest.raises(SeqloomError, match=f"^{metric.__name__}: .*expected") as caught:
            metric(predictions, references)
        assert "\n" not in str(caught.value)


def test_copy_recall_counts_what_reference_and_source_share() -> None:
    found = copy_recall(["Tom is Tom"], [["Tom Tom Ann x"]], ["Tom and Ann"])
    assert found == {"copy_recall": pytest.approx(200 / 3)}
    assert copy_recall(["Ann"], [["x"], ["Ann Tom"]][1:], ["Ann Tom"], known={"Tom"}) == {"copy_recall": 100.0}
    assert copy_recall(["x"], [["y"]], ["z"]) == {"copy_recall": 100.0}  # there was nothing to copy


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("x = [ 1 , 2 ]", True),
        ("if x :", True),
        ("elif not x :", True),
        ("else :", True),
        ("try :", True),
        ("except KeyError as e :", True),
        ("@ property", True),
        ("return x", True),
        ("for x in y", False),
        ("f ( x", False),
        ("'\\d", False),
        ("⁇ = ⁇", False),
        ("", False),
    ],
)
def test_a_line_of_python_is_parsable_or_not(line: str, right: bool) -> None:
    assert parsable([line], [[""]]) == {"parsable": 100.0 if right else 0.0}


def test_the_guide_lists_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "metrics.md").read_text(encoding="utf-8")
    rows = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert {name.strip(" `") for name in rows.replace("`", ",").split(",")} - {""} == set(names())
