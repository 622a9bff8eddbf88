"""Running texts with a language model that keeps its state, or with one that sees windows only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from seqloom.data.symbols import EOS
from seqloom.model import Model
from seqloom.tasks.text import Text
from seqloom.types import Padded, State

CHUNK = 2048  # symbols read at once by a model that carries its state
ROWS = 32  # windows read at once by one that does not


def line_scores(model: Model, task: Text, lines: Sequence[str]) -> list[float]:
    """The log-probability of each line, its break included, after all lines before it."""
    if not lines:
        return []
    encoded = [np.append(task.target.encode(line), EOS) for line in lines]
    scores = log_probs(model, task, torch.from_numpy(np.concat(encoded))).cpu().double()
    return [part.sum().item() for part in scores.split([len(line) for line in encoded])]


def log_probs(model: Model, task: Text, text: Tensor) -> Tensor:
    """Of each symbol after those before it.  (N,) -> (N,)"""
    text = torch.cat([text.new_tensor([EOS]), text]).to(next(model.parameters()).device)
    if task.carry:
        return of_one_pass(model, text, CHUNK)
    return of_windows(model, text, task.window)


def of_one_pass(model: Model, text: Tensor, chunk: int) -> Tensor:
    """The state goes from chunk to chunk, so that their size changes nothing.  (1 + N,) -> (N,)"""
    memory = model.encode(None, rows=1)
    state: State | None = None
    found = []
    for begin in range(0, len(text) - 1, chunk):
        inputs = text[begin : begin + chunk + 1]
        read = Padded(inputs[None, :-1], torch.tensor([len(inputs) - 1], device=text.device))
        output = model.decoder(memory, read, state)
        state = output.state
        found.append(chosen(output.scores, inputs[None, 1:])[0])
    return torch.cat(found)


def of_windows(model: Model, text: Tensor, window: int) -> Tensor:
    """Windows that overlap by half: beyond the first, each symbol has half a window before it.  (1 + N,) -> (N,)"""
    total, half = len(text) - 1, max(window // 2, 1)
    begins = [0, *range(half, total - window + half, half)]  # each window but the first is new in its second half
    found = []
    for first in range(0, len(begins), ROWS):
        rows = begins[first : first + ROWS]
        windows = [text[begin : begin + window + 1] for begin in rows]
        inputs, targets = (Padded.stack([part[side] for part in windows]) for side in (slice(-1), slice(1, None)))
        inputs = inputs.to(text.device)
        scores = chosen(model.decoder(model.encode(None, len(rows)), inputs).scores, targets.values)
        for begin, row, length in zip(rows, scores, inputs.lengths.tolist()):
            found.append(row[(window - half if begin else 0) : length])
    return torch.cat(found)


def chosen(scores: Tensor, symbols: Tensor) -> Tensor:
    """Log-probabilities of given symbols.  (rows, U, V), (rows, U) -> (rows, U)"""
    return torch.log_softmax(scores, dim=-1).gather(2, symbols[:, :, None])[:, :, 0]


def written_on(write: Callable[[Tensor, int], Tensor], beginning: Tensor, length: int, window: int) -> Tensor:
    """A text of so many symbols by a model that sees one window only: it goes on from the last half of it.

    `write` takes what stands before, (rows, P), and the length to reach, and gives all of it, (rows, length).
    """
    text = write(beginning[:, -(window - 1) :], min(length, window))
    text = torch.cat([beginning[:, : -(window - 1)], text], dim=1)
    while text.shape[1] < length:
        seen = text[:, -(window // 2) :]
        more = write(seen, min(seen.shape[1] + length - text.shape[1], window))
        text = torch.cat([text, more[:, seen.shape[1] :]], dim=1)
    return text
