"""Which examples are held out to validate with, and which are duplicates or leaks.

All of it is found in hashes: one pass over the data keeps two of 8 bytes for each example.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.errors import SeqloomError
from seqloom.types import Example


@dataclass(frozen=True)
class Scan:
    """The hashes of the examples of a data set. A language model's example is identified by its target."""

    sources: np.ndarray  # (N,) uint64: of what identifies an example
    groups: np.ndarray  # (N,) uint64: of what is held out whole, sources or dialogues
    pairs: np.ndarray  # (N,) uint64
    sizes: np.ndarray  # (N,): bytes of the targets, and one more for the line break
    content: str  # a hash of everything
    refused: frozenset[int]  # lines that a codec cannot read

    def usable(self, rows: Iterable[Example]) -> Iterator[Example]:
        """The examples that were scanned, when the data is read again."""
        return (example for example in rows if example.line not in self.refused)

    @property
    def duplicates(self) -> int:
        """Pairs that came before."""
        return len(self.pairs) - len(np.unique(self.pairs))

    @property
    def ambiguous(self) -> int:
        """Sources with several targets."""
        _, first = np.unique(self.pairs, return_index=True)
        _, targets = np.unique(self.sources[first], return_counts=True)
        return int(np.count_nonzero(targets > 1))

    def leaks(self, valid: Scan) -> int:
        """Sources of the validation data that are here too."""
        return len(np.intersect1d(self.sources, valid.sources))


def scan(
    rows: Iterable[tuple[Example, Any, Any]],
    refused: set[int],
    seed: int,
    group: Callable[[Example], Any] | None = None,
    by_target: bool = False,
) -> Scan:
    """Hash the contents of examples (`readers.readable`, which fills `refused`), and the `group` of each.

    An example is identified by its source, or `by_target`: pictures of a class are not one example.
    """
    sources, groups, pairs, sizes = array("Q"), array("Q"), array("Q"), array("Q")
    content = hashlib.sha256()
    for example, source, target in rows:
        second = as_bytes(target)
        first = second if example.source is None else as_bytes(source)
        sizes.append(len(second) + 1)
        sources.append(_hash(second if by_target else first, seed))
        if group is not None:
            groups.append(_hash(as_bytes(group(example)), seed))
        pair = b"%d:%b%b" % (len(first), first, second)  # the length keeps (ab, c) and (a, bc) apart
        pairs.append(_hash(pair, seed))
        content.update(b"%d:%b" % (len(pair), pair))
    hashes = {"sources": sources, "groups": sources if group is None else groups, "pairs": pairs}
    return Scan(
        **{name: np.array(each, dtype=np.uint64) for name, each in hashes.items()},
        sizes=np.array(sizes, dtype=np.int64),
        content=content.hexdigest(),
        refused=frozenset(refused),
    )


def hold_out(sources: np.ndarray, max_valid: int) -> np.ndarray:
    """About a tenth of the examples, at most `max_valid`: True for those of the sources with the lowest hashes.  (N,)

    Sources are held out whole, so that none is on both sides, and wherever they are in the data.
    """
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


def last_tenth(sizes: np.ndarray) -> np.ndarray:
    """True for the last lines of a running text, about a tenth of its bytes.  (N,)"""
    if len(sizes) < 2:
        raise SeqloomError("the text has only one line, so that none can be held out; give validation data, or lines")
    ends = np.cumsum(sizes)
    cut = int(np.clip(np.searchsorted(ends, 0.9 * ends[-1], side="right"), 1, len(sizes) - 1))
    return np.arange(len(sizes)) >= cut


def pick(rows: Iterable[Example], mask: np.ndarray) -> Iterator[Example]:
    """The examples where the mask is True."""
    try:
        for keep, example in zip(mask, rows, strict=True):
            if keep:
                yield example
    except ValueError:
        raise SeqloomError("the training data changed while it was read; run again when nothing writes to it") from None


def _hash(value: bytes, seed: int) -> int:
    digest = hashlib.blake2b(value, digest_size=8, key=seed.to_bytes(16, "little", signed=True))
    return int.from_bytes(digest.digest(), "little")


def as_bytes(value: Any) -> bytes:
    """What distinguishes a value from others: of texts, arrays, lists and tuples of anything."""
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "numpy"):  # a tensor
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if isinstance(value, (list, tuple)):
        parts = [as_bytes(part) for part in value]
        return b"".join(b"%d:%b" % (len(part), part) for part in parts)
    return value if isinstance(value, bytes) else repr(value).encode()
