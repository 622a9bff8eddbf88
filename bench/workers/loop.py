"""The training and decoding loops of systems that are only a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bench.batches import Batches, PaddedBatch, stack
from bench.pipe import Message, Turn
from bench.shapes import BETAS, CLIP, LEARNING_RATE

Answer = Callable[[Tensor, Tensor, int, int], Sequence[int]]  # sources, lengths, steps, beam_size -> output lengths


def train(model: nn.Module, loss_of: Callable[[nn.Module, PaddedBatch], Tensor], batches: Batches) -> Turn:
    """Updates over all batches. The loss is a mean over target tokens."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)

    def turn(_: str) -> Message:
        total = 0.0
        for batch in batches:
            optimiser.zero_grad(set_to_none=True)
            loss = loss_of(model, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimiser.step()
            total += loss.item()
        return {"tokens": batches.tokens, "loss": total / len(batches)}

    return turn


def decode(job: Message, answer: Answer) -> Turn:
    """All batches of the setting named in the order."""

    @torch.no_grad()
    def turn(name: str) -> Message:
        setting = job["settings"][name]
        tokens = sentences = 0
        for batch in setting["batches"]:
            sources, lengths = stack(batch["sources"])
            found = answer(sources, lengths, batch["steps"], setting["beam_size"])
            check(found, len(lengths), batch["steps"])
            sentences, tokens = sentences + len(lengths), tokens + len(lengths) * batch["steps"]
        return {"sentences": sentences, "tokens": tokens}

    return turn


def check(lengths: Sequence[int], rows: int, steps: int) -> None:
    """All systems must make the same steps; they may or may not count EOS."""
    if len(lengths) != rows or not all(steps - 1 <= length <= steps + 1 for length in lengths):
        raise RuntimeError(f"outputs of {min(lengths)} to {max(lengths)} tokens, expected {steps}")
