"""The rows of files in every format: TSV, CSV, JSONL, JSON arrays, Parquet, plain text, two line-aligned files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from seqloom.data.columns import Columns, Row, attempt, decode_line, from_aligned, from_text, from_values
from seqloom.data.dialogues import file_dialogues
from seqloom.data.json_array import array_items, is_array
from seqloom.data.layout import Layout
from seqloom.data.lines import aligned_lines, lines, title_of
from seqloom.data.parquet import parquet_rows
from seqloom.data.records import Records
from seqloom.data.tables import table_rows

FORMATS = ("csv", "json", "jsonl", "parquet")  # endings of names; anything else is TSV or plain text
BLANK: Columns = (None, "")


def format_of(name: str) -> str:
    """What the name of a file says it holds: "csv", "json", "jsonl", "parquet", or else "tsv"."""
    ending = name.removesuffix(".gz").lower().rpartition(".")[2] if "." in name else ""
    return {"ndjson": "jsonl", "pq": "parquet"}.get(ending, ending if ending in FORMATS else "tsv")


def file_rows(
    names: list[str], columns: int, layout: Layout, max_characters: int, running: bool
) -> tuple[Iterable[Row], str]:
    """The rows of files, and what one is called."""
    name, title = names[0], title_of(names)

    def decode(raw: bytes) -> str:
        return decode_line(raw, max_characters)

    if len(names) == 2:
        return number_rows(aligned_lines(names, max_characters), lambda pair: from_aligned(*map(decode, pair))), "line"
    kind = format_of(name)
    if layout.dialogues:
        return file_dialogues(name, kind, max_characters), "line"
    if kind == "parquet":
        return number_rows(parquet_rows(name, columns, layout), lambda row: from_values(row, max_characters)), "row"
    records = Records(layout, columns, max_characters, title)
    if kind == "json" and is_array(name):
        return number_rows(array_items(name), records.columns), "item"
    if kind in ("json", "jsonl"):
        return number_rows(lines(name, max_characters), lambda raw: records.parse(decode(raw))), "line"
    if columns == 2 or kind == "csv" or layout.columns:
        return table_rows(name, columns, layout, max_characters, is_csv=kind == "csv"), "line"
    if running:
        return number_rows(lines(name, max_characters), lambda raw: (None, decode(raw))), "line"
    texts = number_rows(lines(name, max_characters), lambda raw: from_text(decode(raw)) if raw.strip() else BLANK)
    return (row for row in texts if row[1] is not BLANK), "line"  # plain text has paragraphs


def number_rows(records: Iterable[Any], parse: Callable[[Any], Columns]) -> Iterator[Row]:
    """Records with their numbers, parsed."""
    return ((index, attempt(parse, record)) for index, record in enumerate(records, start=1))
