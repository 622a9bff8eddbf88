"""Dialogues: turns end to end with EOS between, and each turn after the first as a reply."""

import gzip
import json

import numpy as np
import pytest
import torch

from seqloom.data import batching
from seqloom.data.codecs.dialogue import Dialogue
from seqloom.data.corpus import Corpus
from seqloom.data.dataset import prepare
from seqloom.data.dialogues import join_turns, turns_of
from seqloom.data.generators.slots import CITIES, NUMBERS, slots
from seqloom.data.keys import codec_key
from seqloom.data.layout import Layout
from seqloom.data.readers import Tally, from_pairs, read
from seqloom.data.special_tokens import EOS
from seqloom.data.split import hold_out
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.nn.encoders.hierarchical import groups
from seqloom.types import Example

TEXT = "How are you ? __eou__ Fine , and you ? __eou__ Fine . __eou__"
TURNS = ["How are you ?", "Fine , and you ?", "Fine ."]
WHOLE = Layout(dialogues=True)


def fitted(**settings):
    return Dialogue(**{"units": "word", "lowercase": True, **settings}).fit([TEXT])


def examples(lines, **options):
    return [(each.line, each.source, each.target) for each in from_pairs(lines, layout=WHOLE, **options)]


def test_a_text_is_cut_where_turns_end():
    assert turns_of(TEXT) == TURNS
    assert turns_of(TEXT.removesuffix(" __eou__")) == TURNS
    assert turns_of(TURNS) == TURNS
    assert turns_of(join_turns(TURNS)) == TURNS
    assert turns_of("just one") == ["just one"]


def test_a_turn_of_a_list_is_taken_literally():
    assert turns_of(["a __eou__ b"]) == ["a __eou__ b"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a __eou__ __eou__ b", "turn 2 of 3 is empty"),
        ("__eou__", "turn 1 of 1 is empty"),
        (["a", " "], "turn 2 of 2 is empty"),
        ([], "turn 1 of 0 is empty"),
        (3, "3 is not a dialogue; expected a text or a list of turns"),
        (["a", 3], "is not a dialogue"),
    ],
)
def test_what_is_no_dialogue_is_refused(value, message):
    with pytest.raises(UnreadableError, match=message):
        turns_of(value)


def test_a_context_is_its_turns_end_to_end_with_eos_after_each():
    codec = fitted()
    tokens = codec.read(TEXT)
    assert tokens.dtype == np.int64
    assert np.flatnonzero(tokens == EOS).tolist() == [4, 10, 13]
    assert codec.divisions(tokens) == [turn.lower() for turn in TURNS]
    assert codec.pieces(tokens)[3:6] == ["?", "__eou__", "fine"]
    assert codec.read(TURNS).tolist() == tokens.tolist()


def test_a_reply_is_a_text_of_the_same_vocabulary():
    codec = fitted()
    assert codec.encode("Fine .").tolist() == codec.read("Fine .")[:-1].tolist()
    assert codec.decode([*codec.encode("fine ."), EOS, 7]) == "fine ."
    assert codec.normal("Fine  . __eou__") == "fine ."


def test_the_last_turns_are_kept():
    codec = fitted(turns=2)
    assert codec.divisions(codec.read(TURNS)) == ["fine , and you ?", "fine ."]
    assert codec.content(TEXT) == TURNS[1:]


def test_long_turns_are_cut_and_counted_once():
    codec = fitted(longest=2)
    assert codec.divisions(codec.read(TURNS)) == ["how are", "fine ,", "fine ."]
    codec.read(["fine ."])
    assert codec.notes() == ["In 1 of 2 contexts turns of more than 2 tokens were cut (task.source.longest)."]
    assert codec.notes() == []
    assert codec.encode("how are you ?").shape == (4,)  # a reply is never cut


def test_a_corpus_says_what_was_cut_also_when_it_is_opened_again(tmp_path):
    codec = fitted(longest=2)
    rows = [Example(TURNS[:1], "fine .", 1), Example(["fine ."], "fine .", 2)]
    corpus = Corpus.write(tmp_path / "corpus", rows, codec, codec)
    assert len(corpus.notes) == 1
    assert "1 of 2 contexts" in corpus.notes[0]
    assert Corpus.open(tmp_path / "corpus").notes == corpus.notes


def test_the_report_of_a_training_says_what_was_cut_the_second_time_too(tmp_path):
    file = tmp_path / "dialogues.txt"
    file.write_text("".join(f"hello number {n} and more . __eou__ yes {n} . __eou__\n" for n in range(20)))
    for _ in range(2):
        codec = Dialogue(units="word", longest=3)
        found = prepare(
            [str(file)], source=codec, target=codec, joint=True, seed=1, cache=tmp_path / "cache", layout=WHOLE
        )
        lines = [line for line in found.report.lines() if "were cut" in line]
        assert len(lines) == 2
        assert lines[0].startswith("In 18 of 18 contexts turns of more than 3 tokens were cut")
        assert lines[1].startswith("Validation: In 2 of 2 contexts")


def test_a_source_that_is_too_long_loses_its_first_turns():
    codec = fitted()
    assert codec.cut(["one", "two", "three"], 8) == ["two", "three"]
    assert codec.cut("one __eou__ seventeen", 5) == ["seven"]


def test_settings_are_part_of_the_key_of_the_cache():
    assert len({codec_key(codec) for codec in (fitted(), fitted(turns=2), fitted(longest=9))}) == 3


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="turns = -1 and longest = 0 must be 0 or more"):
        Dialogue(turns=-1)


# -- dialogues as examples


def test_each_turn_after_the_first_is_a_reply_to_all_before_it():
    assert examples([TEXT, ["a", "b"]]) == [
        (1, (TURNS[0],), TURNS[1]),
        (1, (TURNS[0], TURNS[1]), TURNS[2]),
        (2, ("a",), "b"),
    ]


def test_a_context_never_has_its_reply():
    turns = [f"turn {number}" for number in range(6)]
    for number, (_, source, target) in enumerate(examples([turns]), start=1):
        assert (list(source), target) == (turns[:number], turns[number])


@pytest.mark.parametrize(
    "record", [("a __eou__ b", "c"), (["a", "b"], "c __eou__"), {"source": ["a", "b"], "target": "c"}, "a __eou__ b\tc"]
)
def test_a_pair_is_one_context_with_its_reply(record):
    assert examples([record]) == [(1, ("a", "b"), "c")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", f"{TEXT}\n"),
        ("a.tsv", "How are you ?\tFine , and you ?\nHow are you ? __eou__ Fine , and you ? __eou__\tFine .\n"),
        ("a.jsonl", json.dumps(TURNS) + "\n"),
        ("b.jsonl", json.dumps({"dialogue": TURNS}) + "\n"),
        ("c.jsonl", json.dumps(TEXT) + "\n"),
        ("a.json", json.dumps([TURNS], indent=1)),
        ("a.txt.gz", f"{TEXT}\n"),
    ],
)
def test_files_of_every_format_give_the_same_examples(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    found = [(each.source, each.target) for each in read([path], layout=WHOLE)]
    assert found == [((TURNS[0],), TURNS[1]), ((TURNS[0], TURNS[1]), TURNS[2])]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a __eou__ __eou__ b __eou__", "turn 2 of 3 is empty: expected some text in each turn, found 'a __eou__"),
        ("alone __eou__", "expected two turns or more, with __eou__ after each: one has no reply, found 'alone'"),
        ("a\tb __eou__ c", "expected a reply of one turn, not 2"),
        ("a\tb\tc", "expected a context, a tab and a reply"),
        ("\tb", "expected a context and a reply, neither of them empty"),
        ("a __eou__\t", "expected a context and a reply, neither of them empty"),
        ("x" * 101, "expected at most 100 characters"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path, line, message):
    path = tmp_path / "dialogues.txt"
    path.write_text(f"a __eou__ b\n{line}\n\n")
    with pytest.raises(SeqloomError, match=f"dialogues.txt, line 2: {message}"):
        list(read([path], layout=WHOLE, max_characters=100))
    tally = Tally()
    assert len(list(read([path], layout=WHOLE, max_characters=100, skip_bad=True, tally=tally))) == 1
    assert tally.skipped == 1


@pytest.mark.parametrize("line", ["[1, 2]", '{"turns": []}', "{", "3", '["a", ""]', "[]"])
def test_bad_json_is_a_bad_line(tmp_path, line):
    path = tmp_path / "dialogues.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(SeqloomError, match=r"dialogues.jsonl, line 1: "):
        list(read([path], layout=WHOLE))


def test_tables_have_no_dialogues(tmp_path):
    path = tmp_path / "dialogues.csv"
    path.write_text("a,b\n")
    with pytest.raises(SeqloomError, match=r"data.dialogues = true reads lines .* no csv"):
        list(read([path], layout=WHOLE))
    with pytest.raises(SeqloomError, match=r"data.dialogues = true: its lines have no columns"):
        list(read([path], layout=Layout(columns=(1, 2), dialogues=True)))
    with pytest.raises(SeqloomError, match=r"data.dialogues = true: a language model has no turns before"):
        list(read([path], 1, layout=WHOLE))


def test_dialogues_are_held_out_whole(tmp_path):
    lines = [[f"opening {n}", f"second {n}", f"third {n}", f"fourth {n}"] for n in range(60)]
    codec = Dialogue(units="word")
    found = prepare(lines, source=codec, target=codec, joint=True, seed=1, cache=tmp_path, layout=WHOLE)
    held = {each.source[0] for each in found.valid_examples}
    assert 3 <= len(held) <= 6
    assert len(found.valid_examples) == 3 * len(held)


def test_what_is_held_out_goes_by_group():
    groups = np.array([1, 1, 2, 2, 3, 3] * 10, dtype=np.uint64)
    held = hold_out(groups, 30)
    assert all(len(set(held[groups == group])) == 1 for group in (1, 2, 3))


# -- how much of a batch is padding


def test_turns_end_to_end_are_hardly_padded_where_tables_would_be_mostly_padding():
    """Lengths as in DailyDialog: 14 tokens on average, few of more than 60; there a batch of tables is 3.1 times as
    large as its tokens, all turns side by side 2.8 times, in groups 1.39 times, and turns end to end 1.03 times."""
    chance = np.random.default_rng(1)
    turns = np.clip(chance.lognormal(2.3, 0.75, (8000, 4)).astype(int) + 1, 2, 60)  # tokens, EOS included
    codec = fitted()
    context = [" ".join(["fine"] * (length - 1)) for length in turns[0]]
    assert len(codec.read(context)) == turns[0].sum()
    tokens = turns.sum(1)
    plan = batching.plan(np.stack([tokens, turns[:, 0]], axis=1), 4096, seed=1, epoch=0)
    batches = [plan[number] for number in range(len(plan))]
    assert sum(len(rows) * tokens[rows].max() for rows in batches) < 1.05 * tokens.sum()
    assert sum(turns[rows].size * turns[rows].max() for rows in batches) > 2.5 * tokens.sum()  # tables
    lengths = [torch.from_numpy(turns[rows].reshape(-1)) for rows in batches]
    read = sum(len(group) * int(each[group].max()) for each in lengths for group in groups(each))
    assert read < 1.45 * tokens.sum()  # by the encoder of words


# -- generated dialogues


def test_the_city_is_named_at_the_distance_and_nowhere_else():
    for distance in (3, 5):
        for example in slots(200, distance=distance):
            turns = turns_of(example.source)
            number, _, city, _ = example.target.split()
            assert len(turns) == distance
            assert [place for place, turn in enumerate(turns) if city in turn.split()] == [0]
            assert number in turns[-1].split()
            assert not any(set(turn.split()) & set(CITIES) for turn in turns[1:])
            assert not any(set(turn.split()) & set(NUMBERS) for turn in turns[:-1])


def test_the_last_turn_says_nothing_of_the_city():
    """Given the last turn, cities are equally likely: chance is 1 of 20."""
    counts = np.zeros(len(CITIES))
    for example in slots(20_000):
        counts[CITIES.index(example.target.split()[2])] += 1
    expected = counts.sum() / len(CITIES)
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-square, 19 degrees of freedom, p = 0.001
