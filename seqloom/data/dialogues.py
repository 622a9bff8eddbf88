"""Dialogues: turns that end with `__eou__`, or lists of turns; and how each turn after the first becomes an example.

With `data.dialogues = true` a line is a whole dialogue, whose turns are answered one by one from all turns before them,
or one context and its reply, with a tab between. In JSON a list of turns is a dialogue, so is {"dialogue": [...]}, and
{"source": [...], "target": "..."} is a context with its reply; in Python so is a tuple.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from seqloom.data.as_text import SIDES, LineError, check_text
from seqloom.data.columns import Columns, Row, decode_line
from seqloom.data.json_array import array_items, is_array
from seqloom.data.lines import lines
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.types import Example

END = "__eou__"  # of a turn, in a text
WHOLE = "dialogue"  # the key of a whole dialogue in JSON


def turns_of(value: Any) -> list[str]:
    """The turns of a context, at least one, none of them empty. In a list, a turn is taken literally."""
    turns = split_turns(value)
    if empty := empty_turn(turns):
        raise UnreadableError(f"turn {empty} of {len(turns)} is empty; expected some text in each turn")
    return turns


def split_turns(value: Any) -> list[str]:
    """The turns of a text or a list, empty ones too; what follows the last `__eou__` of a text is a turn if it is text.

    None of a text that is empty.
    """
    if isinstance(value, str):
        turns = [turn.strip() for turn in value.split(END)]
        return turns if turns[-1] else turns[:-1]
    if not isinstance(value, (list, tuple)) or not all(isinstance(turn, str) for turn in value):
        raise UnreadableError(f"{shown(value)} is not a dialogue; expected a text or a list of turns")
    return [turn.strip() for turn in value]


def empty_turn(turns: list[str]) -> int:
    """The number of the first empty turn, counted from 1; 0: there is none."""
    return 1 if not turns else next((number for number, turn in enumerate(turns, start=1) if not turn), 0)


def join_turns(turns: Iterable[str]) -> str:
    """Turns as a line of a file has them."""
    return " ".join(f"{turn} {END}" for turn in turns)


def first_turn(example: Example) -> Any:
    """What two examples of one dialogue have in common, so that a dialogue is held out whole."""
    return turns_of(example.source)[0]


def file_dialogues(name: str, kind: str, max_characters: int) -> Iterator[Row]:
    """The examples of a file; all those of a line have its number."""
    if kind in ("csv", "parquet"):
        raise SeqloomError(
            f"{name}: data.dialogues = true reads lines with {END} after each turn, or JSON lists of turns, no {kind}: "
            "set data.dialogues = false for a table of contexts and replies"
        )
    if kind == "json" and is_array(name):
        return dialogue_rows(array_items(name), max_characters)
    records: Iterable[Any] = lines(name, max_characters)
    return dialogue_rows(records, max_characters, is_json=kind in ("json", "jsonl"))


def dialogue_rows(records: Iterable[Any], max_characters: int, is_json: bool = False) -> Iterator[Row]:
    """The examples of dialogues, with their numbers, or what is wrong with one."""
    for number, record in enumerate(records, start=1):
        try:
            if isinstance(record, bytes):
                record = decode_line(record, max_characters)
                record = parse_json(record) if is_json else record
            yield from ((number, columns) for columns in replies(record, max_characters))
        except LineError as bad:
            yield number, bad


def parse_json(line: str) -> Any:
    """The value of a line of JSON; a blank one is none."""
    if not line.strip():
        return ""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("bad JSON", "expected a JSON list of turns per line", line) from None


def replies(record: Any, max_characters: int) -> Iterator[Columns]:
    """The examples of a record: each turn after the first with those before it, or one context with its reply."""
    if isinstance(record, Example):
        record = (record.source, record.target)
    if isinstance(record, str) and "\t" in record:
        record = tuple(record.split("\t"))
    if isinstance(record, Mapping) and {*SIDES} <= record.keys():
        record = (record["source"], record["target"])
    if isinstance(record, tuple):
        yield from one_reply(record, max_characters)
        return
    turns = checked_turns(record[WHOLE] if isinstance(record, Mapping) and WHOLE in record else record, max_characters)
    if len(turns) == 1:
        raise LineError("one turn", f"expected two turns or more, with {END} after each: one has no reply", turns[0])
    for place in range(1, len(turns)):
        yield tuple(turns[:place]), turns[place]


def one_reply(pair: tuple[Any, ...], max_characters: int) -> Iterator[Columns]:
    """A context with its reply."""
    if len(pair) != 2:
        raise LineError(f"{len(pair)} columns", "expected a context, a tab and a reply", "\t".join(map(str, pair)))
    if any(isinstance(side, str) and not side.strip() for side in pair):
        raise LineError(
            "empty side", "expected a context and a reply, neither of them empty", "\t".join(map(str, pair))
        )
    context, reply = (checked_turns(side, max_characters) for side in pair)
    if len(reply) != 1:
        raise LineError("several turns", f"expected a reply of one turn, not {len(reply)}", pair[1])
    yield tuple(context), reply[0]


def checked_turns(value: Any, max_characters: int) -> list[str]:
    """The turns of a value; otherwise a bad line."""
    try:
        turns = split_turns(value)
    except UnreadableError:
        raise LineError("not a dialogue", f"expected turns with {END} after each, or a list of turns", value) from None
    if not turns:
        raise LineError(
            "blank line" if isinstance(value, str) else "no turns", f"expected turns with {END} after each", value
        )
    if empty := empty_turn(turns):
        raise LineError("empty turn", f"turn {empty} of {len(turns)} is empty: expected some text in each turn", value)
    check_text(join_turns(turns), max_characters)
    return turns
