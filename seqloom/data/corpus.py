"""Encoded examples in flat files, mapped into memory, so that a corpus of any size takes none of it.

A folder holds, for each side, all values end to end (`source.bin`, `target.bin`), the (source, target) lengths of
each row, the offsets where they begin, and `meta.json` with dtypes and shapes. Integers are int64 when they are read,
except for uint8, which are pixels. Sources that are files, such as the picture of several captions, are stored once.
Of sources with several inputs each further one has a file of its own, `source.NAME.bin`, and `places.bin` holds lengths
and offsets of all.
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
from seqloom.types import Composite, Encoded, Example

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
        further = (meta["source"] or {}).get("parts", {})
        self._parts = {
            name: _map_file(folder / f"source.{name}.bin", each["dtype"], tuple(each["shape"]))
            for name, each in further.items()
        }
        shape = (rows, 1 + len(further), 2)  # of each input its length and where it begins
        self._places = _map_file(folder / "places.bin", "int64", shape) if further else None

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[Encoded | None, np.ndarray]:
        (source_length, target_length), (source_begin, target_begin) = self.lengths[index], self._offsets[index]
        target = _cut(self._values[1], target_length, target_begin)
        if self._values[0] is None:
            return None, target
        if self._places is None:
            return _cut(self._values[0], source_length, source_begin), target
        own, *others = (
            _cut(values, *place) for values, place in zip([self._values[0], *self._parts.values()], self._places[index])
        )
        return Composite(own, dict(zip(self._parts, others))), target

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


def _cut(values: np.ndarray | None, length: Any, begin: Any) -> np.ndarray:
    """One value of a file.  (T, ...)"""
    assert values is not None
    value = values[int(begin) : int(begin) + int(length)]
    is_tokens = value.dtype.kind in "iu" and value.dtype != np.uint8
    return np.array(value, dtype=np.int64 if is_tokens else None)


class _ArrayWriter:
    """Writes values of one kind end to end."""

    def __init__(self, path: Path, name: str):
        self.name = name
        self.file = open(path, "wb")  # noqa: SIM115  # closed with its corpus
        self.dtype: np.dtype[Any] | None = None
        self.shape: tuple[int, ...] = ()  # of one position
        self.total = 0

    def write(self, example: Example, array: np.ndarray) -> Place:
        """Write one value, unless it is of another kind than those before it."""
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, array.shape[1:]
        if array.dtype != self.dtype or array.ndim == 0 or array.shape[1:] != self.shape:
            raise SeqloomError(
                f"example {example.line}: its {self.name} was encoded as {array.dtype} {list(array.shape)}; "
                f"expected {self.dtype} {['T', *self.shape]} like the examples before it"
            )
        self.file.write(array.tobytes())
        self.total += len(array)
        return len(array), self.total - len(array)

    def meta(self) -> dict[str, Any]:
        assert self.dtype is not None
        return {"dtype": self.dtype.str, "shape": [self.total, *self.shape]}


class _SideWriter:
    """Writes one side of a corpus."""

    def __init__(self, folder: Path, name: str, codec: Codec, end: int | None = None):
        self.name, self.codec, self.end = name, codec, end
        self.arrays = [_ArrayWriter(folder / f"{name}.bin", name)]
        self.places_file = None
        if name == "source" and codec.parts:
            self.arrays += [_ArrayWriter(folder / f"source.{part}.bin", f"source, {part},") for part in codec.parts]
            self.places_file = open(folder / "places.bin", "wb")  # noqa: SIM115  # closed with its corpus
        # Of values that are stored once, by path and by content: the place of each of their inputs.
        self.places: dict[Any, list[Place]] | None = {} if name == "source" and codec.names_files else None

    def append(self, chunk: list[Example]) -> tuple[np.ndarray, np.ndarray]:
        """Write the values of a chunk. Returns their lengths and offsets, (n,) each."""
        if self.places is not None:
            places = [self._store_once(example, self.places) for example in chunk]
        else:
            places = [self._store(example, value) for example, value in zip(chunk, self._encode(chunk))]
        found = np.array(places, dtype=np.int64)  # (n, inputs, 2)
        if self.places_file is not None:
            self.places_file.write(found.tobytes())
        return found[:, :, 0].max(1), found[:, 0, 1]

    def _store(self, example: Example, value: Encoded) -> list[Place]:
        """Write each input of a value."""
        inputs = [value.values, *value.parts.values()] if isinstance(value, Composite) else [value]
        if self.end is not None:
            inputs = [np.append(array, np.array(self.end, array.dtype)) for array in inputs]
        return [writer.write(example, array) for writer, array in zip(self.arrays, inputs, strict=True)]

    def _store_once(self, example: Example, places: dict[Any, list[Place]]) -> list[Place]:
        """The same, except that equal values are written once; a file that is named again is not read again."""
        name = example.source if isinstance(example.source, str) else None
        if name is None or name not in places:
            value = self._encode_one(example)
            content = hash_of(value)
            if content not in places:
                places[content] = self._store(example, value)
            if name is None:
                return places[content]
            places[name] = places[content]
        return places[name]

    def _encode(self, chunk: list[Example]) -> list[Encoded]:
        many = getattr(self.codec, "encode_many", None)
        if many is not None:
            return list(many([getattr(example, self.name) for example in chunk]))
        return [self._encode_one(example) for example in chunk]

    def _encode_one(self, example: Example) -> Encoded:
        try:
            if self.name == "source":
                return self.codec.read(example.source)
            return self.codec.encode(example.target, example.source)
        except SeqloomError as error:
            raise UnreadableError(f"line {example.line}: {error}") from None

    def meta(self) -> dict[str, Any]:
        own, *others = [array.meta() for array in self.arrays]
        return own | ({"parts": dict(zip(self.codec.parts, others))} if others else {})

    def close(self) -> None:
        for file in (*(array.file for array in self.arrays), self.places_file):
            if file is not None:
                file.close()


def hash_of(value: Encoded) -> bytes:
    """A hash of an encoded value."""
    arrays = [value.values, *value.parts.values()] if isinstance(value, Composite) else [value]
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little") + array.tobytes())
    return digest.digest()


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
                side.close()
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
