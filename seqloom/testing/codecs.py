"""What holds for every codec, on values that it can read."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.special_tokens import BOS, EOS, PAD
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.testing.claims import ContractError, NotAsked, require

VALUES: tuple[list[Any], ...] = (  # the first that a codec reads are taken
    ["loom", "a shuttle weaves", "warp and weft", "weft and warp"],
    [[[0.5, 1.0], [0.25, 0.0]], [[1.5, -1.0]], [[0.0, 0.0], [3.0, 1.0], [2.0, 0.5]]],
    [[0, 2, 1], [1, 0], [3, 1, 0, 2]],
)


def encodings_are_tokens_vectors_or_pictures(codec: Codec, values: Sequence[Any]) -> None:
    codec.fit(values)
    for value in values:
        found = codec.encode(value)
        require(isinstance(found, np.ndarray), f"encode() returns a {type(found).__name__}, not a numpy array")
        if codec.shape is not None:
            fits = found.dtype == np.uint8 and (found.shape[1:] if codec.moving else found.shape) == codec.shape
            wanted = f"({'T, ' if codec.moving else ''}{', '.join(map(str, codec.shape))})"
            require(fits, f"encode({shown(value)}) is {found.dtype} {found.shape}, not uint8 {wanted}, its shape")
            continue
        if codec.is_vectors or found.dtype == np.float32:
            wanted = f"float32 (T, {codec.features})"
            fits = found.dtype == np.float32 and found.ndim == 2 and found.shape[1] == codec.features
            require(fits, f"encode({shown(value)}) is {found.dtype} {found.shape}, not {wanted}, features wide")
            continue
        shape, dimensions = ("(T, W), a table", 2) if found.ndim == 2 and codec.nested else ("(T,)", 1)
        fits = found.dtype == np.int64 and found.ndim == dimensions
        require(fits, f"encode({shown(value)}) is {found.dtype} {found.shape}, not int64 {shape}")
        size = codec.vocabulary
        require(size is not None, "vocabulary is None after fit(), and values are tokens")
        if dimensions == 2:  # what a row holds beside its token is for the encoder to read
            continue
        special = np.isin(found, (PAD, BOS, EOS)).any()
        require(not special, f"encode({shown(value)}) has padding, BOS or EOS: leave these out")
        if not codec.chooses:
            require((found < size).all(), f"encode({shown(value)}) has token {found.max()}; vocabulary is {size}")


def decoding_and_encoding_again_changes_nothing(codec: Codec, values: Sequence[Any]) -> None:
    codec.fit(values)
    for value in values:
        once = codec.encode(value)
        try:
            decoded = codec.decode(once)
        except SeqloomError as error:
            raise NotAsked(f"it does not decode: {error}") from None
        again = codec.encode(decoded)
        wrong = f"{shown(value)} is encoded, decoded as {shown(decoded)} and encoded otherwise"
        require(np.shape(once) == np.shape(again), wrong)
        rounding = 1e-5 if once.dtype.kind == "f" else 0  # of what has been scaled and is scaled back
        require(np.allclose(once, again, rtol=rounding, atol=rounding), wrong)


def it_is_the_same_after_save_and_load(codec: Codec, values: Sequence[Any]) -> None:
    other = copy.deepcopy(codec)
    codec.fit(values)
    with TemporaryDirectory() as folder:
        codec.save(Path(folder), "source")
        names = [path.name for path in Path(folder).iterdir()]
        require(
            all(name.startswith("source.") for name in names), f'save(folder, "source") writes {names}, not source.*'
        )
        other.load(Path(folder), "source")
    for value in values:
        same = np.array_equal(codec.encode(value), other.encode(value))
        require(same, f"after save() and load(), {shown(value)} is encoded otherwise: save all that fit() learned")


def fitting_reads_the_values_once(codec: Codec, values: Sequence[Any]) -> None:
    other = copy.deepcopy(codec)
    codec.fit(values)
    require(other.fit(iter(values)) is other, "fit() must return the codec itself")
    for value in values:
        same = np.array_equal(codec.encode(value), other.encode(value))
        require(same, "fit() of an iterator learns something else than of a list: it reads the values more than once")


def encoding_changes_nothing(codec: Codec, values: Sequence[Any]) -> None:
    codec.fit(values)
    for value in values:
        before, first = copy.deepcopy(value), codec.encode(value)
        require(np.array_equal(first, codec.encode(value)), f"{shown(value)} is encoded otherwise the second time")
        require(
            is_same(before, value),
            f"encode() changes the value that it was given: {shown(before)} became {shown(value)}",
        )


def a_value_in_pieces_is_the_value(codec: Codec, values: Sequence[Any]) -> None:
    codec.fit(values)
    for value in values:
        try:
            feed = codec.feed()
        except SeqloomError:
            raise NotAsked("it cannot be streamed") from None
        cut = len(value) // 2
        pieces = [feed.feed(value[:cut]), feed.feed(value[cut:cut]), feed.feed(value[cut:]), feed.close()]
        found, expected = np.concatenate(pieces), codec.encode(value)
        wrong = f"{shown(value)} in pieces is not encode() of the whole"
        require(found.shape == expected.shape and np.array_equal(found, expected), wrong)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal: arrays, dictionaries of them, or anything else that compares."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def values_for(codec: Codec) -> list[Any]:
    """Some values that a codec can read: texts, vectors or places."""
    for values in VALUES:
        try:
            tried = copy.deepcopy(codec).fit(iter(values))
            for value in values:
                tried.encode(value)
        except UnreadableError:
            continue
        except Exception as error:  # not a refusal: the checks will say what it is
            raise ContractError(f"fit() or encode() fails: {type(error).__name__}: {error}") from error
        else:
            return values
    raise SeqloomError(
        f"{type(codec).__name__} reads neither texts nor vectors nor places: give it values, examples=[...]"
    )
