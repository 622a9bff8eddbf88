"""Reward-augmented maximum likelihood: cross-entropy of outputs drawn near the targets, the likelier the nearer.

Norouzi et al. 2016, eq. 7: -sum q(y | target) log p(y | source), which is least where p is q; q is drawn from in
`edits.py`, beside the training. For a reward that cannot be drawn from, what was drawn counts with the weight
exp(reward / temperature) / q(y), normalised over the outputs of one target (section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.data.special_tokens import PAD, SPECIAL
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.edits import Edit, Hamming
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss, Padded, positions_below


class RewardAugmented(Objective):
    """`samples` outputs a target. Count and logs: as in cross-entropy, those of one target adding up to one.

    By default substitutions with the authors' calibrated temperature: they are drawn exactly, and stay near the target
    in a vocabulary of fifty tokens as of fifty thousand. Temperature 0 is cross-entropy. That of a reward is not
    calibrated: much above 0.01, for BLEU and 8,000 tokens, hardly any weight is left to the target itself.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        decode: Callable[[list[int]], Any] | None,
        distance: Literal["hamming", "edit"] = "hamming",
        temperature: float = 0.85,
        calibrated: bool = True,
        samples: int = 1,
        reward: str = "",
        reward_of: Of = "symbols",
        reward_temperature: float = 0.01,
        label_smoothing: float = 0.0,
    ):
        super().__init__()
        if distance not in ("hamming", "edit"):
            raise ValueError(f'distance = "{distance}" must be "hamming" or "edit"')
        if temperature < 0 or reward_temperature <= 0:
            raise ValueError(
                f"temperature = {temperature} must not be negative, reward_temperature = {reward_temperature} positive"
            )
        if samples < 1 or (reward and samples < 2):
            raise ValueError(f"samples = {samples} must be at least 1, and 2 with a reward, whose weights compare them")
        if reward and not temperature:
            raise ValueError("temperature = 0 draws nothing for the reward to weigh; take 0.85, or no reward")
        real_tokens = vocabulary - len(SPECIAL)
        if real_tokens < 2:
            raise ValueError(f"a vocabulary of {real_tokens} real tokens has nothing to substitute, expected 2 or more")
        near = Hamming if distance == "hamming" else Edit
        self.near = near(real_tokens, temperature, calibrated) if temperature else None
        self.reward = Reward(reward, reward_of, decode) if reward else None
        self.samples, self.reward_temperature = samples, reward_temperature
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if task.running:
            raise ValueError("draws outputs near a target, and running text has no single targets: take pairs or lines")

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch with outputs drawn for its targets, those of one source together.  (B, U) -> (B * samples, U')

        With more than one, their weights are extra["weights"] (B * samples,).
        """
        if self.near is None:
            return batch
        inputs, targets, sizes = map(as_numpy, (batch.inputs.values, batch.targets.values, batch.targets.lengths))
        lengths = sizes - 1  # without EOS
        rows = np.repeat(np.arange(len(lengths)), self.samples)
        tokens = np.where(positions_below(lengths, int(lengths.max())), targets[:, : lengths.max()], PAD)
        near_to = Padded(tokens[rows], lengths[rows])
        drawn = self.near.draw(near_to, chance)
        extra = batch.extra if self.samples == 1 else {**batch.extra, "weights": self.weights(near_to, drawn)}
        given, wanted = inputs_and_targets(drawn, inputs[rows, 0], targets[rows, lengths[rows]])
        return replace(batch, inputs=given, targets=wanted, extra=extra).to("cpu")

    def weights(self, targets: Padded, drawn: Padded) -> np.ndarray:
        """Equal, or by a reward; those of one target add up to one.  (B * samples,)"""
        if self.reward is None or self.near is None:
            return np.full(len(drawn.lengths), 1 / self.samples, dtype=np.float32)
        rewards = self.reward(lists(drawn), lists(targets))
        scores = rewards / self.reward_temperature - self.near.log_probs(targets, drawn)
        scores = scores.reshape(-1, self.samples)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return (weights / weights.sum(1, keepdims=True)).ravel().astype(np.float32)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        weights = batch.extra.get("weights") if self.training else None
        return self.cross_entropy.of(model(batch), batch, weights)


def inputs_and_targets(outputs: Padded, begins: np.ndarray, ends: np.ndarray) -> tuple[Padded, Padded]:
    """Outputs as inputs, after BOS, and as targets, before EOS.  (N, U) -> (N, U + 1)"""
    targets = np.pad(outputs.values, ((0, 0), (0, 1)), constant_values=PAD)
    targets[np.arange(len(ends)), outputs.lengths] = ends
    inputs = np.concat([begins[:, None], outputs.values], 1)
    return Padded(inputs, outputs.lengths + 1), Padded(targets, outputs.lengths + 1)


def lists(outputs: Padded) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(outputs.values, outputs.lengths)]
