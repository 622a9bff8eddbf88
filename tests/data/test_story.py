"""Stories: a row a sentence, the question last; answers are words of the same vocabulary."""

import json

import numpy as np
import pytest

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.codecs.story import Story, sentences_of
from seqloom.data.keys import codec_key
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.tasks.answer import Answer

STORY = "Mary moved to the bathroom. John went to the hallway. Where is Mary?"
WORDS = [["mary", "moved", "to", "the", "bathroom"], ["john", "went", "to", "the", "hallway"], ["where", "is", "mary"]]


@pytest.fixture
def codec():
    return Story().fit([STORY, "milk,football"])


def test_a_text_is_cut_where_sentences_end():
    assert sentences_of(STORY) == WORDS
    assert sentences_of(["Mary moved to the bathroom.", "John went to the hallway", "Where is Mary?"]) == WORDS
    assert sentences_of("It costs 3.50 here, they say!  Really ?  ") == [
        ["it", "costs", "3.50", "here", "they", "say"],
        ["really"],
    ]


def test_a_story_is_a_row_a_sentence(codec):
    table = codec.read(STORY)
    assert table.shape == (3, 5)
    assert table.dtype == np.int64
    assert table[2, 3:].tolist() == [0, 0]
    assert codec.pieces(table) == [" ".join(words) for words in WORDS]
    assert codec.read("Where is Nobody?")[0].tolist()[2] == 1


def test_an_answer_is_a_word_of_the_same_vocabulary(codec):
    assert codec.decode(codec.encode("Bathroom")) == "bathroom"
    assert codec.encode("milk,football").shape == (1,)
    assert codec.encode("bathroom")[0] == codec.read(STORY)[0, 4]
    assert codec.decode([codec.encode("mary")[0], 1, 0, 3, 4]) == "mary ⁇"
    assert codec.pieces([2, codec.encode("john")[0]]) == ["<bos>", "john"]
    assert codec.normal(" Milk,Football ") == "milk,football"


def test_only_the_last_sentences_are_kept():
    codec = Story(sentences=1).fit([STORY])
    assert codec.pieces(codec.read(STORY)) == ["john went to the hallway", "where is mary"]


def test_a_sentence_longer_than_any_in_training_is_refused_unless_width_allows_it(codec):
    long = "Mary moved to the very large bathroom. Where is Mary?"
    with pytest.raises(SeqloomError, match=r"has 7 words; this model reads up to 5: .*width = 7"):
        codec.read(long)
    assert Story(width=9).fit([STORY]).read(long).shape == (2, 9)


@pytest.mark.parametrize("value", [3, None, ["a", 3], "", " . ? ", []])
def test_what_is_not_a_story_is_unreadable(codec, value):
    with pytest.raises(UnreadableError, match="story"):
        codec.content(value)


def test_what_is_saved_is_read_back(codec, tmp_path):
    codec.save(tmp_path, "source")
    again = Story().load(tmp_path, "source")
    assert np.array_equal(again.read(STORY), codec.read(STORY))
    assert again.vocabulary == codec.vocabulary == 4 + 11
    assert codec_key(again) == codec_key(codec) != codec_key(Story().fit(["Mary is here."]))


@pytest.mark.parametrize(
    "content",
    [
        "nonsense",
        "[]",
        '{"words": ["a"]}',
        '{"words": [], "width": 3}',
        '{"words": [1], "width": 3}',
        '{"words": ["a"], "width": 1000000000}',
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, content):
    (tmp_path / "source.story.json").write_text(content)
    with pytest.raises(SeqloomError, match=r"source\.story\.json.*words of stories"):
        Story().load(tmp_path, "source")
    with pytest.raises(SeqloomError, match="cannot be read"):
        Story().load(tmp_path, "target")


def test_an_unfitted_codec_is_refused():
    with pytest.raises(SeqloomError, match="fit them or load them"):
        Story().read(STORY)
    with pytest.raises(SeqloomError, match="nothing to learn from"):
        Story().fit([])


class TestAnswer:
    def test_a_target_is_one_token_without_an_end(self, codec):
        task = Answer(source=codec, target=codec, joint=True)
        batch = task.batch(
            [codec.read(STORY), codec.read("Where is Mary?")], [codec.encode("mary"), codec.encode("john")]
        )
        assert batch.source.values.shape == (2, 3, 5)
        assert batch.source.lengths.tolist() == [3, 1]
        assert batch.inputs.values.tolist() == [[2], [2]]
        assert batch.targets.values.tolist() == [codec.encode("mary").tolist(), codec.encode("john").tolist()]

    def test_batches_may_have_a_number_of_rows(self, codec):
        lengths = np.array([[count % 40 + 1, 1] for count in range(1000)])
        plan = Answer(source=codec, target=codec, rows=32).plan(lengths, 4096, 1, 0)
        sizes = [len(plan[number]) for number in range(len(plan))]
        assert sum(sizes) == 1000
        assert max(sizes) == 32
        assert sum(size == 32 for size in sizes) >= 30
        free = Answer(source=codec, target=codec).plan(lengths, 4096, 1, 0)
        assert max(len(free[number]) for number in range(len(free))) > 32


RECIPE = read_recipe("babi")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["encoder=recurrent"], r'encoder.type = "recurrent": .* take "memory_network"'),
        (["share_embeddings=false", "decoder=recurrent"], r'decoder.type = "recurrent": .* an answer is given at once'),
        (
            [
                "task.target={type='text', units='word'}",
                "task.joint=false",
                "task.source={type='text'}",
                "share_embeddings=false",
            ],
            "story",
        ),
        (["task.rows=-1"], "rows = -1"),
        (["task.source.width=-1"], "width = -1"),
    ],
)
def test_parts_that_do_not_fit_say_so(changes, message):
    with pytest.raises(SeqloomError, match=message):
        check_recipe(complete(override(RECIPE, changes), "babi"))


def test_a_saved_story_is_plain_json(codec, tmp_path):
    codec.save(tmp_path, "source")
    assert json.loads((tmp_path / "source.story.json").read_text())["width"] == 5
