"""MIXER: cross-entropy for the first tokens of an output, expected reward for the rest, which grows during training.

Ranzato et al. 2016. The first s tokens are given; the rest is sampled from the model. Each sampled token has the loss
(r - b_t)(-log p), with r the reward of the whole output and b_t linear in the decoder's hidden vector, trained by its
squared error, without a gradient into the network. s goes from the longest output down to 0 by `delta`. Start from a
run trained by cross-entropy (`init`), or train with it for the first share `wait`, as the algorithm does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from seqloom.contracts import Decoder, Objective
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.annealing import Annealing
from seqloom.objectives.cross_entropy import CrossEntropy, cross_entropy
from seqloom.objectives.paths import Paths, follow_paths, length_limit, sample_paths
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss, Memory, Padded


class Mixer(Objective):
    """Without drop-out where tokens are sampled. Count: tokens, given or sampled. Logs: reward, the mean; given, s."""

    improves: ClassVar[str] = "outputs"
    steps: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_size: int,
        decode: Callable[[list[int]], Any] | None,
        reward: str = "edit_rate",
        reward_of: Of = "symbols",
        delta: int = 2,
        wait: float = 0.0,
        longest: int = 0,
    ):
        super().__init__()
        self.annealing = Annealing(delta, wait, longest)
        self.reward = Reward(reward, reward_of, decode)
        self.judge = nn.Linear(hidden_size, 1)
        self.cross_entropy = CrossEntropy()

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            return self.cross_entropy(model, batch, progress)
        decoder, targets = model.decoder, batch.targets
        given = self.annealing.given(progress, targets.values.shape[1])
        drawing = bool((targets.lengths > given).any())
        with without_dropout(model) if drawing else nullcontext():
            memory = model.encode(batch.source, len(targets.lengths))
            paths = self.paths(decoder, memory, targets, given)
            output = follow_paths(decoder, memory, paths.tokens)
        rewards = self.reward.of_paths(paths.tokens, targets, decoder.eos, output.hidden)  # (B,)
        advantage = rewards[:, None] - self.judge(output.hidden.detach())[:, :, 0]  # (B, U)
        positions = torch.arange(paths.tokens.values.shape[1], device=rewards.device)
        forced = paths.tokens.mask & ((positions < given) | (targets.lengths[:, None] <= given))
        weight = torch.where(paths.free, advantage.detach(), forced.to(rewards.dtype))
        learned, _, _ = cross_entropy(output, paths.tokens, weights=weight)
        total = learned + (advantage.square() * paths.free).sum()
        count = (forced | paths.free).sum()
        return Loss(total, count, {"reward": count * rewards.mean(), "given": count * given})

    @staticmethod
    def paths(decoder: Decoder, memory: Memory, targets: Padded, given: int) -> Paths:
        """The targets; those longer than the given tokens are continued by sampling."""
        nothing = torch.zeros_like(targets.values, dtype=torch.bool)
        longer = (targets.lengths > given).nonzero()[:, 0]
        if not len(longer):
            return Paths(targets, nothing)
        prefix = Padded(targets.values[longer, :given], torch.full_like(longer, given)) if given else None
        ours = memory if len(longer) == memory.rows else memory.select(longer)
        written = sample_paths(decoder, ours, 1, length_limit(targets, 1.5), prefix=prefix)
        width = max(targets.values.shape[1], written.free.shape[1])
        tokens, free = (functional.pad(each, (0, width - each.shape[1])) for each in (targets.values, nothing))
        wider = (0, width - written.free.shape[1])
        tokens = tokens.index_copy(0, longer, functional.pad(written.tokens.values, wider))
        free = free.index_copy(0, longer, functional.pad(written.free, wider))
        return Paths(Padded(tokens, targets.lengths.index_copy(0, longer, written.tokens.lengths)), free)
