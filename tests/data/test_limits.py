"""The limit of one source: the same at every door, named in one line, and a way around it."""

import io
import time

import numpy as np
import pytest

from seqloom.cli.predict import chunks
from seqloom.data import lines
from seqloom.data.lines import lines as read_lines
from seqloom.data.readers import Tally, read
from seqloom.errors import SeqloomError, UnreadableError
from tests.faults.untrained import untrained


class Pipe(io.BytesIO):
    """Counts what is taken from it."""

    taken = 0

    def read1(self, size=-1):
        found = super().read1(size)
        self.taken += len(found)
        return found


@pytest.fixture
def model():
    model = untrained("recurrent")
    model.max_characters = 10
    yield model
    model.max_characters = 20_000


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_source_that_is_too_long_is_named_by_its_index_with_the_limit_and_what_to_do(model):
    message = complaint(model.predict, ["abc", "abc", "a" * 11])
    assert message.startswith("sources[2] has 11 characters; expected at most 10 (data.max_characters)")
    assert all(way in message for way in ("--truncate", "truncate=True", "--max-characters"))
    assert len(model.predict(["abc", "a" * 10])) == 2


def test_a_cut_source_is_answered_like_its_beginning(model):
    text = "abcdefghabcdefgh"
    assert model.predict([text], truncate=True) == model.predict([text[:10]])
    assert [one.text for one in model.candidates([text], truncate=True)[0]] == model.predict([text[:10]])


def test_the_limit_can_be_raised_and_only_sensibly(model):
    model.max_characters = 11
    assert model.recipe["data"]["max_characters"] == 11
    model.predict(["a" * 11])
    for wrong in (0, -1, 10**12, "x", 1.5):
        assert "max_characters" in complaint(setattr, model, "max_characters", wrong)


def test_every_door_has_the_same_limit(model):
    long = "a" * 11
    assert "the source has 11 characters" in complaint(model.explain, long)
    assert model.explain(long, truncate=True).source == list(long[:10])
    assert "at most 10 characters" in complaint(model.score, [(long, "a")])
    assert "line 2" in complaint(model.evaluate, [("a", "b"), (long, "a")])
    assert "the prefix has 11 characters" in complaint(model.predict, ["a"], prefix=long)
    assert "the banned text has 11 characters" in complaint(model.predict, ["a"], banned=[long])
    with model.stream(wait=2) as stream:
        stream.feed("a" * 6)
        assert "more than 10 characters" in complaint(stream.feed, "a" * 6)


def test_a_stream_that_is_cut_ends_like_its_beginning(model):
    text = "abcdefghabcdefgh"

    def end(text, **options):
        stream = model.stream(wait=2, **options)
        for begin in range(0, len(text), 3):
            stream.feed(text[begin : begin + 3])
        return stream.close().final

    assert end(text, truncate=True) == end(text[:10])


def test_lists_and_arrays_are_limited_by_their_items_and_sound_by_its_seconds():
    from seqloom.data.codecs.numbers import Numbers
    from seqloom.data.limits import admit

    codec, sound = Numbers().fit(["1 2"]), untrained("speech").task.source
    assert "12 items" in complaint(admit, codec, np.zeros((12, 1)), 10, "it")
    assert len(admit(codec, np.zeros((12, 1)), 10, "it", truncate=True)) == 10
    assert len(admit(sound, np.zeros(8000, np.float32), 10, "it")) == 8000


class TestStandardInput:
    def test_lines_come_as_they_are(self):
        text = "a\r\n\n語🙂\nno end"
        assert list(chunks(io.BytesIO(text.encode()), 10)) == [["a", "", "語🙂"], ["no end"]]
        assert list(chunks(io.BytesIO(b""), 10)) == []

    @pytest.mark.parametrize("character", ["a", "é", "🙂"])
    def test_a_line_of_the_limit_is_read_and_one_more_character_is_not(self, character):
        assert list(chunks(io.BytesIO(f"{character * 10}\r\n".encode()), 10)) == [[character * 10]]
        message = complaint(list, chunks(io.BytesIO(f"a\n{character * 11}\n".encode()), 10))
        assert message.startswith("standard input, line 2, has ")
        assert "characters; expected at most 10 (data.max_characters)" in message
        assert list(chunks(io.BytesIO(f"{character * 11}\nb".encode()), 10, truncate=True)) == [
            [character * 10],
            ["b"],
        ]

    def test_no_more_of_a_line_is_read_than_tells_that_it_is_too_long(self):
        pipe = Pipe(b"x" * 2**22)
        assert "line 1, has more than 10 characters" in complaint(list, chunks(pipe, 10))
        assert pipe.taken <= 2**16

    def test_a_line_without_an_end_takes_linear_time_and_little_memory(self):
        def seconds(megabytes):
            pipe, began = io.BytesIO(b"x" * (megabytes << 20)), time.perf_counter()
            assert list(chunks(pipe, 100, truncate=True)) == [["x" * 100]]
            return time.perf_counter() - began

        seconds(1)
        assert min(seconds(64) for _ in range(3)) < 2  # in quadratic time it took a minute

    def test_what_is_not_utf8_is_named(self):
        assert "line 2: not UTF-8" in complaint(list, chunks(io.BytesIO(b"a\n\xff\n"), 10))
        assert "line 1: not UTF-8" in complaint(list, chunks(io.BytesIO("🙂".encode()[:3]), 10))


class TestFiles:
    def test_whoever_takes_no_further_line_does_not_wait_for_the_end_of_an_endless_one(self):
        assert len(next(read_lines("/dev/zero", 10))) == 48
        message = complaint(list, read(["/dev/zero"]))
        assert "line 1: expected at most 20,000 characters (data.max_characters), not more" in message

    def test_an_endless_line_is_not_skipped_for_ever(self, monkeypatch):
        monkeypatch.setattr(lines, "ENDLESS", 10**6)
        message = complaint(list, read(["/dev/zero"], skip_bad=True))
        assert message == "/dev/zero has a line of more than 1,000,000 bytes; is it text?"

    def test_the_lines_after_a_long_one_are_read(self, tmp_path):
        path, tally = tmp_path / "a.tsv", Tally()
        path.write_bytes(b"a\tb\n" + b"x" * 10**6 + b"\nc\td\n")
        found = list(read([path], skip_bad=True, max_characters=20, tally=tally))
        assert [(one.source, one.line) for one in found] == [("a", 1), ("c", 3)]
        assert tally.reasons == {"too long": 1}


def test_attention_that_would_fill_the_memory_is_refused(monkeypatch, model):
    from seqloom.contracts import search

    monkeypatch.setattr(search, "MOST_WEIGHTS", 10)
    assert "more weights than 10" in complaint(model.candidates, ["abcdefgh"], attention=True)
    assert model.candidates(["abcdefgh"])[0]


def test_an_error_of_a_source_is_one_that_names_lines():
    assert issubclass(UnreadableError, SeqloomError)
