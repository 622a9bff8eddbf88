"""Emission: learn by REINFORCE at which states of the source tokens are written.

Luo, Chiu, Jaitly & Sutskever 2016, section 3. Emissions b_i are drawn; the reward of state i is R_i = b_i log p(t), t
the target's next token. The gradient of the expected sum of rewards is estimated by that of
    sum_i R_i + (sum_{j >= i} R_j - baseline_i) log pi(b_i),
without the second term where b_i was forced. The baseline is linear in the decoder's hidden vector at i, trained by its
squared error. The entropy of the emissions is added, with a weight that falls to 0: else the policy settles too soon.

With that reward alone a model may wait until it is forced to write, which happens in training only. With `bound`,
forced states have the reward log pi(b_i) too: the expected sum is then a lower bound of log p(target) (Lawson et al.
2018).
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
    """`samples` paths are drawn per target, without drop-out, so that the model sampled from is the one scored.

    In validation, -log p of the target on the path of likelier choices. Count: tokens and EOS of targets with no more
    tokens than states. Logs: reward, its sum; impossible, how many targets have more.
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
        real = path.targets.mask & possible[:, None] & (tokens != decoder.eos)  # (rows, T + 1): one per state
        emits = real & (tokens != decoder.blanks[0])
        logits = decoder.emission_logit(hidden)
        action_log_probs = functional.logsigmoid(torch.where(emits, logits, -logits))  # log pi(b)
        log_probs = decoder.token_log_probs(hidden[emits]).gather(1, tokens[emits][:, None])[:, 0]  # (N,)
        rewards = torch.zeros_like(action_log_probs).masked_scatter(emits, log_probs.to(action_log_probs.dtype))
        if self.bound:
            rewards = rewards + action_log_probs * (real & ~free)
        returns = rewards.detach().flip(1).cumsum(1).flip(1)
        advantage = returns - self.judge(hidden.detach())[:, :, 0]
        entropy = self.entropy_weight(progress) * bernoulli_entropy(logits)
        gain = rewards + (advantage.detach() * action_log_probs + entropy) * free
        total = ((advantage.square() * free).sum() - gain.sum()) / samples
        return Loss(total, count, {**logs, "reward": rewards.detach().sum() / samples})

    def entropy_weight(self, progress: float) -> float:
        """The weight of the entropy: from `entropy` down to 0."""
        return self.entropy * (1 - progress)


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Of binary variables with these logits."""
    return -(logits.sigmoid() * functional.logsigmoid(logits) + (-logits).sigmoid() * functional.logsigmoid(-logits))
