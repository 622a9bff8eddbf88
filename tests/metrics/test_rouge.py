"""ROUGE against what rouge-score 0.1.2 prints, and Porter's stemmer against its paper and NLTK's."""

import numpy as np
import pytest

from seqloom.metrics import rouge_l
from seqloom.metrics.porter import stem
from seqloom.metrics.rouge import f_measures, rewards, rouge, words
from seqloom.metrics.rouge_stemmed import rouge_stemmed, stems
from tests.metrics.texts import PREDICTIONS, REFERENCES

# The examples of the paper, each gone through all steps; then what NLTK does otherwise.
STEMS = """
caresses caress | ponies poni | ties tie | cats cat | feed feed | agreed agre | plastered plaster | bled bled |
motoring motor | sing sing | conflated conflat | troubled troubl | sized size | hopping hop | tanned tan | falling
fall | hissing hiss | fizzed fizz | failing fail | filing file | happy happi | relational relat | conditional condit
| rational ration | digitizer digit | radically radic | differently differ | vilely vile | operator oper | feudalism
feudal | decisiveness decis | hopefulness hope | callousness callous | formality formal | sensitivity sensit |
triplicate triplic | formative form | formalize formal | electrical electr | hopeful hope | goodness good | revival
reviv | allowance allow | airliner airlin | adjustable adjust | irritant irrit | replacement replac | dependent
depend | adoption adopt | communism commun | activate activ | homologous homolog | effective effect | bowdlerize
bowdler | probate probat | rate rate | cease ceas | controlling control | rolling roll
| skies sky | dying die | died die | tried tri | enjoy enjoy | spy spi | news news | geology geolog | at at | is is |
by by | syzygy syzygi | yyyy yyyi | hopefully hope | exceed exceed | bied bie | oed o | ing ing | using use
"""


def test_rouge_is_that_of_rouge_score() -> None:
    # RougeScorer(["rouge1", "rouge2", "rougeL"]).score_multi(references, prediction), means of fmeasure
    expected = {"rouge1": 67.98368298368298, "rouge2": 44.39393939393939, "rougeL": 60.54501054501055}
    found = rouge(PREDICTIONS, REFERENCES)
    assert found.pop("rouge") == pytest.approx(np.mean([*expected.values()]))
    assert found == pytest.approx(expected, rel=1e-12)


def test_rouge_of_stems_is_that_of_rouge_score() -> None:
    # the same with use_stemmer=True
    expected = {"rouge1": 73.72960372960372, "rouge2": 47.42424242424243, "rougeL": 66.002331002331}
    found = rouge_stemmed(PREDICTIONS, REFERENCES)
    assert found.pop("rouge_stemmed") == pytest.approx(np.mean([*expected.values()]))
    assert found == pytest.approx({f"{name}_stemmed": value for name, value in expected.items()}, rel=1e-12)


def test_rouge_scores_what_rouge_score_finds_nothing_in_with_0() -> None:
    # rouge-score prints 40.0, 20.0, 40.0 for these five
    found = rouge(["", "...", "a", "é a", "Ab-c"], [["a", ""], ["", "!"], ["a", "a b"], ["é"], ["ab c", "abc"]])
    assert found == pytest.approx({"rouge": 100 / 3, "rouge1": 40, "rouge2": 20, "rougeL": 40})


def test_rouge_of_hand_worked_sentences() -> None:
    # 3 of 4 and 5 words are shared; of 3 and 4 bigrams "the cat"; the longest common subsequence is "the cat sat"
    found = rouge(["The cat here sat"], [["the cat sat on mats"]])
    assert found["rouge1"] == pytest.approx(100 * 2 * 3 / 9)
    assert found["rouge2"] == pytest.approx(100 * 2 * 1 / 7)
    assert found["rougeL"] == pytest.approx(100 * 2 * 3 / 9)


def test_each_figure_is_that_of_its_own_best_reference() -> None:
    # "b a c" has all unigrams, "a b x y" the bigram
    found = rouge(["a b c"], [["b a c", "a b x y"]])
    assert found["rouge1"] == 100
    assert found["rouge2"] == pytest.approx(100 * 2 / 5)


def test_the_longest_common_subsequence_is_that_of_rouge_l() -> None:
    pairs = [(list("abcd"), list("acdef")), (["a"], ["b"]), (list("ab"), list("ba"))]
    found, expected = zip(*pairs)
    np.testing.assert_array_equal(f_measures(found, expected)[2], rouge_l.rewards(found, expected))
    np.testing.assert_allclose(rewards(found, expected), f_measures(found, expected).mean(0))
    assert rewards([[1, 2, 3]], [[1, 2, 3]]).tolist() == [1.0]
    assert rewards([[]], [[]]).tolist() == [0.0]


def test_words_of_rouge_are_letters_and_digits() -> None:
    assert " ".join(words("The U.N.'s 1,000 naïve-ish Looms")) == "the u n s 1 000 na ve ish looms"
    assert " ".join(stems("The looms were relational")) == "the loom were relat"  # at most three letters: as it is


@pytest.mark.parametrize("pair", STEMS.split("|"))
def test_stems_are_those_of_porter_with_the_changes_of_nltk(pair: str) -> None:
    word, expected = pair.split()
    assert stem(word) == expected
