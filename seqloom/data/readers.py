"""From files to examples, one line at a time: TSV, JSONL, two line-aligned texts, standard input, any of them gzipped.

A bad line stops the reading with a message that names it, or is counted and passed over; a bad file always stops.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

from seqloom.errors import SeqloomError
from seqloom.types import Example

MAX_CHARACTERS = 20_000
Columns = tuple[Any, Any]  # source and target; the source of a language model is None


@dataclass
class Tally:
    """What a reading met."""

    read: int = 0  # lines, good and bad
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)  # where each reason was met first

    def skip(self, reason: str, line: int) -> None:
        self.skipped += 1
        self.reasons[reason] += 1
        self.first_lines.setdefault(reason, line)

    def sentence(self, title: str) -> str:
        """What was skipped and why."""
        reasons = ", ".join(
            f"{count:,} x {reason} (first at line {self.first_lines[reason]:,})"
            for reason, count in self.reasons.most_common()
        )
        return f"Skipped {self.skipped:,} {title} line{'s' * (self.skipped != 1)}: {reasons}."


class _LineError(Exception):
    """A line that is no example: a short reason to count, what was wrong and what to do, and what stood there."""

    def __init__(self, reason: str, advice: str, content: object):
        self.reason, self.advice, self.content = reason, advice, content


def read(
    paths: Sequence[str | Path],
    columns: int = 2,
    *,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
    located: bool = False,
) -> Iterator[Example]:
    """The examples of one file of pairs, of two line-aligned files, or (columns=1) of a file of plain text.

    In a running text every line counts, empty ones too, and a tab is a character. Sources that are `located` are paths:
    from the folder of the file that names them, or, where they lead nowhere, from the current one.
    """
    names = [str(path) for path in paths]
    _check_paths(names, columns)
    title = " and ".join(_title(name) for name in names)

    def parse(raws: tuple[bytes, ...]) -> Columns:
        texts = [_text(raw, max_characters) for raw in raws]
        if len(texts) == 2:
            return texts[0], texts[1]
        if _is_json(names[0]):
            return _from_json(texts[0], columns)
        if running:
            return None, texts[0]
        return _from_tabs(texts[0], columns)

    lines: Iterable[tuple[bytes, ...] | None]
    lines = _aligned(names, max_characters) if len(names) == 2 else zip(_lines(names[0], max_characters))
    if columns == 1 and not running and not _is_json(names[0]):
        lines = (raws if raws and raws[0].strip() else None for raws in lines)  # plain text has paragraphs
    found = _examples(lines, parse, title, skip_bad, tally if tally is not None else Tally(), running)
    folder = Path(names[0]).absolute().parent
    yield from (replace(each, source=_placed(folder, each.source)) for each in found) if located else found


def _placed(folder: Path, name: str) -> str:
    beside, here = folder / name, Path(name).absolute()
    return str(here if here.exists() and not beside.exists() else beside)


def from_pairs(
    pairs: Iterable[Any],
    columns: int = 2,
    *,
    max_characters: int = MAX_CHARACTERS,
    skip_bad: bool = False,
    tally: Tally | None = None,
    running: bool = False,
) -> Iterator[Example]:
    """The examples of a Python list: (source, target) tuples, or for columns=1 strings. Line 1 is the first."""

    def parse(pair: Any) -> Columns:
        if isinstance(pair, Example):
            pair = (pair.source, pair.target)
        if columns == 1 and not isinstance(pair, (tuple, list)):
            pair = (None, pair)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise _LineError("not a pair", "expected a (source, target) tuple", pair)
        if columns == 2 and pair[0] is None:
            raise _LineError("no source", "expected a (source, target) tuple with a source", pair)
        if columns == 1 and pair[0] is not None:
            raise _LineError("two columns", "a language model takes texts without a source; give strings", pair)
        for value in pair:
            if isinstance(value, str):
                _check_unicode(value)
                if len(value) > max_characters:
                    raise _too_long(value, max_characters)
        return pair[0], pair[1]

    title = "the list of examples"
    yield from _examples(pairs, parse, title, skip_bad, tally if tally is not None else Tally(), running)


def _examples(
    rows: Iterable[Any], parse: Callable[[Any], Columns], title: str, skip_bad: bool, tally: Tally, running: bool
) -> Iterator[Example]:
    seen = good = 0
    for number, row in enumerate(rows, start=1):
        if row is None:
            continue
        seen += 1
        tally.read += 1
        try:
            source, target = parse(row)
            if not running:
                _check_empty("source", source)
                _check_empty("target", target)
        except _LineError as bad:
            if not skip_bad:
                where = f"{title}, line {number}: {bad.advice}, found {_shortened(bad.content)}"
                raise SeqloomError(f"{where}; mend the line, or skip bad lines with --skip-bad") from None
            tally.skip(bad.reason, number)
            continue
        good += 1
        yield Example(source, target, number)
    if seen == 0:
        raise SeqloomError(f"{title} is empty; expected at least one example")
    if good == 0:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in tally.reasons.most_common())
        raise SeqloomError(f"{title} has no usable line: all {seen} were skipped ({reasons})")


# The columns of a line


def _text(raw: bytes, max_characters: int) -> str:
    if len(raw) > 4 * max_characters:  # no character takes more than four bytes
        raise _too_long(raw[:400].decode(errors="replace"), max_characters)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        near = raw[max(error.start - 20, 0) : error.end + 20]
        advice = f"expected UTF-8, but byte {error.start + 1} is 0x{raw[error.start]:02X}; convert the file to UTF-8"
        raise _LineError("invalid UTF-8", advice, near) from None
    if len(text) > max_characters:
        raise _too_long(text, max_characters)
    return text


def _from_tabs(text: str, columns: int) -> Columns:
    cells = text.split("\t")
    if columns == 1:
        if len(cells) > 1:
            raise _LineError("a tab", "a language model takes one text a line, without tabs", text)
        return None, text
    if not text.strip():
        raise _LineError("blank line", "expected a source, a tab and a target", text)
    if len(cells) != 2:
        count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
        raise _LineError(count, f"expected 2 columns with a tab between (source, target), not {count}", text)
    return cells[0], cells[1]


def _from_json(text: str, columns: int) -> Columns:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise _LineError("bad JSON", "expected one JSON object a line", text) from None
    if not isinstance(record, dict):
        raise _LineError("bad JSON", "expected a JSON object", text)
    if columns == 1 and {"source", "target"} <= record.keys():
        raise _LineError("two columns", "a language model takes texts without a source", text)
    keys = ["source", "target"] if columns == 2 else ["target" if "target" in record else "text"]
    values: list[str | None] = [] if columns == 2 else [None]
    for key in keys:
        if key not in record:
            wanted = '"source" and "target"' if columns == 2 else '"target" or "text"'
            raise _LineError(f'no "{key}" key', f'expected an object with {wanted}, not without "{key}"', text)
        if not isinstance(record[key], str):
            raise _LineError(f'"{key}" is not text', f'expected "{key}" to be a string', record[key])
        _check_unicode(record[key])
        values.append(record[key])
    return values[0], values[1]


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _LineError("invalid Unicode", "expected text without half surrogate pairs", text) from None


def _check_empty(side: str, value: Any) -> None:
    if isinstance(value, str) and not value.strip():
        raise _LineError(f"empty {side}", f"the {side} is empty", value)


def _too_long(text: str, max_characters: int) -> _LineError:
    return _LineError("too long", f"expected at most {max_characters:,} characters (data.max_characters)", text)


def _shortened(content: object, width: int = 60) -> str:
    text = repr(content[: 2 * width] if isinstance(content, (str, bytes)) else content)
    text = " ".join(text.split())  # the repr of an array has several lines
    return text if len(text) <= width else f"{text[: width - 3]}..."


# The lines of a file


def _lines(name: str, max_characters: int) -> Iterator[bytes]:
    """Lines without their ends. Only a newline ends a line, whatever Unicode says of U+2028 and its like.

    A line far too long comes cut, so that a file that is one endless line does not fill the memory.
    """
    limit = 4 * max_characters + 8
    empty = True
    try:
        with _opened(name) as file:
            while line := file.readline(limit):
                rest = line
                while len(rest) == limit and not rest.endswith(b"\n"):
                    rest = file.readline(limit)
                if empty:
                    line, empty = line.removeprefix(b"\xef\xbb\xbf"), False
                yield line.removesuffix(b"\n").removesuffix(b"\r")
    except FileNotFoundError:
        raise SeqloomError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SeqloomError(f"{name} is a folder; expected a file of examples") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SeqloomError(f"{name} is no whole gzip file ({error}); pack it again, or drop the .gz") from None
    except OSError as error:
        raise SeqloomError(f"{_title(name)} cannot be read: {error.strerror or error}; check its permissions") from None
    if empty:
        raise SeqloomError(f"{_title(name)} is empty; expected at least one example")


def _aligned(names: list[str], max_characters: int) -> Iterator[tuple[bytes, bytes]]:
    left, right = (_lines(name, max_characters) for name in names)
    both = 0
    for line in left:
        other = next(right, None)
        if other is None:
            raise _uneven(names, [both + 1 + sum(1 for _ in left), both])
        both += 1
        yield line, other
    more = sum(1 for _ in right)
    if more:
        raise _uneven(names, [both, both + more])


def _uneven(names: list[str], counts: list[int]) -> SeqloomError:
    lines = " but ".join(f"{name} has {count:,} lines" for name, count in zip(names, counts))
    shorter = names[counts.index(min(counts))]
    return SeqloomError(f"{lines}; aligned files need as many lines each, see the end of {shorter}")


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    if name.endswith(".gz"):
        return cast(IO[bytes], gzip.open(name, "rb"))
    return open(name, "rb")


def _is_json(name: str) -> bool:
    return name.removesuffix(".gz").endswith(".jsonl")


def _title(name: str) -> str:
    return "standard input" if name == "-" else name


def _check_paths(names: list[str], columns: int) -> None:
    if columns not in (1, 2):
        raise SeqloomError(f"columns is {columns}; expected 2 (source, target), or 1 for a language model")
    if not 1 <= len(names) <= columns:
        wanted = "one file of pairs or two aligned files" if columns == 2 else "one file of text"
        raise SeqloomError(f"{len(names)} paths were given ({', '.join(names[:3])}); expected {wanted}")
    if len(names) == 2 and ("-" in names or any(map(_is_json, names))):
        raise SeqloomError(f"{' and '.join(names)}: two aligned files must be plain text files; give pairs as one file")
