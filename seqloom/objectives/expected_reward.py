"""Expected reward: sample outputs from the model, and make those with a high reward likelier.

REINFORCE (Williams 1992): the gradient of -E_p[r(y)] is the expectation of that of -(r(y) - b) log p(y) for sampled y,
for any baseline b that does not depend on y; a b near r reduces the variance. Baselines:

    learned   b_t, linear in the decoder's hidden vector at step t, without a gradient into it (Ranzato et al. 2016)
    greedy    the reward of the greedy output: self-critical (Rennie et al. 2017)
    others    the mean reward of the other outputs sampled for the same source: leave one out (Kool et al. 2019)

`likelihood` is the weight of the target's cross-entropy: GNMT's mixed objective (Wu et al. 2016, eq. 9; 0.017).
From scratch it learns next to nothing: start from a trained run with `init`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.cross_entropy import CrossEntropy, cross_entropy
from seqloom.objectives.paths import follow_paths, length_limit, sample_paths
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss

Baseline = Literal["none", "learned", "greedy", "others"]


class ExpectedReward(Objective):
    """Without drop-out: the model sampled from is the one scored. Count: sources. Logs: reward, the mean per source."""

    improves: ClassVar[str] = "outputs"
    steps: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_size: int,
        decode: Callable[[list[int]], Any] | None,
        reward: str = "edit_rate",
        reward_of: Of = "symbols",
        samples: int = 5,
        baseline: Baseline = "others",
        likelihood: float = 0.0,
        longest: float = 1.5,
    ):
        super().__init__()
        if samples < 1:
            raise ValueError(f"samples = {samples} must be 1 or more")
        if baseline == "others" and samples < 2:
            raise ValueError(f'baseline = "others" needs samples = 2 or more, not {samples}')
        if likelihood < 0 or longest <= 0:
            raise ValueError(f"likelihood = {likelihood} must be 0 or more, and longest = {longest} above 0")
        self.samples, self.baseline, self.likelihood, self.longest = samples, baseline, likelihood, longest
        self.reward = Reward(reward, reward_of, decode)
        self.judge = nn.Linear(hidden_size, 1) if baseline == "learned" else None
        self.cross_entropy = CrossEntropy()

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            return self.cross_entropy(model, batch, progress)
        decoder, count, longest = model.decoder, self.samples, length_limit(batch.targets, self.longest)
        with without_dropout(model):
            memory = model.encode(batch.source, batch.inputs.values.shape[0])
            paths = sample_paths(decoder, memory, count, longest)
            output = follow_paths(decoder, memory, paths.tokens)
            forced = decoder(memory, batch.inputs) if self.likelihood else None
            greedy = sample_paths(decoder, memory, 1, longest, likeliest=True) if self.baseline == "greedy" else None
        rewards = self.reward.of_paths(paths.tokens, batch.targets, decoder.eos, output.hidden)  # (rows,)
        sources = len(rewards) // count
        if self.judge is not None:
            expected = self.judge(output.hidden.detach())[:, :, 0]  # (rows, U)
        elif greedy is not None:
            of_greedy = self.reward.of_paths(greedy.tokens, batch.targets, decoder.eos, rewards)  # (B,)
            expected = of_greedy.repeat_interleave(count)[:, None]
        else:
            expected = baseline_of(rewards.view(sources, count), self.baseline).view(-1, 1)
        advantage = rewards[:, None] - expected  # (rows, 1) or (rows, U)
        total = cross_entropy(output, paths.tokens, weights=advantage.detach() * paths.free)[0] / count
        if self.judge is not None:
            total = total + (advantage.square() * paths.free).sum() / count
        if forced is not None:
            total = total + self.likelihood * cross_entropy(forced, batch.targets)[0]
        logs = {"reward": rewards.sum() / count}
        return Loss(total, torch.tensor(sources, device=total.device), logs)


def baseline_of(rewards: Tensor, kind: str) -> Tensor:
    """The baseline of each reward: 0, or the mean of the others of its source.  (B, n) -> (B, n)"""
    if kind == "none":
        return torch.zeros_like(rewards)
    return (rewards.sum(dim=1, keepdim=True) - rewards) / (rewards.shape[1] - 1)
