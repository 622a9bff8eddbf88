"""Reward-augmented maximum likelihood: cross-entropy of outputs drawn near the targets, the nearer the likelier.

Norouzi et al. 2016, eq. 7: -sum q(y | target) log p(y | source), which is minimal where p = q; `edits.py` draws from q,
in the prefetching thread. For a reward that cannot be drawn from, outputs have the importance weight
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
from seqloom.errors import show
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.edits import Edit, Hamming
from seqloom.objectives.paths import token_lists
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss, Padded, positions_below


class RewardAugmented(Objective):
    """`samples` outputs per target. Count and logs: as in cross-entropy; the weights of one target's outputs sum to 1.

    By default substitutions with the authors' calibrated temperature: they are drawn exactly, and stay near the target
    with a vocabulary of fifty tokens as with fifty thousand. Temperature 0 is cross-entropy. `reward_temperature` is
    not calibrated: much above 0.01, for BLEU and 8,000 tokens, hardly any weight is left for the target itself.
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
            raise ValueError(f'distance = {show(distance)} must be "hamming" or "edit"')
        if temperature < 0 or reward_temperature <= 0:
            raise ValueError(
                f"temperature = {temperature} must be 0 or more, and reward_temperature = {reward_temperature} above 0"
            )
        if samples < 1 or (reward and samples < 2):
            raise ValueError(f"samples = {samples} must be 1 or more, and 2 or more with a reward")
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
            raise ValueError("draws outputs near a target, but running text has no targets; take another objective")

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch with outputs drawn near its targets, those of one source adjacent.  (B, U) -> (B * samples, U')

        With several samples, extra["weights"] (B * samples,) are their weights.
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
        """Equal, or by the reward; those of one target sum to 1.  (B * samples,)"""
        if self.reward is None or self.near is None:
            return np.full(len(drawn.lengths), 1 / self.samples, dtype=np.float32)
        rewards = self.reward(token_lists(drawn, None), token_lists(targets, None))
        scores = rewards / self.reward_temperature - self.near.log_probs(targets, drawn)
        scores = scores.reshape(-1, self.samples)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return (weights / weights.sum(1, keepdims=True)).ravel().astype(np.float32)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        weights = batch.extra.get("weights") if self.training else None
        return self.cross_entropy.of(model(batch), batch, weights)


def inputs_and_targets(outputs: Padded, bos: np.ndarray, eos: np.ndarray) -> tuple[Padded, Padded]:
    """Outputs as inputs, after BOS, and as targets, before EOS.  (N, U) -> (N, U + 1)"""
    targets = np.pad(outputs.values, ((0, 0), (0, 1)), constant_values=PAD)
    targets[np.arange(len(eos)), outputs.lengths] = eos
    inputs = np.concat([bos[:, None], outputs.values], 1)
    return Padded(inputs, outputs.lengths + 1), Padded(targets, outputs.lengths + 1)
