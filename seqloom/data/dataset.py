"""From what a user gives to what a trainer reads: hold out, fit the codecs, encode, and say what was found.

Everything is a pass over a stream. What is kept of an example is two 8-byte hashes, from which numpy finds
duplicates, leaks and the sources to hold out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.cache import Remembered, at_rest
from seqloom.data.corpus import Corpus
from seqloom.data.readers import Tally, from_pairs, read
from seqloom.data.special_tokens import EOS
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.types import Example

Data = str | Path | Sequence[Any]  # a path, one or two paths, or a list of (source, target) tuples or Examples


@dataclass(frozen=True)
class Report:
    """What was found in the data."""

    tally: Tally  # of the training data: lines read and skipped, with reasons
    valid_tally: Tally | None  # of the validation data, where it was given
    train: int  # examples
    valid: int
    duplicates: int  # training pairs that stood there before
    ambiguous: int  # training sources with several targets
    leaks: int  # validation sources that are in the training data too
    held_out: bool  # the validation data was taken from the training data
    length_ratio: float  # the largest of target tokens / source tokens in training; 0 for language models
    longest_target: int  # tokens
    running: bool = False  # the examples are the lines of one text

    @property
    def read(self) -> int:
        return self.tally.read

    @property
    def skipped(self) -> int:
        return self.tally.skipped

    def lines(self) -> list[str]:
        """Short plain sentences."""
        origin = "held out of them" if self.held_out else "given"
        lines = [
            f"Read {self.read:,} {'lines' if self.running else 'examples'}.",
            f"{self.train:,} to train on; {self.valid:,} to validate with, {origin}.",
        ]
        for title, tally in (("training", self.tally), ("validation", self.valid_tally)):
            if tally and tally.skipped:
                lines.append(tally.sentence(title))
        if self.duplicates:
            lines.append(f"Duplicate pairs: {self.duplicates:,}.")
        if self.ambiguous:
            lines.append(f"Sources with several targets: {self.ambiguous:,}.")
        if self.leaks:
            lines.append(f"Validation sources that are in the training data too: {self.leaks:,}. Scores will flatter.")
        if not self.running:
            lines.append(f"The longest target has {self.longest_target:,} tokens.")
        if self.length_ratio:
            lines.append(f"A target has up to {self.length_ratio:.2g} tokens for each of its source.")
        return lines


@dataclass(frozen=True)
class Dataset:
    """Encoded examples to train on and to validate with, the latter as they were read too."""

    train: Corpus
    valid: Corpus
    valid_examples: list[Example]
    report: Report


def prepare(
    train: Data,
    valid: Data | None = None,
    *,
    source: Codec | None,
    target: Codec,
    joint: bool = False,
    seed: int,
    cache: Path,
    skip_bad: bool = False,
    max_characters: int = 20_000,
    fit: bool = True,
    max_valid: int = 2_000,
    running: bool = False,
    check: Callable[[Example], None] | None = None,
) -> Dataset:
    """Read, split, fit and encode. A source of None makes a language model's data.

    Without validation data about a tenth of the examples, at most `max_valid`, is held out: whole sources, chosen
    by a hash of seed and source, so that none stands on both sides. Of a `running` text it is the last tenth, and
    EOS stands after each line. What `check` finds unreadable is a bad line. Encoded examples are kept under `cache`.
    """
    if joint and source is not target:
        raise SeqloomError("joint is set but source and target are two codecs; give the same codec for both sides")
    cache = Path(cache)
    options: dict[str, Any] = {"skip_bad": skip_bad, "max_characters": max_characters, "running": running}
    options["located"] = source is not None and source.names_files
    columns = 1 if source is None else 2
    with repeatable(train, cache) as train_data, repeatable(valid, cache) as valid_data:
        split = {"seed": seed, "max_valid": max_valid, "checked": getattr(check, "__qualname__", "")}
        known = _remembered(cache, train, valid, source, target, fit, options, **split)
        if known is not None and (recalled := _recalled(known, cache, source, target, fit)):
            return recalled
        tally, valid_tally = Tally(), None if valid_data is None else Tally()
        found = _scan(train_data, source, target, seed, tally, options, check)
        if valid_data is None:
            held = _last_tenth(found.sizes) if running else _held_out(found.sources, max_valid)  # (N,)
            given, leaks = None, 0
            valid_examples = list(_chosen(found.usable(examples(train_data, columns, **options)), held))
        else:
            held = np.zeros(len(found.sources), dtype=bool)
            given = _scan(valid_data, source, target, seed, valid_tally or Tally(), options, check)
            valid_examples = list(given.usable(examples(valid_data, columns, **options)))
            leaks = len(np.intersect1d(found.sources, given.sources))

        def training() -> Iterator[Example]:
            return _chosen(found.usable(examples(train_data, columns, **options)), ~held)

        if fit:
            with _told_of(train_data):
                _fit(training, source, target)
        end = None
        key = _key(found.content, None if given is None else given.content, columns, seed, max_valid, source, target)
        if running:
            key, end = f"{key}-running", EOS
        with _told_of(train_data):
            train_corpus = _cached(cache / key / "train", training(), source, target, end)
        with _told_of(train_data if valid_data is None else valid_data):
            valid_corpus = _cached(cache / key / "valid", valid_examples, source, target, end)
    lengths = train_corpus.lengths
    # One column at a time: a ratio needs no copy of the map.
    ratio = 0.0 if source is None else float((lengths[:, 1] / np.maximum(lengths[:, 0], 1)).max())
    report = Report(
        tally=tally,
        valid_tally=valid_tally,
        train=len(train_corpus),
        valid=len(valid_corpus),
        # Lines of a running text may well come again.
        duplicates=0 if running else found.duplicates,
        ambiguous=0 if running else found.ambiguous,
        leaks=0 if running else leaks,
        held_out=valid_data is None,
        length_ratio=ratio,
        longest_target=int(lengths[:, 1].max()),
        running=running,
    )
    if known is not None:
        known.keep(key, valid_examples, report, _learners(source, target) if fit else {})
    return Dataset(train_corpus, valid_corpus, valid_examples, report)


# Remembering


def _remembered(
    cache: Path,
    train: Data,
    valid: Data | None,
    source: Codec | None,
    target: Codec,
    fit: bool,
    options: dict[str, Any],
    **settings: Any,
) -> Remembered | None:
    """Where it is kept what these data were found to be; None for what is read anew each time."""
    paths = [paths_of(train), paths_of(valid)]
    if not paths[0] or (valid is not None and not paths[1]) or any(map(is_pipe, paths[0] + paths[1])):
        return None
    codecs = list(_learners(source, target).values())
    learned = None if fit else [codec_key(codec) for codec in codecs]
    told = {"files": list(map(len, paths)), "sides": [source is None, source is target], "learned": learned}
    if options["located"]:
        named = _named(example.source for each in paths if each for example in examples(each, 2, **options))
        if named is None:
            return None
        settings["named"] = named
    return Remembered.of(cache, paths[0] + paths[1], codecs, **told, **settings, **options)


def _recalled(known: Remembered, cache: Path, source: Codec | None, target: Codec, fit: bool) -> Dataset | None:
    """The dataset as it was, its codecs as they were fitted then; None where something of it is gone."""
    if (found := known.recall()) is None:
        return None
    key, valid_examples, report = found
    try:
        train, valid = (Corpus.open(cache / key / part) for part in ("train", "valid"))
        if fit:
            for name, codec in _learners(source, target).items():
                codec.load(known.folder, name)
        return Dataset(train, valid, valid_examples, Report(**report))
    except (SeqloomError, TypeError):
        return None


def _named(paths: Iterable[str]) -> str | None:
    """A hash of what the files that examples name are known by; None while one of them may be written."""
    found = hashlib.sha256()
    for path in paths:
        about = at_rest(path)
        if about is None:
            return None
        found.update(repr(about).encode())
    return found.hexdigest()


def _learners(source: Codec | None, target: Codec) -> dict[str, Codec]:
    return {"target": target} if source is None or source is target else {"source": source, "target": target}


# Reading


@contextmanager
def repeatable(data: Data | None, cache: Path) -> Iterator[Data | None]:
    """The same data, fit for several passes: a pipe is copied to a file first."""
    paths = paths_of(data)
    if not any(map(is_pipe, paths)):
        yield paths or data
        return
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spool-", dir=cache) as folder:
        copies = {path: str(Path(folder) / f"{index}-{Path(path).name}") for index, path in enumerate(paths)}
        for path, copy in copies.items():
            if not is_pipe(path):
                copies[path] = path
                continue
            with open(copy, "wb") as file:
                if path == "-":
                    shutil.copyfileobj(sys.stdin.buffer, file)
                else:
                    with open(path, "rb") as pipe:
                        shutil.copyfileobj(pipe, file)
        try:
            yield [copies[path] for path in paths]
        except SeqloomError as error:
            message = str(error)
            for path, copy in copies.items():
                message = message.replace(copy, "standard input" if path == "-" else path)
            raise SeqloomError(message) from None


def paths_of(data: Data | None) -> list[str]:
    """The paths, or none where the data is a list of examples, as three strings or more are."""
    if isinstance(data, (str, Path)):
        return [str(data)]
    if data and len(data) <= 2 and all(isinstance(item, (str, Path)) for item in data):
        return [str(item) for item in data]
    return []


def is_pipe(path: str) -> bool:
    """Whether it can be read only once."""
    return path == "-" or Path(path).is_fifo()


def examples(data: Any, columns: int, located: bool = False, **options: Any) -> Iterator[Example]:
    """Of files or of a list; the options are those of `readers.read`."""
    paths = paths_of(data)
    return read(paths, columns, located=located, **options) if paths else from_pairs(data, columns, **options)


def accepted(
    rows: Iterable[Example],
    source: Codec | None,
    target: Codec,
    title: str,
    skip_bad: bool,
    tally: Tally,
    refused: set[int],
    check: Callable[[Example], None] | None = None,
) -> Iterator[tuple[Example, Any, Any]]:
    """Examples and the contents of their sides. One that cannot be read, or is refused, is a bad line, and noted."""
    good = False
    for example in rows:
        side = "source"
        try:
            first = None if source is None else source.content(example.source)
            side = "target"
            second = target.content(example.target)
            side = "pair"
            if check is not None:
                check(example)
        except UnreadableError as bad:
            if not skip_bad:
                advice = "mend the line, or skip bad lines with --skip-bad"
                raise SeqloomError(f"{title}, line {example.line}: {bad}; {advice}") from None
            tally.skip(f"unreadable {side}", example.line)
            refused.add(example.line)
            continue
        good = True
        yield example, first, second
    if not good:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in tally.reasons.most_common())
        raise SeqloomError(f"{title} has no usable line: all {tally.read} were skipped ({reasons})")


def _chosen(examples: Iterator[Example], mask: np.ndarray) -> Iterator[Example]:
    try:
        for keep, example in zip(mask, examples, strict=True):
            if keep:
                yield example
    except ValueError:
        raise SeqloomError("the training data changed while it was read; run again when it is at rest") from None


@contextmanager
def _told_of(data: Any) -> Iterator[None]:
    """A line that cannot be read after all is told with its file."""
    try:
        yield
    except UnreadableError as bad:
        raise SeqloomError(f"{_title(data)}, {bad}") from None


def _fit(training: Any, source: Codec | None, target: Codec) -> None:
    if source is target:
        _learn(target, training(), "source", "target")
        return
    if source is not None:
        _learn(source, training(), "source")
    _learn(target, training(), "target")


def _learn(codec: Codec, examples: Iterable[Example], *sides: str) -> None:
    line = 0

    def values() -> Iterator[Any]:
        nonlocal line
        for example in examples:
            line = example.line
            yield from (getattr(example, side) for side in sides)

    try:
        codec.fit(values())
    except UnreadableError as bad:
        raise UnreadableError(f"line {line}: {bad}") from None


# Hashes


@dataclass(frozen=True)
class _Found:
    """The hashes of a stream of examples. What identifies a language model's example is its target."""

    sources: np.ndarray  # (N,) uint64
    pairs: np.ndarray  # (N,) uint64
    sizes: np.ndarray  # (N,): bytes of the targets, and one more for the line break
    content: str
    refused: frozenset[int]  # lines that a codec cannot read

    def usable(self, rows: Iterable[Example]) -> Iterator[Example]:
        """The same examples, read again."""
        return (example for example in rows if example.line not in self.refused)

    @property
    def duplicates(self) -> int:
        return len(self.pairs) - len(np.unique(self.pairs))

    @property
    def ambiguous(self) -> int:
        _, first = np.unique(self.pairs, return_index=True)
        _, targets = np.unique(self.sources[first], return_counts=True)
        return int(np.count_nonzero(targets > 1))


def _scan(
    data: Any,
    source: Codec | None,
    target: Codec,
    seed: int,
    tally: Tally,
    options: dict[str, Any],
    check: Callable[[Example], None] | None,
) -> _Found:
    sources, pairs, sizes = array("Q"), array("Q"), array("Q")
    content, refused = hashlib.sha256(), set[int]()
    title = _title(data)
    rows = examples(data, 1 if source is None else 2, tally=tally, **options)
    for _, asked, answer in accepted(rows, source, target, title, options["skip_bad"], tally, refused, check):
        second = _bytes(answer)
        first = second if source is None else _bytes(asked)
        sizes.append(len(second) + 1)
        sources.append(_hash(first, seed))
        pair = b"%d:%b%b" % (len(first), first, second)  # the length keeps (ab, c) and (a, bc) apart
        pairs.append(_hash(pair, seed))
        content.update(b"%d:%b" % (len(pair), pair))
    hashes = [np.array(each, dtype=np.uint64) for each in (sources, pairs)]
    return _Found(hashes[0], hashes[1], np.array(sizes, dtype=np.int64), content.hexdigest(), frozenset(refused))


def _title(data: Any) -> str:
    return " and ".join(paths_of(data)) or "the list of examples"


def _hash(value: bytes, seed: int) -> int:
    digest = hashlib.blake2b(value, digest_size=8, key=seed.to_bytes(16, "little", signed=True))
    return int.from_bytes(digest.digest(), "little")


def _bytes(value: Any) -> bytes:
    """What a value is told from others by. Texts, arrays, and lists and tuples of anything."""
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "numpy"):  # a tensor
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if isinstance(value, (list, tuple)):
        parts = [_bytes(part) for part in value]
        return b"".join(b"%d:%b" % (len(part), part) for part in parts)
    return value if isinstance(value, bytes) else repr(value).encode()


def _held_out(sources: np.ndarray, max_valid: int) -> np.ndarray:
    """True for the examples of the sources with the lowest hashes, which no one can guess from the text."""
    distinct, counts = np.unique(sources, return_counts=True)
    if len(distinct) < 2:
        message = "the training data has only one distinct source, so that none can be held out"
        raise SeqloomError(f"{message}; give validation data, or more training data")
    wanted = min(max(len(sources) // 10, 1), max_valid)
    fitting = counts <= wanted  # a source with too many examples is never held out, unless all have
    taken = fitting & (np.cumsum(np.where(fitting, counts, 0)) <= wanted)
    if not taken.any():
        taken[np.argmin(counts)] = True
    return np.isin(sources, distinct[taken])


def _last_tenth(sizes: np.ndarray) -> np.ndarray:
    """True for the lines at the end of a running text that hold about a tenth of it, whatever their number."""
    if len(sizes) < 2:
        raise SeqloomError("the text has only one line, so that none can be held out; give validation data, or lines")
    ends = np.cumsum(sizes)
    cut = int(np.clip(np.searchsorted(ends, 0.9 * ends[-1], side="right"), 1, len(sizes) - 1))
    return np.arange(len(sizes)) >= cut


# Encoded corpora


def _key(
    train: str, valid: str | None, columns: int, seed: int, max_valid: int, source: Codec | None, target: Codec
) -> str:
    codecs = [None if source is None else codec_key(source), codec_key(target)]
    split = [seed, max_valid] if valid is None else None
    return hashlib.sha256(json.dumps([train, valid, columns, split, codecs]).encode()).hexdigest()[:32]


def codec_key(codec: Codec) -> str:
    """A hash of a codec's plain settings and of what it learned."""
    kind = f"{type(codec).__module__}.{type(codec).__qualname__}"
    if hasattr(codec, "fingerprint"):
        return f"{kind} {codec.fingerprint()}"
    plain = {
        name: value for name, value in sorted(vars(codec).items()) if isinstance(value, (str, int, float, type(None)))
    }
    learned = hashlib.sha256(f"{kind} {json.dumps(plain)}".encode())
    with tempfile.TemporaryDirectory() as folder:
        codec.save(Path(folder), "codec")
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                learned.update(path.name.encode() + path.read_bytes())
    return learned.hexdigest()


def _cached(folder: Path, examples: Iterable[Example], source: Codec | None, target: Codec, end: int | None) -> Corpus:
    if folder.exists():
        try:
            return Corpus.open(folder)
        except SeqloomError:
            pass  # damaged, or of an older format: written anew
    return Corpus.write(folder, examples, source, target, end)
