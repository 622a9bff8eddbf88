"""Masked words: what an encoder finds in their places, and how often it finds what stood there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seqloom.data.special_tokens import EOS, MASK, SPECIAL
from seqloom.errors import SeqloomError, shown
from seqloom.inference.running_text import log_probs_of
from seqloom.inference.system import System
from seqloom.tasks.masked import Masked
from seqloom.types import COUNTED, Example, Padded

TOKENS = 8_192  # of a batch


@dataclass(frozen=True)
class Filled:
    """A text with its likeliest words, and for each that was masked some tokens with their probabilities."""

    text: str
    candidates: list[list[tuple[str, float]]]


@torch.inference_mode()
def fill(system: System, text: str, *, n_best: int = 5) -> Filled:
    """What may stand in the places of "[MASK]": the likeliest tokens of each, the others being masked too."""
    task = masked_task(system)
    if not 1 <= n_best <= 1_000:
        raise SeqloomError(f"n_best = {shown(n_best)}: expected 1 to 1,000 words")
    parts = text.split(MASK) if isinstance(text, str) else []
    if len(parts) < 2:
        raise SeqloomError(f"the text {shown(text)} has no {MASK}: write it where a word is to be found")
    codec = task.codec
    encoded = [codec.encode(parts[0])]
    for part in parts[1:]:
        encoded += [np.array([task.mask]), codec.encode(part)]
    tokens = task.framed(np.concatenate(encoded))
    if len(tokens) > task.window:
        raise SeqloomError(
            f"the text has {len(tokens)} tokens; expected at most {task.window} (task.window): shorten it"
        )
    scores = scores_of(system, tokens)
    masked = np.flatnonzero(tokens == task.mask)
    found, filled = [], tokens.copy()
    for place in masked:
        possible = scores[place].clone()
        possible[: len(SPECIAL)] = possible[-1] = -torch.inf
        values, ids = possible.softmax(-1).topk(min(n_best, len(possible) - len(SPECIAL) - 1))
        found.append(list(zip(codec.pieces(ids), values.tolist())))
        filled[place] = int(ids[0])
    return Filled(codec.decode(filled[1:]), found)


def scores_of(system: System, tokens: np.ndarray) -> torch.Tensor:
    """(T,) -> (T, V)"""
    source = Padded.stack([tokens]).to(system.model.device)
    memory = system.model.encode(source)
    scores: torch.Tensor = system.model.decoder(memory, source).scores[0].float().cpu()
    return scores


def masked_task(system: System) -> Masked:
    if not isinstance(system.task, Masked):
        raise SeqloomError('this run finds no masked words: train one of task.type = "masked", such as the recipe bert')
    return system.task


@dataclass(frozen=True)
class Lines:
    """Encoded lines, read as a corpus is."""

    lengths: np.ndarray  # (N, 2), the end of each line included
    tokens: np.ndarray

    @classmethod
    def of(cls, task: Masked, texts: Sequence[str]) -> Lines:
        lines = [np.append(each, EOS) for each in task.codec.encode_many(texts)]
        lengths = np.array([[0, len(line)] for line in lines]).reshape(-1, 2)
        return cls(lengths, np.concatenate(lines).astype(np.int64))

    def stream(self, begin: int, end: int) -> np.ndarray:
        return self.tokens[begin:end].copy()


@torch.inference_mode()
def evaluate_masked(system: System, examples: Sequence[Example]) -> dict[str, float]:
    """Of a running text, with the masks of a validation: how many masked tokens are found, in %, and their perplexity;
    how many next-sentence predictions are right.
    """
    task, model = masked_task(system), system.model
    lines: Any = Lines.of(task, [example.target for example in examples])
    plan = task.in_order(lines.lengths, TOKENS)
    right = np.zeros(2)  # tokens, pairs
    count, nats = np.zeros(2), 0.0
    for number in range(len(plan)):
        batch = task.collate(lines, plan[number]).to(model.device)
        scores = model(batch).scores.float()
        found = scores.argmax(-1) == batch.targets.values
        own = log_probs_of(scores, batch.targets.values)
        counted = torch.as_tensor(batch.extra[COUNTED]).to(found.device) > 0
        tokens = counted.clone()
        tokens[:, 0] = False
        right[1] += float((found & counted)[:, 0].sum())
        count[1] += float(counted[:, 0].sum())
        right[0] += float((found & tokens).sum())
        count[0] += float(tokens.sum())
        nats -= float(own[tokens].sum())
    if not count[0]:
        raise SeqloomError("the text has no words: give at least one line")
    measured = {"masked_accuracy": 100 * right[0] / count[0], "masked_perplexity": float(np.exp(nats / count[0]))}
    return {**measured, **({"pair_accuracy": 100 * right[1] / count[1]} if count[1] else {})}
