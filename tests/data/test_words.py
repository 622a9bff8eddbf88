"""Words with their spelling, whole lines as labels, and pairs whose sides must be equally long."""

import numpy as np
import pytest

from seqloom.data.codecs.text import Text
from seqloom.data.codecs.words import BEGIN, END, FIRST, Words
from seqloom.data.special_tokens import SPECIAL, UNK
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.tasks.tagging import Tagging
from seqloom.types import Example

TEXTS = ["to be or not to be", "Be brief"]


def codes(word):
    return [FIRST + ord(letter) for letter in word]


def test_a_row_is_a_word_and_its_letters():
    codec = Words(letters=5).fit(TEXTS)
    table = codec.encode("to  bee")
    assert table.shape == (2, 8)
    assert table[0].tolist() == [len(SPECIAL) + 1, BEGIN, *codes("to"), END, 0, 0, 0]
    assert table[1].tolist() == [UNK, BEGIN, *codes("bee"), END, 0, 0]
    assert codec.pieces(table) == ["to", "bee"]
    assert codec.decode(table) == "to ⁇"
    assert codec.elements("to  bee") == 2


def test_the_middle_of_a_long_word_is_left_out():
    codec = Words(letters=5).fit(TEXTS)
    assert codec.encode("abcdefg")[0, 1:].tolist() == [BEGIN, *codes("abefg"), END]
    assert codec.encode("abcde")[0, 1:].tolist() == [BEGIN, *codes("abcde"), END]


def test_words_in_lower_case_keep_their_spelling():
    codec = Words(lowercase=True).fit(TEXTS)
    one, other = codec.encode("Be be")
    assert one[0] == other[0] != UNK
    assert one[2] != other[2]


def test_saved_words_are_loaded(tmp_path):
    codec = Words(letters=4).fit(TEXTS)
    codec.save(tmp_path, "source")
    again = Words(letters=4).load(tmp_path, "source")
    assert np.array_equal(again.encode("not so be"), codec.encode("not so be"))
    assert again.fingerprint() == codec.fingerprint() != Words(letters=5).fit(TEXTS).fingerprint()


def test_a_line_is_one_token_whatever_its_words(tmp_path):
    codec = Text(units="line").fit(["very good", "bad", "very good", "a  b"])
    assert codec.vocabulary == len(SPECIAL) + 3
    assert codec.encode("very good").tolist() == [len(SPECIAL)]
    assert codec.encode(" very  good ").tolist() == [len(SPECIAL)]
    assert codec.encode("good").tolist() == [UNK]
    assert codec.decode(codec.encode("a b")) == "a b"
    assert codec.elements("very good") == 1
    codec.save(tmp_path, "target")
    assert Text(units="line").load(tmp_path, "target").decode([len(SPECIAL)]) == "very good"
    with pytest.raises(SeqloomError, match='not a vocabulary of units = "word"'):
        Text(units="word").load(tmp_path, "target")
    with pytest.raises(SeqloomError, match="cannot be streamed"):
        codec.feed()


def test_a_line_with_more_or_fewer_tags_than_words_is_bad_and_says_both_counts():
    task = Tagging(source=Words(), target=Text(units="word"))
    task.check(Example("the dog barks", "DT NN VBZ"))
    with pytest.raises(UnreadableError, match="has 3 tokens, but its target 2 tags"):
        task.check(Example("the dog barks", "DT NN"))


def test_tags_need_sides_whose_tokens_are_known_before_anything_is_learned():
    with pytest.raises(ValueError, match="source: a tag belongs to one word"):
        Tagging(source=Text(units="bpe"), target=Text(units="word"))
