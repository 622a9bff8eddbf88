"""Readers: what is read, and the message for every broken file."""

import gzip
import io
import json
import sys
import tracemalloc

import pytest

from seqloom.data.readers import Tally, from_pairs, read
from seqloom.errors import SeqloomError


def written(folder, content, name="pairs.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pairs(*arguments, **options):
    return [(example.source, example.target) for example in read(*arguments, **options)]


def complaint(*arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        list(read(*arguments, **options))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_the_same_pairs_come_from_every_format(tmp_path, monkeypatch):
    wanted = [("a b", "x"), ("ü\x00", "日本")]
    rows = "".join(f"{source}\t{target}\n" for source, target in wanted)
    records = "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in wanted)
    left = written(tmp_path, "a b\nü\x00\n", "left.txt")
    right = written(tmp_path, "x\r\n日本", "right.txt")
    assert pairs([written(tmp_path, rows)]) == wanted
    assert pairs([written(tmp_path, gzip.compress(rows.encode()), "pairs.tsv.gz")]) == wanted
    assert pairs([written(tmp_path, records, "pairs.jsonl")]) == wanted
    assert pairs([str(written(tmp_path, gzip.compress(records.encode()), "pairs.jsonl.gz"))]) == wanted
    assert pairs([left, right]) == wanted
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert pairs(["-"]) == wanted
    assert [(example.source, example.target) for example in from_pairs(wanted)] == wanted


def test_only_newlines_end_a_line_and_a_byte_order_mark_is_dropped(tmp_path):
    path = written(tmp_path, b"\xef\xbb\xbf" + "a\u2028b\x0b\tc\rd\x85\r\n\ufeffe\tf".encode())
    assert pairs([path]) == [("a\u2028b\x0b", "c\rd\x85"), ("\ufeffe", "f")]


def test_a_language_model_reads_texts_without_a_source(tmp_path):
    assert pairs([written(tmp_path, "one\ntwo\n", "text.txt")], 1) == [(None, "one"), (None, "two")]
    assert pairs([written(tmp_path, '{"text": "one"}\n{"target": "two"}', "text.jsonl")], 1) == [
        (None, "one"),
        (None, "two"),
    ]
    assert [(example.source, example.target) for example in from_pairs(["one"], 1)] == [(None, "one")]


def test_line_numbers_are_those_of_the_file(tmp_path):
    path = written(tmp_path, "a\tb\nbad\nc\td\n")
    assert [example.line for example in read([path], skip_bad=True)] == [1, 3]


@pytest.mark.parametrize(
    ("content", "columns", "name", "words"),
    [
        ("a\tb\nalone\n", 2, "p.tsv", ["p.tsv, line 2", "expected 2 columns", "not 1 column,", "'alone'"]),
        ("a\tb\tc\n", 2, "p.tsv", ["line 1", "not 3 columns"]),
        ("a\tb\n", 1, "p.txt", ["line 1", "without tabs"]),
        ("a\tb\n\nc\td\n", 2, "p.tsv", ["line 2", "a source, a tab and a target"]),
        (b"a\tb\nc\xff\td\n", 2, "p.tsv", ["line 2", "UTF-8", "byte 2 is 0xFF"]),
        (" \tb\n", 2, "p.tsv", ["line 1", "source is empty"]),
        ("a\t \n", 2, "p.tsv", ["line 1", "target is empty"]),
        ("\n", 1, "p.txt", ["p.txt is empty"]),
        ("a\t" + "b" * 30_000, 2, "p.tsv", ["line 1", "at most 20,000 characters", "..."]),
        ("a\t" + "b" * 300_000, 2, "p.tsv", ["line 1", "at most 20,000 characters", "..."]),
        ("{nonsense\n", 2, "p.jsonl", ["line 1", "one JSON object per line"]),
        ("[" * 9_000, 2, "p.jsonl", ["line 1", "JSON"]),
        ("3\n", 2, "p.jsonl", ["line 1", "JSON object"]),
        ('{"source": "a"}\n', 2, "p.jsonl", ["line 1", '"target"']),
        ('{"source": "a", "target": {"b": 3}}\n', 2, "p.jsonl", ["line 1", "the target to be text", "not an object"]),
        ('{"source": "a", "target": "\\ud800"}\n', 2, "p.jsonl", ["line 1", "surrogate"]),
        ("", 2, "p.tsv", ["p.tsv is empty"]),
        (b"no gzip at all", 2, "p.tsv.gz", ["gzip"]),
        (gzip.compress(b"a\tb\n" * 999, mtime=0)[:-12], 2, "p.tsv.gz", ["gzip"]),
    ],
)
def test_a_bad_line_or_file_is_named(tmp_path, content, columns, name, words):
    message = complaint([written(tmp_path, content, name)], columns)
    assert all(word in message for word in words), message


def test_missing_files_folders_and_wrong_numbers_of_paths_are_named(tmp_path):
    assert "no such file" in complaint([tmp_path / "nowhere.tsv"])
    assert "is a folder" in complaint([tmp_path])
    assert "3 paths" in complaint(["a", "b", "c"])
    assert "2 paths" in complaint(["a", "b"], 1)
    assert "plain text" in complaint(["a.jsonl", "b.txt"])


def test_aligned_files_of_different_length_are_refused_with_both_counts(tmp_path):
    short, long = written(tmp_path, "a\nb\n", "short"), written(tmp_path, "1\n2\n3\n4\n5\n", "long")
    for paths in ([short, long], [long, short]):
        message = complaint(paths)
        assert "short has 2 lines" in message
        assert "long has 5 lines" in message


def test_skipped_lines_are_counted_with_their_reasons(tmp_path):
    path = written(tmp_path, b"a\tb\nalone\n\xff\tb\nalone too\nc\t\n" + b"x" * 500_000 + b"\nd\te\n")
    tally = Tally()
    assert pairs([path], skip_bad=True, tally=tally) == [("a", "b"), ("d", "e")]
    assert (tally.read, tally.skipped) == (7, 5)
    assert tally.reasons == {"1 column": 2, "invalid UTF-8": 1, "empty target": 1, "too long": 1}
    assert tally.first_lines == {"1 column": 2, "invalid UTF-8": 3, "empty target": 5, "too long": 6}


def test_bad_files_stop_the_reading_even_when_bad_lines_are_skipped(tmp_path):
    assert "no usable line" in complaint([written(tmp_path, "a\nb\n")], skip_bad=True)
    assert "no such file" in complaint([tmp_path / "nowhere.tsv"], skip_bad=True)
    uneven = [written(tmp_path, "a\n", "left"), written(tmp_path, "a\nb\n", "right")]
    assert "right has 2 lines" in complaint(uneven, skip_bad=True)


@pytest.mark.parametrize(
    ("given", "columns", "word"),
    [
        (["alone"], 2, "tuple"),
        ([("a", "b", "c")], 2, "tuple"),
        ([("a", "")], 2, "target is empty"),
        ([("a", "\ud800")], 2, "surrogate"),
        ([(None, "b")], 2, "with a source"),
        ([("a", "b")], 1, "without a source"),
        ([], 2, "is empty"),
    ],
)
def test_python_lists_meet_the_same_checks(given, columns, word):
    with pytest.raises(SeqloomError, match=word):
        list(from_pairs(given, columns))


def test_a_file_is_never_held_in_memory(tmp_path):
    path = written(tmp_path, b"x" * 20_000_000 + b"\n" + b"some source\tsome target\n" * 40_000)
    tracemalloc.start()
    count = sum(1 for _ in read([path], skip_bad=True))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 600_000
