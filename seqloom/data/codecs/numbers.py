"""Sequences of vectors: measurements, frames, points, or a single number.

A value is a list of vectors, a list of numbers (vectors of one component), an array or tensor of either, or one
number. In a file, vectors are separated by spaces and components by commas: "0.31,1 0.44,0".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.storage.files import read_json, replace_file, saving, to_json

WIDEST = 1_000_000  # components of a vector


class Numbers(Codec):
    """Vectors <-> float32 (T, F). The number of components is learned from the data."""

    def __init__(self) -> None:
        self._features: int | None = None

    @property
    def features(self) -> int:  # type: ignore[override]  # known once fitted
        """How many components a vector has."""
        if self._features is None:
            raise SeqloomError("numbers have no width yet; fit them or load them first")
        return self._features

    def fit(self, values: Iterable[Any]) -> Self:
        self._features = None
        for value in values:
            width = _array(value).shape[1]
            if self._features not in (None, width):
                raise _misfit(value, width, self._features)
            self._features = width
        if self._features is None:
            raise SeqloomError("numbers were given nothing to learn from; expected at least one value")
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        array = _array(value)
        if array.shape[1] != self.features:
            raise _misfit(value, array.shape[1], self.features)
        return array  # (T, F)

    def decode(self, values: Any, source: Any = None) -> list[list[float]] | list[float]:
        """A list of vectors, or of numbers for vectors of one component. Numbers are short, as float32 prints: 0.31."""
        vectors = [[float(str(number)) for number in vector] for vector in _float32(values)]
        return vectors if self.features > 1 else [number for vector in vectors for number in vector]

    def content(self, value: Any) -> Any:
        _array(value)
        return value

    def elements(self, value: Any) -> int:
        return len(_array(value))

    def normal(self, value: Any) -> list[list[float]] | list[float]:
        """The value as a perfect output would be."""
        return self.decode(self.encode(value))

    def line(self, value: Any) -> str:
        return " ".join(self.pieces(self.encode(value)))

    def pieces(self, values: Any) -> list[str]:
        """Each vector for display: "0.31,1"."""
        return [",".join(str(number).removesuffix(".0") for number in vector) for vector in _float32(values)]

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        with saving(path):
            replace_file(path, to_json({"features": self.features}))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        features = read_json(path, remedy="expected the width of numbers").get("features")
        if type(features) is not int or not 1 <= features <= WIDEST:
            raise SeqloomError(f'{path} has no width of numbers; expected {{"features": 2}} or the like')
        self._features = features
        return self

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.numbers.json"


def _array(value: Any) -> np.ndarray:
    """A value in any form as float32 (T, F)."""
    array = _from_text(value) if isinstance(value, str) else _from_python(value)
    if not array.size:
        raise UnreadableError(f"the numbers {shown(value)} are empty; expected at least one vector")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        place = int(np.argmin(np.isfinite(array).all(1))) + 1
        raise UnreadableError(f"the numbers {shown(value)} are not finite at vector {place}; expected finite float32")
    return array


def _float32(values: Any) -> np.ndarray:
    """The vectors of an array of any kind, on any device."""
    return as_numpy(values).astype(np.float32)


def _from_text(text: str) -> np.ndarray:
    vectors = text.split()
    width = vectors[0].count(",") + 1 if vectors else 1
    for place, vector in enumerate(vectors, start=1):
        if vector.count(",") + 1 != width:
            found = f"has {_components(vector.count(',') + 1)}, expected {width} like the first"
            raise UnreadableError(f"the numbers {shown(text)}: vector {place} {found}")
    components = ",".join(vectors).split(",") if vectors else []
    try:
        return np.array(components, dtype=np.float64).reshape(-1, width)
    except ValueError:
        wrong = next(component for component in components if not _is_number(component))
        expected = 'expected numbers, such as "0.31,1 0.44,0"'
        raise UnreadableError(f"the numbers {shown(text)}: {wrong[:40]!r} is not a number; {expected}") from None


def _from_python(value: Any) -> np.ndarray:
    """Lists, arrays, tensors; a number alone is one vector of one component."""
    expected = "expected vectors of one width: lists of numbers, an array, a tensor, or a text of numbers"
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # lists of different lengths
        raise UnreadableError(f"the numbers {shown(value)} are ragged; {expected}") from None
    if array.dtype.kind not in "iuf" and array.size:
        raise UnreadableError(f"the numbers {shown(value)} hold {array.dtype} values; {expected}")
    if array.ndim > 2:
        raise UnreadableError(f"the numbers {shown(value)} have {array.ndim} axes; {expected}")
    return array if array.ndim == 2 else array.reshape(-1, 1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _misfit(value: Any, width: int, features: int | None) -> UnreadableError:
    have = f"the numbers {shown(value)} have vectors of {_components(width)}"
    return UnreadableError(f"{have}; expected {features}, as in the training data")


def _components(count: int) -> str:
    return f"{count} component{'s' * (count != 1)}"
