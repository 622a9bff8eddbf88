"""Minimum risk training: minimise the expected loss over a set of sampled outputs. Shen et al. 2016, eq. 13-15.

The risk is sum_y Q(y) (-r(y)) with Q(y) = p(y)^sharpness / sum of p^sharpness over the target and the sampled outputs,
each counted once. Unlike REINFORCE it has an exact gradient for these outputs, and needs no baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.cross_entropy import CrossEntropy, cross_entropy
from seqloom.objectives.paths import follow_paths, length_limit, log_probs, sample_paths
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss, Padded


class MinimumRisk(Objective):
    """Without drop-out: the model sampled from is the one scored. Count: sources. Logs: reward, expected under Q."""

    improves: ClassVar[str] = "outputs"
    steps: ClassVar[bool] = True

    def __init__(
        self,
        *,
        decode: Callable[[list[int]], Any] | None,
        reward: str = "edit_rate",
        reward_of: Of = "symbols",
        samples: int = 10,
        sharpness: float = 0.005,
        with_target: bool = True,
        longest: float = 1.5,
    ):
        super().__init__()
        if samples < 1 or sharpness <= 0 or longest <= 0:
            raise ValueError(
                f"samples = {samples} must be 1 or more, sharpness = {sharpness} and longest = {longest} above 0"
            )
        self.samples, self.sharpness, self.with_target, self.longest = samples, sharpness, with_target, longest
        self.reward = Reward(reward, reward_of, decode)
        self.cross_entropy = CrossEntropy()

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            return self.cross_entropy(model, batch, progress)
        decoder = model.decoder
        with without_dropout(model):
            memory = model.encode(batch.source, batch.inputs.values.shape[0])
            paths = sample_paths(decoder, memory, self.samples, length_limit(batch.targets, self.longest)).tokens
            if self.with_target:
                paths = append_targets(paths, batch.targets)
            output = follow_paths(decoder, memory, paths)
        scored = log_probs(output, paths).sum(dim=1)  # (rows,)
        sources = len(batch.targets.lengths)
        each = len(scored) // sources
        rewards = self.reward.of_paths(paths, batch.targets, decoder.eos, scored).view(-1, each)
        shares = (self.sharpness * scored).view(-1, each).masked_fill(duplicates(paths, each), float("-inf"))
        shares = torch.softmax(shares, dim=1)
        expected = (shares * rewards).sum(dim=1, keepdim=True)
        # The gradient is sharpness sum_y Q(y) (r(y) - E r) of -log p(y): the logits need not exist all at once.
        weights = (self.sharpness * shares * (rewards - expected)).view(-1, 1).expand(paths.mask.shape)
        surrogate, _, _ = cross_entropy(output, paths, weights=weights)
        total = surrogate - surrogate.detach() - expected.sum()
        return Loss(total, torch.tensor(sources, device=scored.device), {"reward": expected.sum()})


def append_targets(paths: Padded, targets: Padded) -> Padded:
    """The paths of each source, followed by its target.  (B * n, U), (B, U') -> (B * (n + 1), max(U, U'))"""
    rows, width = len(targets.lengths), max(paths.values.shape[1], targets.values.shape[1])
    values = [
        functional.pad(each.values, (0, width - each.values.shape[1])).view(rows, -1, width)
        for each in (paths, targets)
    ]
    lengths = [each.lengths.view(rows, -1) for each in (paths, targets)]
    return Padded(torch.cat(values, dim=1).flatten(0, 1), torch.cat(lengths, dim=1).flatten())


def duplicates(paths: Padded, each: int) -> Tensor:
    """Which outputs equal an earlier one of the same source.  (B, n)"""
    rows = (paths.values * paths.mask).view(-1, each, paths.values.shape[1])
    lengths = paths.lengths.view(-1, each)
    same = (rows[:, :, None] == rows[:, None]).all(dim=3) & (lengths[:, :, None] == lengths[:, None])  # (B, n, n)
    return torch.tril(same, diagonal=-1).any(dim=2)
