"""Running text with a language model: one that carries its state, or one that sees a window at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqloom.data.special_tokens import EOS
from seqloom.nn.model import Model
from seqloom.tasks.text import RunningText
from seqloom.types import Padded, State

CHUNK = 2048  # tokens per pass of a model that carries its state
ROWS = 32  # windows per pass of one that does not


def line_log_probs(model: Model, task: RunningText, lines: Sequence[str]) -> list[float]:
    """The log-probability of each line, its line break included, given all lines before it."""
    if not lines:
        return []
    encoded = [np.append(task.target.encode(line), EOS) for line in lines]
    scores = log_probs(model, task, torch.from_numpy(np.concat(encoded))).cpu().double()
    return [part.sum().item() for part in scores.split([len(line) for line in encoded])]


def log_probs(model: Model, task: RunningText, text: Tensor) -> Tensor:
    """The log-probability of each token given all before it.  (N,) -> (N,)"""
    text = torch.cat([text.new_tensor([EOS]), text]).to(next(model.parameters()).device)
    if task.carry:
        return in_one_pass(model, text, CHUNK)
    return in_windows(model, text, task.window)


def in_one_pass(model: Model, text: Tensor, chunk: int) -> Tensor:
    """The state is carried from chunk to chunk, so the size of chunks changes nothing.  (1 + N,) -> (N,)"""
    memory = model.encode(None, rows=1)
    state: State | None = None
    found = []
    for begin in range(0, len(text) - 1, chunk):
        inputs = text[begin : begin + chunk + 1]
        read = Padded(inputs[None, :-1], torch.tensor([len(inputs) - 1], device=text.device))
        output = model.decoder(memory, read, state)
        state = output.state
        found.append(log_probs_of(output.scores, inputs[None, 1:])[0])
    return torch.cat(found)


def in_windows(model: Model, text: Tensor, window: int) -> Tensor:
    """Windows that overlap by half, so that every token has at least half a window before it.  (1 + N,) -> (N,)"""
    total, half = len(text) - 1, max(window // 2, 1)
    begins = [0, *range(half, total - window + half, half)]  # all but the first only score their second half
    found = []
    for first in range(0, len(begins), ROWS):
        rows = begins[first : first + ROWS]
        windows = [text[begin : begin + window + 1] for begin in rows]
        inputs, targets = (Padded.stack([part[side] for part in windows]) for side in (slice(-1), slice(1, None)))
        inputs = inputs.to(text.device)
        scores = log_probs_of(model.decoder(model.encode(None, len(rows)), inputs).scores, targets.values)
        for begin, row, length in zip(rows, scores, inputs.lengths.tolist()):
            found.append(row[(window - half if begin else 0) : length])
    return torch.cat(found)


def log_probs_of(scores: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities of given tokens.  (rows, U, V), (rows, U) -> (rows, U)"""
    return torch.log_softmax(scores, dim=-1).gather(2, tokens[:, :, None])[:, :, 0]
