"""Encoded examples in flat files, mapped into memory, so that a corpus of any size takes none of it.

A folder holds, for each side, all values end to end (`source.bin`, `target.bin`), the (source, target) lengths of
each row, the offsets where they begin, and `meta.json` with dtypes and shapes. Integers are int64 when they are read,
except for uint8, which are pixels. Sources that are files, such as the picture of several captions, are stored once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec
from seqloom.errors import SeqloomError, UnreadableError, one_line
from seqloom.types import Example

FORMAT = 1
CHUNK = 1024  # examples encoded at once
SIDES = ("source", "target")
Place = tuple[int, int]  # the length of a value, and where it begins


class Corpus:
    """Rows of (source, target) arrays; the source of a language model is None."""

    def __init__(self, folder: Path, meta: dict[str, Any]):
        self.folder = folder
        self.notes: list[str] = meta.get("notes", [])  # what codecs left out of sources, in sentences
        self.hold: object = None  # keeps its cache entry in use
        rows = meta["rows"]
        self.lengths = _map_file(folder / "lengths.bin", "int32", (rows, 2))  # (N, 2)
        self._offsets = _map_file(folder / "offsets.bin", "int64", (rows, 2))  # (N, 2)
        self._values = [
            meta[side] and _map_file(folder / f"{side}.bin", meta[side]["dtype"], tuple(meta[side]["shape"]))
            for side in SIDES
        ]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray | None, np.ndarray]:
        source, target = (self._value(side, index) for side in range(2))
        assert target is not None
        return source, target

    def _value(self, side: int, index: int) -> np.ndarray | None:
        values = self._values[side]
        if values is None:
            return None
        begin = int(self._offsets[index, side])
        value = values[begin : begin + int(self.lengths[index, side])]
        is_tokens = value.dtype.kind in "iu" and value.dtype != np.uint8
        return np.array(value, dtype=np.int64 if is_tokens else None)  # (T, ...)

    def stream(self, begin: int, end: int) -> np.ndarray:
        """Target tokens from `begin` to `end`, counted through all rows.  (end - begin,)"""
        values = self._values[1]
        assert values is not None
        return np.array(values[begin:end], dtype=np.int64)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """A corpus that was written to its end; anything else is an error."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            if meta["format"] != FORMAT:
                raise ValueError(f"format {meta['format']}")
            return cls(folder, meta)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SeqloomError(f"{folder} is not a complete corpus ({one_line(error)}); write it again") from None

    @classmethod
    def write(
        cls, folder: Path, examples: Iterable[Example], source: Codec | None, target: Codec, end: int | None = None
    ) -> Self:
        """Encode examples into a folder, which appears when the last one is written. `end` is added to each target."""
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
        try:
            _write(partial, examples, source, target, end)
            corpus = cls.open(partial)
            publish(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # gone already, unless something failed
        corpus.folder = folder
        return corpus


class _SideWriter:
    """Writes one side of a corpus."""

    def __init__(self, folder: Path, name: str, codec: Codec, end: int | None = None):
        self.name, self.codec, self.end = name, codec, end
        self.file = open(folder / f"{name}.bin", "wb")  # noqa: SIM115  # closed with its corpus
        self.dtype: np.dtype[Any] | None = None
        self.shape: tuple[int, ...] = ()  # of one position
        self.total = 0
        # Of values that are stored once: by path and by content.
        self.places: dict[Any, Place] | None = {} if name == "source" and codec.names_files else None

    def append(self, chunk: list[Example]) -> tuple[np.ndarray, np.ndarray]:
        """Write the values of a chunk. Returns their lengths and offsets, (n,) each."""
        if self.places is not None:
            return self._append_distinct(chunk, self.places)
        arrays = self._encode(chunk)
        if self.end is not None:
            arrays = [np.append(array, np.array(self.end, array.dtype)) for array in arrays]
        for example, array in zip(chunk, arrays):
            self._check(example, array)
        self.file.write(np.concatenate(arrays).tobytes())
        lengths = np.array([len(array) for array in arrays], dtype=np.int64)
        offsets = self.total + np.cumsum(lengths) - lengths
        self.total += int(lengths.sum())
        return lengths, offsets

    def _append_distinct(self, chunk: list[Example], places: dict[Any, Place]) -> tuple[np.ndarray, np.ndarray]:
        """The same, except that equal values are written once; a file that is named again is not read again."""
        found = []
        for example in chunk:
            name = example.source if isinstance(example.source, str) else None
            if name not in places:
                array = self._encode_one(example)
                self._check(example, array)
                content = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
                if content not in places:
                    self.file.write(array.tobytes())
                    places[content] = len(array), self.total
                    self.total += len(array)
                places[content if name is None else name] = places[content]
            found.append(places[content if name is None else name])
        lengths, offsets = np.array(found, dtype=np.int64).T
        return lengths, offsets

    def _check(self, example: Example, array: np.ndarray) -> None:
        """Refuse an array of another kind than those before it."""
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, array.shape[1:]
        if array.dtype != self.dtype or array.ndim == 0 or array.shape[1:] != self.shape:
            raise SeqloomError(
                f"example {example.line}: its {self.name} was encoded as {array.dtype} {list(array.shape)}; "
                f"expected {self.dtype} {['T', *self.shape]} like the examples before it"
            )

    def _encode(self, chunk: list[Example]) -> list[np.ndarray]:
        many = getattr(self.codec, "encode_many", None)
        if many is not None:
            return list(many([getattr(example, self.name) for example in chunk]))
        return [self._encode_one(example) for example in chunk]

    def _encode_one(self, example: Example) -> np.ndarray:
        try:
            if self.name == "source":
                return self.codec.read(example.source)
            return self.codec.encode(example.target, example.source)
        except SeqloomError as error:
            raise UnreadableError(f"line {example.line}: {error}") from None

    def meta(self) -> dict[str, Any]:
        assert self.dtype is not None
        return {"dtype": self.dtype.str, "shape": [self.total, *self.shape]}


def _write(folder: Path, examples: Iterable[Example], source: Codec | None, target: Codec, end: int | None) -> None:
    sides = [
        None if source is None else _SideWriter(folder, "source", source),
        _SideWriter(folder, "target", target, end),
    ]
    rows = 0
    try:
        with open(folder / "lengths.bin", "wb") as lengths_file, open(folder / "offsets.bin", "wb") as offsets_file:
            for chunk in _chunks(examples):
                nothing = np.zeros(len(chunk), dtype=np.int64)
                columns = [side.append(chunk) if side else (nothing, nothing) for side in sides]
                lengths, offsets = (np.stack(column, axis=1) for column in zip(*columns))  # (n, 2)
                lengths_file.write(lengths.astype(np.int32).tobytes())
                offsets_file.write(offsets.tobytes())
                rows += len(chunk)
    finally:
        for side in sides:
            if side:
                side.file.close()
    if rows == 0:
        raise SeqloomError("a corpus needs at least one example; none was given")
    meta = {"format": FORMAT, "rows": rows, "notes": source.notes() if source else []} | {
        name: side and side.meta() for name, side in zip(SIDES, sides)
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def _chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    iterator = iter(examples)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def publish(partial: Path, folder: Path) -> None:
    """Rename a complete folder. An older one is moved out of the way first: maps of it stay valid."""
    partial.chmod(0o755)  # mkdtemp makes folders that only their owner can read
    problem: OSError | None = None
    for _ in range(100):  # another process may publish the same folder in between
        try:
            os.rename(partial, folder)
            return
        except OSError as error:
            problem = error
            if not folder.exists():
                raise
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old-", dir=folder.parent))
        try:
            os.rename(folder, old)
        except OSError:
            pass  # the other process was faster
        finally:
            shutil.rmtree(old, ignore_errors=True)
    raise SeqloomError(f"{folder} cannot be written: other processes keep writing it; run one at a time") from problem


def _map_file(path: Path, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    expected = int(np.prod(shape)) * np.dtype(dtype).itemsize
    size = path.stat().st_size
    if size != expected:
        raise ValueError(f"{path.name} has {size} bytes, not {expected}")
    if size == 0:  # an empty file cannot be mapped
        return np.zeros(shape, dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))  # plain: quicker to index
