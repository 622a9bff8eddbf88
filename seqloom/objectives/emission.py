"""Emission: learn by trial at which states of a source tokens are written.

Luo, Chiu, Jaitly & Sutskever 2016, section 3. Coins b_i are drawn; the reward of state i is R_i = b_i log p(t), t the
target's next token, known without waiting for the end. The gradient of the expected sum is on average that of
    sum_i R_i + (sum_{j >= i} R_j - baseline_i) log pi(b_i),
where no choice was left without the second term. The baseline is linear in what the decoder thinks at i, taught by its
squared error. The entropy of the coins is added, ever less of it: else one way of writing is chosen too soon.

With that reward alone a model may wait until it is forced, and nobody forces it outside training. With `bound`, states
without a choice have log pi(b_i) as a reward too: the expected sum is then a lower bound of log p(target), as in Lawson
et al. 2018.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.cross_entropy import cross_entropy
from seqloom.types import Batch, Loss, Padded


class EmissionPolicyGradient(Objective):
    """Without drop-out, so that what is drawn is what is scored. `samples` ways of writing a target are drawn.

    Validated, it is -log p of the target by the likeliest coins. Count: tokens and EOS of targets with no more tokens
    than states. Logs: reward, its sum; impossible, how many targets have more.
    """

    def __init__(self, *, hidden_size: int, samples: int = 4, entropy: float = 0.1, bound: bool = True):
        super().__init__()
        if samples < 1 or entropy < 0:
            raise ValueError(f"samples = {samples} must be 1 or more, and entropy = {entropy} 0 or more")
        self.samples, self.entropy, self.bound = samples, entropy, bound
        self.judge = nn.Linear(hidden_size, 1)

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if not hasattr(decoder, "emission_path"):
            raise ValueError('trains decoders of type "emission" only')

    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        decoder, targets = model.decoder, batch.targets
        samples = self.samples if self.training else 1
        with without_dropout(model):
            memory = model.encode(batch.source, len(targets.lengths))
            owner = memory.owner(len(targets.lengths) * samples)
            repeated = Padded(targets.values[owner], targets.lengths[owner])
            path = decoder.emission_path(memory, repeated, draw=self.training)
            output = decoder(memory, path.inputs)
        possible = path.possible
        count = (targets.lengths * possible[::samples]).sum()
        logs = {"impossible": (~possible[::samples]).sum()}
        if not self.training:
            weights = possible[:, None].expand_as(path.targets.values)
            total, nll, _ = cross_entropy(output, path.targets, weights=weights)
            return Loss(total, count, {**logs, "nll": nll})
        tokens, hidden, free = path.targets.values, output.hidden, path.free
        real = path.targets.mask & possible[:, None] & (tokens != decoder.eos)  # (rows, T + 1): a state each
        emits = real & (tokens != decoder.blanks[0])
        logits = decoder.emission_logit(hidden)
        action_log_probs = functional.logsigmoid(torch.where(emits, logits, -logits))  # log pi(b)
        log_probs = decoder.token_log_probs(hidden[emits]).gather(1, tokens[emits][:, None])[:, 0]  # (N,)
        rewards = torch.zeros_like(action_log_probs).masked_scatter(emits, log_probs.to(action_log_probs.dtype))
        if self.bound:
            rewards = rewards + action_log_probs * (real & ~free)
        returns = rewards.detach().flip(1).cumsum(1).flip(1)
        advantage = returns - self.judge(hidden.detach())[:, :, 0]
        gain = (
            rewards
            + (advantage.detach() * action_log_probs + self.entropy_weight(progress) * bernoulli_entropy(logits)) * free
        )
        total = ((advantage.square() * free).sum() - gain.sum()) / samples
        return Loss(total, count, {**logs, "reward": rewards.detach().sum() / samples})

    def entropy_weight(self, progress: float) -> float:
        """How much of the coins' entropy is added."""
        return self.entropy * (1 - progress)


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Of coins with these logits."""
    return -(logits.sigmoid() * functional.logsigmoid(logits) + (-logits).sigmoid() * functional.logsigmoid(-logits))
