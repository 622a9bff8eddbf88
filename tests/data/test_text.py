"""Text: exact round trips, tokens no text can spell, vocabularies that two fits agree on."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from seqloom.data.codecs import vocabularies
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL, UNK
from seqloom.errors import SeqloomError

LINES = [
    "the quick brown fox jumps over the lazy dog",
    "a text that says <eos> and <pad> and <unk> and <0x41>",
    "  two  spaces, Überraschung, 日本語 ▁ and ▅\n",
    "<eos><eos><eos> <bos> <eos>",
] * 5
UNITS = ["char", "word", "bpe", "unigram", "wordpiece", "byte"]
FITTED = {units: Text(units=units, size=400).fit(LINES) for units in UNITS}
LOWERCASE = {units: Text(units=units, size=400, lowercase=True).fit(LINES) for units in UNITS}
odd = st.text() | st.lists(
    st.sampled_from([*SPECIAL, "<0x41>", "▁", "▅", " ", "\x00", "\n", "\r", "\t", "the ", "é", "\u2028", "⁇", "<s>"])
).map("".join)


@pytest.mark.parametrize("units", ["bpe", "unigram", "byte"])
@settings(max_examples=150, deadline=None)
@given(text=odd)
@example(text="<eos>")
@example(text=" <eos> <pad>")
@example(text="▁ ▁▁ a▁")
def test_any_text_comes_back(units, text):
    codec = FITTED[units]
    ids = codec.encode(text)
    assert codec.decode(ids) == text
    assert ids.dtype == np.int64
    assert all(len(SPECIAL) <= index < codec.vocabulary for index in ids.tolist())


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(odd.filter(bool), min_size=1, max_size=4))
def test_characters_come_back_where_they_were_fitted(texts):
    codec = Text(units="char").fit(texts)
    assert [codec.decode(ids) for ids in codec.encode_many(texts)] == texts


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(odd.filter(str.strip), min_size=1, max_size=4))
def test_words_come_back_up_to_white_space(texts):
    codec = Text(units="word").fit(texts)
    assert [codec.decode(codec.encode(text)) for text in texts] == [" ".join(text.split()) for text in texts]


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(odd.filter(str.strip), min_size=1, max_size=3), size=st.integers(1, 1000))
def test_unigram_pieces_are_learned_from_any_corpus_however_small(texts, size):
    codec = Text(units="unigram", size=size).fit([*texts, "a"])
    assert codec.vocabulary <= max(size, 264) + 4
    assert [codec.decode(codec.encode(text)) for text in texts] == texts


@pytest.mark.parametrize("units", UNITS)
def test_many_are_encoded_as_one_by_one(units):
    many = FITTED[units].encode_many(LINES)
    assert all(array.dtype == np.int32 for array in many)
    assert [array.tolist() for array in many] == [FITTED[units].encode(line).tolist() for line in LINES]


@pytest.mark.parametrize("units", UNITS)
def test_decoding_drops_padding_and_stops_at_the_end(units):
    codec = FITTED[units]
    ids = codec.encode("the lazy dog").tolist()
    assert codec.decode([BOS, *ids, EOS, *ids, PAD]) == "the lazy dog"
    assert codec.decode(torch.tensor([PAD, *ids, PAD])) == "the lazy dog"
    assert codec.decode([]) == ""


def test_the_unknown_is_shown():
    assert FITTED["char"].decode(FITTED["char"].encode("foΩx")) == "fo⁇x"
    assert FITTED["word"].decode(FITTED["word"].encode("the Ω fox")) == "the ⁇ fox"
    assert FITTED["word"].encode("Ω").tolist() == [UNK]
    assert FITTED["bpe"].decode([UNK]) == "⁇"


def test_word_pieces_are_those_of_bert():
    codec = Text(units="wordpiece", size=60).fit(["low lower lowest, newer wider, new low"] * 10)
    pieces = codec.pieces(codec.encode("newest, low!"))
    assert "".join(pieces).replace("##", "") == "newest,low<unk>"
    assert pieces[-3:] == [",", "low", "<unk>"]  # a mark of its own; one never seen
    assert not pieces[0].startswith("##")
    assert all(each.startswith("##") for each in pieces[1:-3])
    assert codec.decode(codec.encode("newest, low!")) == "newest , low ⁇"
    assert codec.encode("x" * 101).tolist() == [UNK]
    plain = Text(units="wordpiece", size=60, lowercase=True).fit(["Über über UBER"])
    assert len({tuple(plain.encode(word).tolist()) for word in ("Über", "über", "uber")}) == 1


def test_bytes_that_are_not_a_character_are_replaced():
    codec = Text(units="byte")
    assert codec.decode([0xC3 + 4, ord("a") + 4]) == "\ufffda"
    assert codec.pieces([0xC3 + 4, ord(" ") + 4, EOS]) == ["<C3>", "␣", "<eos>"]


@pytest.mark.parametrize("units", UNITS)
def test_there_is_one_readable_piece_for_each_id(units):
    codec = FITTED[units]
    ids = codec.encode("the lazy dog")
    shown = codec.pieces(ids)
    assert len(shown) == len(ids)
    joined = "".join(shown)
    spaceless = units in ("word", "wordpiece")
    assert joined.replace("##", "") == ("thelazydog" if spaceless else "the␣lazy␣dog")


def test_the_most_frequent_words_are_kept_and_ties_go_by_the_alphabet():
    codec = Text(units="word", size=3).fit(["d c b a", "d d a"])
    assert codec.pieces([4, 5, 6]) == ["d", "a", "b"]
    assert codec.vocabulary == 3 + len(SPECIAL)


def test_byte_pairs_fill_the_size_and_shorten_the_text():
    codec = Text(units="bpe", size=270).fit(["low lower lowest newer wider " + "xyz" * 10] * 10)
    assert codec.vocabulary == 270 + len(SPECIAL)
    assert len(codec.encode("low lower")) < len(Text(units="byte").encode("low lower"))


def test_lower_case_is_applied_when_asked():
    assert Text(lowercase=True, units="char").fit(["abc"]).decode([4]) == "a"
    codec = Text(lowercase=True).fit(["The Dog"])
    assert codec.decode(codec.encode("THE DOG")) == "the dog"


@pytest.mark.parametrize("units", UNITS)
def test_a_second_fit_learns_the_same(units):
    assert Text(units=units, size=400).fit(iter(LINES)).fingerprint() == FITTED[units].fingerprint()


def test_another_process_learns_the_same():
    program = (
        "import json, sys; from seqloom.data.codecs.text import Text; lines = json.loads(sys.argv[1]); "
        "print(*(Text(units=units, size=400).fit(lines).fingerprint() for units in sys.argv[2:]))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, json.dumps(LINES), *UNITS], capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == [FITTED[units].fingerprint() for units in UNITS]


def test_fingerprints_tell_vocabularies_apart():
    prints = [codec.fingerprint() for codec in FITTED.values()]
    prints.append(Text(units="bpe", size=400).fit(LINES[:1]).fingerprint())
    prints.append(Text(units="bpe", size=400, lowercase=True).fit(LINES).fingerprint())
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("units", UNITS)
def test_a_saved_vocabulary_loads_as_it_was(tmp_path, units):
    FITTED[units].save(tmp_path, "source")
    suffix = "sentencepiece.model" if units == "unigram" else "tokenizer.json"
    assert [path.name for path in tmp_path.iterdir()] == [f"source.{suffix}"]
    again = Text(units=units, size=400).load(tmp_path, "source")
    assert again.fingerprint() == FITTED[units].fingerprint()
    apart = LINES[1].replace("<", " < ").replace(">", " > ").split()
    assert again.decode(again.encode(LINES[1])) == (" ".join(apart) if units == "wordpiece" else LINES[1])
    assert again.encode(LINES[3]).tolist() == FITTED[units].encode(LINES[3]).tolist()


@pytest.mark.parametrize("units", ["char", "word", "bpe", "wordpiece", "byte"])
def test_the_saved_file_alone_gives_the_same_ids(tmp_path, units):
    FITTED[units].save(tmp_path, "source")
    alone = Tokenizer.from_file(str(tmp_path / "source.tokenizer.json"))
    for line in [*LINES, "Ω unseen \U0001f9f5 <eos>"]:
        assert alone.encode(line, add_special_tokens=False).ids == FITTED[units].encode(line).tolist()


@pytest.mark.parametrize("units", UNITS)
def test_missing_broken_and_foreign_vocabularies_are_refused(tmp_path, units):
    with pytest.raises(SeqloomError, match="cannot be read"):
        Text(units=units).load(tmp_path, "source")
    suffix = "sentencepiece.model" if units == "unigram" else "tokenizer.json"
    for content in (b"", b"{}", b'{"version": "1.0"}', b"\x00\xff" * 50):
        (tmp_path / f"source.{suffix}").write_bytes(content)
        with pytest.raises(SeqloomError, match="not a vocabulary of units"):
            Text(units=units).load(tmp_path, "source")
    if units != "unigram":
        FITTED["bpe" if units != "bpe" else "char"].save(tmp_path, "source")
        with pytest.raises(SeqloomError, match="other units"):
            Text(units=units).load(tmp_path, "source")


def test_mistakes_are_one_line(tmp_path):
    for mistake in (
        lambda: Text(units="bpee"),
        lambda: Text(size=0),
        lambda: Text().encode("not fitted"),
        lambda: Text().save(tmp_path, "source"),
        lambda: Text().fit([]),
        lambda: Text().fit(["", ""]),
        lambda: FITTED["bpe"].encode("\ud800"),
        lambda: FITTED["bpe"].encode(3),
        lambda: FITTED["bpe"].save(tmp_path / "nowhere", "source"),
    ):
        with pytest.raises(SeqloomError) as caught:
            mistake()
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("units", ["char", "word", "bpe", "unigram", "wordpiece"])
def test_an_error_of_the_reader_reaches_the_caller(units):
    def lines():
        yield "a b"
        raise SeqloomError("line 2 is bad")

    with pytest.raises(SeqloomError, match="line 2 is bad"):
        Text(units=units).fit(lines())


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("units", UNITS)
@settings(max_examples=100, deadline=None)
@given(chunks=st.lists(odd | st.sampled_from(["", " ", "Σ", "the", "\x1c", "\xa0", "\u2003", "fox's", "!?", "dog "])))
@example(chunks=["the", "Σ", " "])
@example(chunks=["a", "Σ", "a"])
def test_in_whatever_chunks_a_text_comes_it_is_that_of_the_whole(units, lowercase, chunks):
    codec = (LOWERCASE if lowercase else FITTED)[units]
    feed = codec.feed()
    found = [*(feed.feed(chunk) for chunk in chunks), feed.close()]
    assert np.concatenate(found).tolist() == codec.encode("".join(chunks)).tolist()
    assert all(ids.dtype == np.int64 for ids in found)


def test_a_word_is_complete_when_a_space_follows_and_a_character_at_once():
    for units, counts in {"char": [2, 1, 2, 0], "byte": [2, 1, 2, 0], "word": [1, 0, 0, 1]}.items():
        feed = FITTED[units].feed()
        assert [*(len(feed.feed(chunk)) for chunk in ("a ", " ", "do")), len(feed.close())] == counts
    feed = FITTED["bpe"].feed()
    assert [FITTED["bpe"].decode(feed.feed(chunk)) for chunk in ("the qu", "ick ", " ")] == ["the", " quick", ""]
    assert FITTED["bpe"].decode(feed.close()) == "  "
    with pytest.raises(SeqloomError, match="expected a string"):
        feed.feed(b"the")


def hostile_tokenizers(units):
    """A saved vocabulary with something in it that the library would do and we never ask for."""
    content = json.loads(vocabularies.to_bytes(FITTED[units]._model))
    endless = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"}
    padding = {"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
               "pad_type_id": 0, "pad_token": "x"}  # fmt: skip
    token = {"id": 0, "content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}  # fmt: skip
    model, vocabulary = content["model"], content["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    foreign = {"bpe": "\U0001f9f5", "byte": "\U0001f9f5", "char": "ab", "word": SPECIAL[0], "wordpiece": "\U0001f9f5"}[
        units
    ]
    beyond = len(vocabulary) + units.startswith("word")
    return [
        {**content, "normalizer": endless},
        {**content, "padding": padding},
        {**content, "added_tokens": [token]},
        {**content, "model": {**model, "unk_token": "nothing"}},
        {**content, "model": {**model, "vocab": {**vocabulary, last: 10**6}}},
        {
            **content,
            "model": {**model, "vocab": {**vocabulary, foreign: beyond}, "merges": []},
        },
        {**content, "model": {**model, "vocab": {}}},
        {**content, "model": None},
        {**content, "pre_tokenizer": {"type": "Punctuation", "behavior": "Isolated"}},
    ]


@pytest.mark.parametrize("units", ["char", "word", "bpe", "wordpiece", "byte"])
def test_a_vocabulary_that_does_more_than_ours_is_refused(tmp_path, units):
    for content in hostile_tokenizers(units):
        (tmp_path / "source.tokenizer.json").write_text(json.dumps(content))
        with pytest.raises(SeqloomError, match=r"source\.tokenizer\.json is not a vocabulary"):
            Text(units=units).load(tmp_path, "source")
