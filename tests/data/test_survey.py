"""Survey: what tells pronunciations from translations from plain text."""

import pytest

from seqloom.data.survey import survey
from seqloom.types import Example


def rows(*pairs):
    return [Example(source, target, number) for number, (source, target) in enumerate(pairs, start=1)]


def test_lengths_are_counted():
    found = survey(rows(("ab", "x y x"), ("abcd", "y")))
    assert found.examples == 2
    assert found.source.mean_characters == 3
    assert found.target.mean_words == 2


def test_a_sorted_file_is_looked_at_throughout():
    stream = (Example("a" * (1 + number // 100), "b") for number in range(10_000))
    found = survey(stream, limit=500)
    assert found.examples == 10_000
    assert 45 < found.source.mean_characters < 56


def test_pronunciations_look_like_phonemes_and_sentences_do_not():
    spoken = rows(("loom", "L UW1 M"), ("mood", "M UW1 D"), ("dull", "D AH1 L"), ("mud", "M AH1 D"))
    assert survey(spoken).phoneme_share == 1
    sentences = rows(
        ("der Hund schläft heute", "the dog sleeps today"),
        ("die Katze schläft niemals", "the cat sleeps never"),
        ("welch wundersame Geschichten", "what wondrous stories people tell"),
    )
    assert survey(sentences).phoneme_share < 0.3
    assert survey(rows(("gehen", "ging"), ("sehen", "sah"), ("stehen", "sah"))).phoneme_share == 0


@pytest.mark.parametrize(
    ("pair", "shared"),
    [(("walk", "klaw walk"), True), (("loom", "L UW M"), False), (("weben", "ткать"), False)],
)
def test_a_shared_alphabet_is_noticed(pair, shared):
    assert survey(rows(pair)).shares_alphabet is shared


def test_a_language_model_has_one_side_only():
    found = survey(rows((None, "some text")))
    assert found.source is None
    assert not found.shares_alphabet


def test_nothing_is_surveyed_as_nothing():
    assert survey([]).examples == 0
