"""Copying: words outside the vocabulary are tokens by their position, spelled as in their source."""

from pathlib import Path

import pytest
import torch

from seqloom.data.codecs.copying import Copying
from seqloom.data.codecs.text import Text
from seqloom.data.keys import codec_key, codec_settings
from seqloom.data.special_tokens import EOS, SPECIAL, UNK, correspondence
from seqloom.errors import SeqloomError
from seqloom.tasks.pairs import Pairs


def words(*values: str, **settings: object) -> Copying:
    text = Text(units="word", size=3, **settings)  # type: ignore[arg-type]
    return Copying(codec=text).fit(values or ["i am tom", "i am", "i am tom", "i am rare"])


def test_unknown_words_of_a_source_are_their_first_places() -> None:
    codec = words()
    known, first = codec.vocabulary, len(SPECIAL)
    assert codec.read("i Zork am Quux Zork").tolist()[1:] == [
        known + 1,
        *codec.encode("am").tolist(),
        known + 3,
        known + 1,
    ]
    assert all(first <= token < known for token in codec.read("i am tom").tolist())


def test_unknown_words_of_a_target_are_copies_if_the_source_has_them() -> None:
    codec = words()
    found = codec.encode("Quux i Zork Zork", "am Zork Zork").tolist()
    assert found == [UNK, *codec.encode("i").tolist(), codec.vocabulary + 1, codec.vocabulary + 1]
    assert codec.encode("Zork").tolist() == [UNK]  # a prefix has no source


def test_copies_are_spelled_as_in_their_source() -> None:
    codec = words(lowercase=True)
    source = "I   met ZoRK"
    tokens = codec.encode("i am zork", source)
    assert codec.decode([*tokens, EOS, 5], source) == "i am ZoRK"
    assert codec.decode(torch.tensor(tokens), source) == "i am ZoRK"
    assert codec.decode(tokens) == "i am ⁇"
    assert codec.pieces([*tokens.tolist(), UNK], source) == ["i", "am", "ZoRK", "<unk>"]


def test_places_of_small_letters_are_those_of_their_source() -> None:
    codec = Copying(codec=Text(units="char", lowercase=True)).fit(["abc"])
    source = "İXa"  # its first letter is two characters when it is small
    assert len(codec.read(source)) == 4
    assert codec.decode(codec.read(source), source) == "İXa"
    assert codec.decode(codec.encode("x", source), source) == "X"


def test_tokens_of_both_sides_correspond() -> None:
    ours, theirs = words(), words("am you", "am you", "am you tom")
    found = correspondence(ours, theirs)
    for token, other in enumerate(found):
        text = ours.decode([token])
        expected = token if token < len(SPECIAL) else int(theirs.encode(text)[0])
        assert other == expected
    assert UNK in found[len(SPECIAL) :]


def test_it_is_saved_and_read_back_and_never_taken_for_the_plain_codec(tmp_path: Path) -> None:
    codec = words()
    codec.save(tmp_path, "target")
    again = Copying(codec=Text(units="word", size=3)).load(tmp_path, "target")
    assert again.vocabulary == codec.vocabulary
    assert codec_key(again) == codec_key(codec) != codec_key(codec.codec)
    assert codec_settings(codec) == {"units": "word", "size": 3, "lowercase": False}


def test_with_one_vocabulary_both_sides_are_one_codec() -> None:
    text = Text(units="word", size=3)
    task = Pairs(target=text, source=Text(units="word"), joint=True, copy=True)
    assert task.source is task.target
    assert isinstance(task.target, Copying)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (Text(units="bpe"), Text(units="word"), 'units = "bpe" has no unknown words'),
        (Text(units="char"), Text(units="word"), "alike on both sides"),
        (Text(units="word", lowercase=True), Text(units="word"), "alike on both sides"),
        (None, Text(units="word"), "set source"),
    ],
)
def test_what_cannot_be_copied_is_refused(source: Text | None, target: Text, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pairs(source=source, target=target, copy=True)


def test_predictions_are_normalised_before_they_are_compared() -> None:
    text = {"units": "word", "lowercase": True}
    task = Pairs(source=Text(**text), target=Text(**text), copy=True, metrics=("exact", "copy_recall"))  # type: ignore[arg-type]
    assert task.measure(["i am ZoRK"], [["i am zork"]], ["ZoRK"]) == {"exact": 100.0, "copy_recall": 100.0}


def test_text_to_copy_from_cannot_be_streamed() -> None:
    with pytest.raises(SeqloomError, match="cannot be streamed"):
        words().feed()
