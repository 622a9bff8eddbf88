"""The data of benchmarks: Multi30k if $SEQLOOM_DATA has it, else generated pairs of similar lengths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.shapes import PAD
from seqloom.config.build import build_task
from seqloom.data import batching, dataset
from seqloom.data.cache import cache_folder
from seqloom.data.corpus import Corpus
from seqloom.tasks.pairs import Pairs

# Multi30k in joint byte pairs: mean and standard deviation of log lengths, and the correlation of both sides.
LOG_LENGTH, DEVIATION, CORRELATION = 2.55, 0.32, 0.8
VOCABULARY = 8000


@dataclass(frozen=True)
class Prepared:
    """Encoded pairs, and the task that encoded them."""

    name: str
    units: str  # of the text codec
    corpus: Corpus
    task: Pairs
    examples: list[Any]  # of the validation set

    @property
    def vocabulary(self) -> int:
        found = self.task.target.vocabulary
        assert found is not None
        return found

    def job(self, scratch: Path) -> dict[str, Any]:
        """The entries of a job that describe the data; `scratch` is a folder for files of this run."""
        self.task.save(scratch)
        return {
            "scratch": str(scratch),
            "codecs": str(scratch),
            "corpus": str(self.corpus.folder),
            "units": self.units,
            "vocabulary": self.vocabulary,
        }


def folder() -> Path:
    """The cache of the benchmarks."""
    return cache_folder() / "bench"


def prepare(quick: bool = False) -> Prepared:
    """Multi30k, or as many generated pairs; a few generated ones for a quick run."""
    rows, vocabulary = (500, 1000) if quick else (29_000, VOCABULARY)
    multi30k = Path(os.environ.get("SEQLOOM_DATA") or "-") / "multi30k"
    if multi30k.is_dir() and not quick:
        name, units = "Multi30k", "bpe"
        files = [str(multi30k / f"train.{language}.gz") for language in ("en", "de")]
        data: Any = files
        valid: Any = [path.replace("train", "val") for path in files]
    else:
        name, units = f"{rows:,} generated pairs with the lengths of Multi30k", "word"
        data, valid = list(generate(rows, vocabulary)), list(generate(rows // 20 + 20, vocabulary, seed=2))
    text = {"type": "text", "units": units, "size": vocabulary - 4}  # and the four special tokens
    task = build_task({"task": {"source": text, "target": text, "joint": True}})
    assert isinstance(task, Pairs)
    found = dataset.prepare(
        data, valid, source=task.source, target=task.target, joint=True, seed=1, cache=folder() / "data"
    )
    return Prepared(name, units, found.train, task, found.valid_examples)


def generate(rows: int, vocabulary: int = VOCABULARY, seed: int = 1, length: float = 1.0) -> Iterator[tuple[str, str]]:
    """Pairs of random words, probability 1 / rank; lengths are log-normal, `length` times those of Multi30k."""
    generator = np.random.default_rng(seed)
    share = 1 / np.arange(10, vocabulary + 6)  # vocabulary - 4 words
    shares = np.cumsum(share / share.sum())
    covariance = DEVIATION**2 * np.array([[1, CORRELATION], [CORRELATION, 1]])
    for begin in range(0, rows, 1000):
        count = min(1000, rows - begin)
        normal = generator.multivariate_normal([LOG_LENGTH, LOG_LENGTH], covariance, size=count)
        lengths = np.maximum(np.rint(length * np.exp(normal)), 1).astype(int)  # (count, 2)
        for pair in lengths:
            sides = [np.searchsorted(shares, generator.random(width)) for width in pair]
            yield tuple(" ".join(f"w{word}" for word in side) for side in sides)  # type: ignore[misc]


def spread_batches(plan: batching.Plan, widths: np.ndarray, count: int) -> list[int]:
    """So many batches of a plan, evenly from the narrowest to the widest: a few stand for all."""
    order = np.argsort([widths[plan[number]].max() for number in range(len(plan))], kind="stable")
    places = np.linspace(0, len(order) - 1, count + 2)[1:-1].round().astype(int)
    return [int(number) for number in order[places]]


def write_batches(corpus: Corpus, plan: batching.Plan, path: Path) -> None:
    """The batches of a plan for workers (see `bench.batches`)."""
    rows = np.concatenate([plan[number] for number in range(len(plan))])
    ends = np.cumsum([len(plan[number]) for number in range(len(plan))])
    encoded = [corpus[int(row)] for row in rows]
    np.savez(
        path,
        source=np.concatenate([np.asarray(source) for source, _ in encoded]),
        target=np.concatenate([np.asarray(target) for _, target in encoded]),
        lengths=np.asarray(corpus.lengths)[rows],
        offsets=np.stack([np.append(0, ends[:-1]), ends], axis=1),
    )


def padding(corpus: Corpus, plan: batching.Plan) -> float:
    """The share of padding in the batches, over both sides."""
    real = padded = 0
    for number in range(len(plan)):
        lengths = np.asarray(corpus.lengths)[plan[number]].astype(int) + np.array([0, 1])
        real, padded = real + int(lengths.sum()), padded + int(len(lengths) * lengths.max(0).sum())
    return 1 - real / padded


assert PAD == 0  # batches are filled up with zeros
