"""Seqloom as users run it: `Trainer.update` with collation, `Predictor` from text to text."""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from bench.pipe import Message, Turn, serve
from bench.shapes import BETAS, BOS, CLIP, LABEL_SMOOTHING, LEARNING_RATE, PAD, UNK, Shape
from bench.workers import loop
from seqloom.config.build import build_model, build_part, build_task
from seqloom.config.complete import complete
from seqloom.config.settings import build_settings
from seqloom.data.batching import Plan
from seqloom.data.corpus import Corpus
from seqloom.inference import find
from seqloom.inference.system import System
from seqloom.predictor import Predictor
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.storage.run import Run
from seqloom.tasks.pairs import Pairs
from seqloom.train.display import Display
from seqloom.train.trainer import Trainer
from seqloom.types import Padded

AROUND = 16  # the cost after so many tokens is the median of this many steps around them


def recipe(shape: Shape, units: str, vocabulary: int) -> dict[str, Any]:
    """A shape as a recipe, every default filled in."""
    text = {"type": "text", "units": units, "size": vocabulary - 4}
    written: dict[str, Any] = {
        "objective": {"type": "cross_entropy", "label_smoothing": LABEL_SMOOTHING},
        "share_embeddings": True,
        "task": {"source": text, "target": text, "joint": True},
        "train": {
            "tokens": 4096,
            "optimiser": "adam",
            "learning_rate": LEARNING_RATE,
            "betas": list(BETAS),
            "schedule": "constant",
            "warmup": 0,
            "clip": CLIP,
            "epochs": 1000,
            "device": "cpu",
        },
    }
    if shape["kind"] == "transformer":
        part = {name: shape[name] for name in ("size", "hidden", "heads", "layers", "dropout")}
        written["encoder"] = written["decoder"] = {"type": "transformer", **part}
        return complete(written, "bench")
    size, dropout = shape["size"], shape["dropout"]
    written["encoder"] = {
        "type": "recurrent",
        "embedding_size": size,
        "size": size // 2,
        "layers": shape["layers"],
        "bidirectional": True,
        "dropout": dropout,
    }
    written["decoder"] = {
        "type": "recurrent",
        "embedding_size": size,
        "size": size,
        "layers": shape["layers"],
        "attention": {"type": "bilinear"},
        "input_feeding": shape["input_feeding"],
        "bridge": "copy",
        "tied": True,
        "dropout": dropout,
    }
    return complete(written, "bench")


def task(job: Message) -> tuple[dict[str, Any], Pairs]:
    """The recipe of a job, and its task with its vocabulary."""
    full = recipe(job["shape"], job["units"], job["vocabulary"])
    found = build_task(full).load(Path(job["codecs"]))
    assert isinstance(found, Pairs)
    return full, found


class RecordingDisplay(Display):
    """Shows nothing and records the losses."""

    @classmethod
    def quiet(cls) -> Self:
        display = super().quiet()
        display.losses = []
        return display

    losses: list[float]

    def update(self, loss: float, **_: Any) -> None:  # type: ignore[override]
        self.losses.append(loss)


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    full, pairs = task(job)
    corpus = Corpus.open(Path(job["corpus"]))
    ends = np.cumsum([len(rows) for rows in job["rows"]])
    plan = Plan(np.concatenate(job["rows"]), np.stack([np.append(0, ends[:-1]), ends], axis=1))
    torch.manual_seed(1)
    display = RecordingDisplay.quiet()
    trainer = Trainer(
        model=build_model(full, pairs.source, pairs.target),
        objective=build_part("objectives", full["objective"], "objective"),
        train=corpus,
        valid=corpus,
        collate=pairs.collate,
        settings=build_settings(full),
        seed=1,
        run=Run.create(Path(tempfile.mkdtemp(dir=job["scratch"])), full),
        display=display,
        plan=lambda *_: plan,
    )
    trainer.batches.start()  # as `fit` does before its first update
    tokens = int((np.asarray(corpus.lengths)[plan.rows, 1] + 1).sum())

    def turn(order: str) -> Message:
        for _ in range(len(plan)):
            trainer.update()
        return {"tokens": tokens, "loss": sum(display.losses[-len(plan) :]) / len(plan)}

    return turn


def decoding(job: Message) -> Turn:
    """`Predictor.candidates` from text to text."""
    torch.set_num_threads(job["threads"])
    full, pairs = task(job)
    torch.manual_seed(1)
    predictor = Predictor(System(build_model(full, pairs.source, pairs.target), pairs, full))
    # batches are those of the job, whatever their number of tokens
    find.TOKENS = 10**5

    def turn(name: str) -> Message:
        setting = job["settings"][name]
        tokens = sentences = 0
        for batch in setting["batches"]:
            steps, texts = batch["steps"], batch["texts"]
            limits = {"minimum_length": steps - 1, "maximum_length": steps}  # tokens without EOS, and with it
            found = predictor.candidates(texts, beam_size=setting["beam_size"], **limits)
            loop.check([len(best[0].log_probs) for best in found], len(texts), steps)
            sentences, tokens = sentences + len(texts), tokens + len(texts) * steps
        return {"sentences": sentences, "tokens": tokens}

    return turn


def growth(job: Message) -> Turn:
    """The cost of a step of beam search after so many tokens: the time between steps of one search."""
    torch.set_num_threads(job["threads"])
    full, pairs = task(job)
    torch.manual_seed(1)
    model = build_model(full, pairs.source, pairs.target).eval()
    model.decoder.length_offset = 10_000

    @torch.no_grad()
    def turn(order: str) -> Message:
        size, beam_size, *produced = map(int, order.split())
        last = max(produced) + AROUND
        search = BeamSearch(beam_size=beam_size, minimum_length=last, maximum_length=last + 1)
        tokens = torch.randint(4, job["vocabulary"], (size, job["source"]))
        memory = model.encode(Padded(tokens, torch.full((size,), job["source"])))
        times: list[float] = []
        expand = BeamSearch.expand  # begins every step

        def timed(self: Any, *arguments: Any) -> Any:
            times.append(time.perf_counter())
            return expand(self, *arguments)

        BeamSearch.expand = timed  # type: ignore[method-assign]
        try:
            search(model.decoder, memory, None, [Banned([[PAD], [UNK], [BOS]])])
        finally:
            BeamSearch.expand = expand  # type: ignore[method-assign]
        spent = [1000 * (after - before) for before, after in pairwise(times)]
        around = [spent[count - AROUND // 2 : count + AROUND // 2] for count in produced]
        return {"milliseconds": [sorted(each)[len(each) // 2] for each in around]}

    return turn


if __name__ == "__main__":
    serve(train=training, decode=decoding, growth=growth)
