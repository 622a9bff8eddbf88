"""Files as people have them: each is read exactly, or refused in one line that says what to do.

One line per case: name of the file, content, options, and the pairs that are read or words of the message.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from seqloom.data.layout import Layout
from seqloom.data.readers import Tally, read
from seqloom.errors import SeqloomError
from seqloom.types import Example

Expected = list[tuple[Any, Any]] | str
NAMED = Layout(columns=("text", "label"))
HEADER, NO_HEADER = Layout(header=True), Layout(header=False)
ROWS = "good film,pos\nbad film,neg\n"
BOTH = [("good film", "pos"), ("bad film", "neg")]
LONG = "".join(f"some {number} words of text,{number % 2}\n" for number in range(9))
REVIEWS = "id,text,label\n1,good film,pos\n2,bad film,neg\n"
OBJECTS = [{"text": "good film", "label": "pos", "id": 1}, {"text": "bad film", "label": "neg", "id": 2}]
JSONL = "".join(json.dumps(each) + "\n" for each in OBJECTS)
ASK = "name the columns with --columns text,label, or say that there is none with --no-header"

CASES: list[tuple[str, str | bytes, Layout, Expected]] = [
    # CSV: quotes, separators, line ends
    ("a.csv", ROWS, Layout(), BOTH),
    ("a.csv", '"good, long film",pos\n"say ""no""",neg\n', Layout(), [("good, long film", "pos"), ('say "no"', "neg")]),
    ("a.csv", '"two\nlines",pos\nx,neg\n', Layout(), [("two\nlines", "pos"), ("x", "neg")]),
    ("a.csv", '"two\r\nlines",pos\r\nx,neg\r\n', Layout(), [("two\nlines", "pos"), ("x", "neg")]),
    ("a.csv", 'a 5" disk,pos\nx,neg\n', Layout(), [('a 5" disk', "pos"), ("x", "neg")]),
    ("a.csv", "good film;pos\nbad, sad film;neg\n", Layout(), [("good film", "pos"), ("bad, sad film", "neg")]),
    ("a.csv", "3,5;half\n4,1;more\n", Layout(), [("3,5", "half"), ("4,1", "more")]),
    ("a.csv", "good film\tpos\nbad, sad film\tneg\n", Layout(), [("good film", "pos"), ("bad, sad film", "neg")]),
    ("a.csv", b"\xef\xbb\xbf" + ROWS.encode(), Layout(), BOTH),
    ("a.csv", b"\xef\xbb\xbf" + REVIEWS.encode(), NAMED, BOTH),
    ("a.csv", ROWS.replace("\n", "\r\n"), Layout(), BOTH),
    ("a.csv", ROWS.rstrip(), Layout(), BOTH),
    ("A.CSV", ROWS, Layout(), BOTH),
    ("a.csv.gz", gzip.compress(ROWS.encode(), mtime=0), Layout(), BOTH),
    ("a.csv", "nul\x00byte,pos\nx,neg\n", Layout(), [("nul\x00byte", "pos"), ("x", "neg")]),
    ("a.csv", "good film,1\nbad film,0\n", Layout(), [("good film", "1"), ("bad film", "0")]),
    ("a.csv", '"a ""b",c\n', Layout(quotes=False), [('"a ""b"', "c")]),
    # Columns by name and by number
    ("a.csv", REVIEWS, NAMED, BOTH),
    ("a.csv", REVIEWS, Layout(columns=("label", "id")), [("pos", "1"), ("neg", "2")]),
    ("a.csv", REVIEWS, Layout(columns=(2, 3), header=True), BOTH),
    ("a.csv", REVIEWS.partition("\n")[2], Layout(columns=(2, 3)), BOTH),
    ("a.tsv", REVIEWS.replace(",", "\t"), NAMED, BOTH),
    ("a.tsv", REVIEWS.replace(",", "\t").partition("\n")[2], Layout(columns=(2, 3)), BOTH),
    ("a.csv", "text,label\n" + ROWS, HEADER, BOTH),
    ("a.csv", "pros,target,source\ngood film,pos,x\n", HEADER, [("x", "pos")]),
    ("a.csv", "text,label\n" + ROWS, NO_HEADER, [("text", "label"), *BOTH]),
    # Headers that are asked about, and columns that have to be named
    ("a.csv", "text,label\n" + ROWS, Layout(), f"a.csv, line 1 looks like a header (text, label): {ASK}"),
    ("a.tsv", "text\tlabel\nx y\tz\n", Layout(), f"a.tsv, line 1 looks like a header (text, label): {ASK}"),
    ("a.csv", "text,label\n", Layout(), f"line 1 looks like a header (text, label): {ASK}"),
    ("a.csv", f"comment_body,toxic\n{LONG}", Layout(), "line 1 looks like a header (comment_body, toxic)"),
    ("a.csv", REVIEWS, Layout(), "header (id, text, label): name two of them with --columns text,label"),
    ("a.csv", REVIEWS, Layout(columns=(2, 3)), "line 1 looks like a header (id, text, label): say that it is one"),
    ("a.csv", REVIEWS, HEADER, "a.csv has 3 columns (id, text, label): name two of them with --columns text,label"),
    ("a.csv", "x,y y,1\nz,u u,2\n", Layout(), "not 3 columns (x, y y, 1); choose source and target by number"),
    ("a.tsv", "x\ty y\t1\n", Layout(), "a.tsv, line 1: expected 2 columns, not 3 columns"),
    ("a.csv", REVIEWS, Layout(columns=("txt", "label")), 'no column "txt" (did you mean "text"?)'),
    ("a.csv", REVIEWS, Layout(columns=("words", "label")), 'no column "words"; it has 3 columns (id, text, label)'),
    ("a.csv", REVIEWS, Layout(columns=(1, 4), header=True), "a.csv has no column 4; it has 3 columns"),
    ("a.csv", REVIEWS, Layout(columns=(0, 1)), "data.columns = 0, 1: columns are numbered from 1"),
    ("a.csv", REVIEWS, Layout(columns=("text",)), "data.columns = text: 1 given, expected 2 (source, target)"),
    ("a.csv", REVIEWS, Layout(columns=("text", "label"), header=False), "without a header have no names"),
    ("a.csv", "text,label,text\na,b,c\n", NAMED, '2 columns called "text"; choose by number, such as --columns 1,3'),
    ("a.csv", "text,label\n", NAMED, "a.csv has a header and no rows"),
    # Malformed tables
    ("a.csv", "", Layout(), "a.csv is empty"),
    ("a.csv", "\n\n\n", Layout(), "a.csv is empty"),
    ("a.csv", ROWS + "\n\r\n,\n  \n", Layout(), BOTH),
    ("a.csv", "good film,pos\n\nbad film,neg\n", Layout(), "a.csv, line 2: expected cells with ',' between"),
    ("a.csv", ROWS + "alone\n", Layout(), "a.csv, line 3: expected 2 columns with ',' between (source, target), not 1"),
    ("a.csv", ROWS + "a,b,c\n", Layout(), "a.csv, line 3: expected 2 columns with ',' between (source, target), not 3"),
    ("a.csv", REVIEWS + "3,x\n", NAMED, "a.csv, line 4: expected 3 columns with ',' between like line 1, not 2"),
    ("a.csv", '"two\nlines",x\nalone\n', Layout(), "a.csv, line 3: expected 2 columns"),
    ("a.csv", ROWS + '"open,pos\nx,neg\n', Layout(), "a.csv, line 3: a quote is opened and not closed before the end"),
    ("a.csv", ROWS + '"open,pos\n' + "x,neg\n" * 9_000, Layout(), "line 3: a quote is opened and not closed within"),
    ("a.csv", ROWS + '"a"b,pos\n', Layout(), "a.csv, line 3: expected a closing quote to be followed by ','"),
    ("a.csv", ROWS + "x,\n", Layout(), "a.csv, line 3: the target is empty"),
    ("a.csv", ROWS.encode() + b"caf\xe9,pos\n", Layout(), "a.csv, line 3: expected UTF-8, but byte 4 is 0xE9"),
    ("a.csv", ROWS + "x" * 30_000 + ",pos\n", Layout(), "a.csv, line 3: expected at most 20,000 characters"),
    ("a.csv.gz", gzip.compress(ROWS.encode() * 99, mtime=0)[:-9], Layout(), "a.csv.gz is not a complete gzip file"),
    # TSV: plain, unless only quotes make sense of it
    ("a.tsv", '"Yes."\tja\n"No\tnein\n5"\t5"\n', Layout(), [('"Yes."', "ja"), ('"No', "nein"), ('5"', '5"')]),
    ("a.tsv", '"""doc"""\tx\na\tb\n', Layout(), [('"""doc"""', "x"), ("a", "b")]),
    ("a.tsv", '"a\tb"\tx\nc\td\n', Layout(), [("a\tb", "x"), ("c", "d")]),
    ("a.tsv", '"a\nb"\tx\nc\td\n', Layout(), [("a\nb", "x"), ("c", "d")]),
    ("a.tsv", '"a"\t"x ""y"""\n"b"\t"z"\n', Layout(), [("a", 'x "y"'), ("b", "z")]),
    ("a.tsv", '"a"\tb\n', Layout(quotes=True), [("a", "b")]),
    ("a.tsv", '"a\tb\nalone\nc"\td\n', Layout(), "a.tsv, line 2: expected 2 columns"),
    ("a.tsv", "a\tb\n\n\n \n\t\n", Layout(), [("a", "b")]),
    ("a.tsv", "a\tb\n\nc\td\n", Layout(), "a.tsv, line 2: expected a source, a tab and a target"),
    ("a", "a\tAH\nabacus\tAE B AH K AH S\n" * 6, Layout(), [("a", "AH"), ("abacus", "AE B AH K AH S")] * 6),
    # JSONL and JSON arrays
    ("a.jsonl", JSONL, NAMED, BOTH),
    ("a.jsonl", JSONL, Layout(columns=(1, 2)), BOTH),
    ("a.jsonl", JSONL + "\n\n", NAMED, BOTH),
    ("a.jsonl", '["good film", "pos"]\n["bad film", "neg"]\n', Layout(), BOTH),
    ("a.jsonl", '["1", "good film", "pos"]\n', Layout(columns=(2, 3)), [("good film", "pos")]),
    ("a.jsonl", '{"source": "x", "target": 1}\n', Layout(), [("x", "1")]),
    ("a.jsonl", '{"source": 2.5, "target": true}\n', Layout(), [("2.5", "True")]),
    ("a.jsonl", '{"source": ["a", "b"], "target": ["X", "Y"]}\n', Layout(), [("a b", "X Y")]),
    ("a.jsonl", '{"source": [[0.5, 1], [2, 3]], "target": [0, 2]}\n', Layout(), [("0.5,1 2,3", "0 2")]),
    ("a.json", json.dumps(OBJECTS, indent=1), NAMED, BOTH),
    ("a.json", json.dumps(BOTH), Layout(), BOTH),
    ("a.json.gz", gzip.compress(json.dumps(OBJECTS).encode(), mtime=0), NAMED, BOTH),
    ("a.json", b"\xef\xbb\xbf\n" + json.dumps(BOTH).encode() + b"\n\n", Layout(), BOTH),
    ("a.json", JSONL, NAMED, BOTH),
    ("a.json", json.dumps([["x" * 9_000, "y"]] * 40), Layout(), [("x" * 9_000, "y")] * 40),
    ("a.jsonl", JSONL, Layout(), "a.jsonl has 3 columns (text, label, id): name two of them with --keys text,label"),
    ("a.jsonl", json.dumps({"x" * 31: "a", "label": "b"}), Layout(), "name the columns with --keys 1,label"),
    ("a.jsonl", f'{{"{"x" * 31}": "a", "b": "c"}}\n{{}}\n', Layout(columns=(1, 2)), f'without "{"x" * 27}..."'),
    ("a.jsonl", JSONL, Layout(columns=("txt", "lable")), 'a.jsonl has no column "txt" (did you mean "text"?)'),
    ("a.jsonl", JSONL + '{"text": "x"}\n', NAMED, 'line 3: expected an object with "text" and "label"'),
    ("a.jsonl", JSONL + "{\n", NAMED, "a.jsonl, line 3: expected one JSON object per line"),
    ("a.jsonl", '["a", "b"]\n\n["c", "d"]\n', Layout(), "a.jsonl, line 2: expected one JSON object per line"),
    ("a.jsonl", '["a", "b"]\n', NAMED, "a.jsonl holds lists, which have no names; choose by number"),
    ("a.jsonl", '["a", "b", "c"]\n', Layout(), "a.jsonl, line 1: expected a list of source and target"),
    ("a.jsonl", '{"source": "a", "target": null}\n', Layout(), "a.jsonl, line 1: the target is missing"),
    ("a.jsonl", '{"source": [null], "target": "x"}\n', Layout(), "line 1: expected a list of texts, of numbers or"),
    ("a.json", json.dumps(OBJECTS, indent=1)[:-20], NAMED, "a.json is not a JSON array: unterminated string"),
    ("a.json", json.dumps(BOTH)[:-1], Layout(), "a JSON array: expected ',' or ']' in line 1, where the file"),
    ("a.json", json.dumps(BOTH) + "x", Layout(), "not a JSON array: expected the end of the file after the array"),
    ("a.json", '[["a", "b"],\n ["c" "d"]]', Layout(), "a.json is not a JSON array: expecting ',' delimiter in line 2"),
    ("a.json", b'[["caf\xe9", "b"]]', Layout(), "a.json is not a JSON array: expected UTF-8, found byte 0xE9"),
    ("a.json", '[["a", "b"], ["c"]]', Layout(), "a.json, item 2: expected a list of source and target"),
    ("a.json", "[]", Layout(), "a.json is empty"),
    ("a.json", '[["a", ' + "1" * 9_000 + "]]", Layout(), "a.json is not a JSON array: Exceeds the limit"),
    ("a.json", '{"data": [1]}', Layout(), "a.json has 1 column (data)"),
]  # fmt: skip


def meets(examples: Iterable[Example], expected: Expected) -> None:
    """The examples are exactly right, or the message is one line with these words."""
    if not isinstance(expected, str):
        assert [(each.source, each.target) for each in examples] == expected
        return
    with pytest.raises(SeqloomError) as caught:
        list(examples)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert expected in message


@pytest.mark.parametrize(("name", "content", "layout", "expected"), CASES)
def test_a_file_is_read_exactly_or_refused_in_one_line(
    tmp_path: Path, name: str, content: str | bytes, layout: Layout, expected: Expected
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    meets(read([path], layout=layout), expected)


TEXTS: list[tuple[str, str, Layout, Expected]] = [
    ("a.csv", "text\none\ntwo\n", Layout(), "line 1 looks like a header (text): name the text with --columns text"),
    ("a.csv", 'text\n"one, two"\nthree\n', Layout(columns=("text",)), [(None, "one, two"), (None, "three")]),
    ("a.jsonl", '"one"\n{"text": "two"}\n', Layout(), [(None, "one"), (None, "two")]),
    ("a.jsonl", '{"body": "one"}\n', Layout(), "a.jsonl has 1 column (body): name the text with --keys body"),
    ("a.json", '["one", "two"]', Layout(), [(None, "one"), (None, "two")]),
    ("a.tsv", "1\tone\n2\ttwo\n", Layout(columns=(2,)), [(None, "one"), (None, "two")]),
]


@pytest.mark.parametrize(("name", "content", "layout", "expected"), TEXTS)
def test_a_language_model_reads_one_column(
    tmp_path: Path, name: str, content: str, layout: Layout, expected: Expected
) -> None:
    path = tmp_path / name
    path.write_text(content)
    meets(read([path], 1, layout=layout), expected)


def test_bad_rows_of_any_format_are_skipped_and_counted(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_bytes(ROWS.encode() + b'alone\n"a"b,c\n"x\ny\xff",z\n\nu,v\n')
    tally = Tally()
    found = [(each.source, each.target, each.line) for each in read([table], skip_bad=True, tally=tally)]
    assert found == [("good film", "pos", 1), ("bad film", "neg", 2), ("u", "v", 8)]
    assert tally.reasons == {"1 column": 1, "bad quotes": 1, "invalid UTF-8": 1, "blank line": 1}
    assert tally.first_lines == {"1 column": 3, "bad quotes": 4, "invalid UTF-8": 5, "blank line": 7}
    array = tmp_path / "a.json"
    array.write_text('[["a", "b"], 3, ["c", "d"]]')
    tally = Tally()
    assert [each.line for each in read([array], skip_bad=True, tally=tally)] == [1, 3]
    assert tally.sentence("bad") == "Skipped 1 bad item: 1 x bad JSON (first at item 2)."


def test_blank_lines_at_the_end_of_one_of_two_files_are_nothing(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("a\nb\n\n\n")
    right.write_text("c\nd\n\n\n\n\n")
    assert [(each.source, each.target) for each in read([left, right])] == [("a", "c"), ("b", "d")]
    right.write_text("c\nd\n\n\n\ne\n")
    with pytest.raises(SeqloomError, match=r"left has 4 lines but .*right has 6 lines"):
        list(read([left, right]))


def test_a_long_json_array_is_read_in_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "a.json"
    path.write_text(json.dumps([["some source", "some target"]] * 60_000))
    tracemalloc.start()
    count = sum(1 for _ in read([path]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60_000
    assert peak < 1_000_000
