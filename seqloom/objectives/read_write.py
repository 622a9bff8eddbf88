"""Read and write: train an agent's decisions by the quality and the delay of its output. Gu et al. 2017, section 4.

The agent samples its decisions, and its translator writes the likeliest token where it decides to write. The reward of
a step is the sum of

    the change in quality by the token written: smoothed BLEU of the tokens so far, or another `reward`
    alpha (sgn(c - c*) + 1)           c: inputs read in a row    `waits` = c*, `waits_weight` = alpha <= 0
    beta max(d - d*, 0) at the end    d: average proportion      `proportion` = d*, `proportion_weight` = beta <= 0

and decisions are trained by REINFORCE (Williams 1992): the rewards that follow, less a baseline linear in the policy's
features. `entropy` is the weight of the policy's entropy. Only the policy learns: load a translator with `init`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.errors import SeqloomError
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.paths import length_limit, token_lists
from seqloom.objectives.reward import Of, Reward
from seqloom.types import Batch, Loss, Memory, Padded


@dataclass(frozen=True)
class Episodes:
    """The decisions of each row, up to S of them until its end, and the tokens written."""

    features: Tensor  # (rows, S, D)
    ends: Tensor  # (rows, S): log p(EOS)
    wrote: Tensor  # (rows, S): whether it wrote, not read
    free: Tensor  # (rows, S): whether both were possible
    live: Tensor  # (rows, S): whether the row had not ended yet
    times: Tensor  # (rows, S): how many states had been read
    written: Tensor  # (rows, S): how many tokens had been written before
    tokens: Padded  # (rows, U): without EOS


class ReadWrite(Objective):
    """Without drop-out. Count: sources. Logs: reward, quality and proportion, the means per source.

    In validation, minus the reward of the likeliest decisions.
    """

    trains = "decoder.policy."

    def __init__(
        self,
        *,
        hidden_size: int,
        decode: Callable[[list[int]], Any] | None,
        reward: str = "bleu",
        reward_of: Of = "symbols",
        samples: int = 5,
        waits: int = 3,
        waits_weight: float = -0.025,
        proportion: float = 0.6,
        proportion_weight: float = -1.0,
        entropy: float = 0.01,
        longest: float = 1.5,
    ):
        super().__init__()
        if samples < 1 or waits < 1 or longest <= 0 or entropy < 0:
            raise ValueError(
                f"samples = {samples} and waits = {waits} must be 1 or more, longest = {longest} above 0, "
                f"entropy = {entropy} 0 or more"
            )
        if waits_weight > 0 or proportion_weight > 0:
            raise ValueError(
                f"waits_weight = {waits_weight} and proportion_weight = {proportion_weight} are penalties for waiting: "
                "they must be 0 or less"
            )
        self.samples, self.entropy, self.longest = samples, entropy, longest
        self.waits, self.waits_weight = waits, waits_weight
        self.proportion, self.proportion_weight = proportion, proportion_weight
        self.reward = Reward(reward, reward_of, decode)
        self.judge = nn.Linear(hidden_size, 1)

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if not hasattr(decoder, "policy_log_probs"):
            raise ValueError('trains decoders of type "agent" only')

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        agent: Any = model.decoder
        if model.encoder is None or not model.encoder.streams:
            raise SeqloomError(
                'objective.type = "read_write": an agent must not see inputs before it reads them; '
                "take an encoder that reads one way: encoder.bidirectional = false"
            )
        count = self.samples if self.training else 1
        with torch.no_grad(), without_dropout(model):
            memory = model.encode(batch.source)
            memory = memory.select(memory.owner(memory.rows * count))  # the rows of a source read on independently
            longest = length_limit(batch.targets, self.longest)
            episodes = run_episodes(agent, memory, longest, likeliest=not self.training)
            quality, delays, proportions = self.score(episodes, memory, batch.targets, agent.eos)
        sources = torch.tensor(len(batch.targets.lengths), device=quality.device)
        reward = quality[:, -1] + delays.sum(1)  # (rows,)
        logs = {"reward": reward, "quality": quality[:, -1], "proportion": proportions}
        logs = {name: values.sum() / count for name, values in logs.items()}
        if not self.training:
            return Loss(-reward.sum(), sources, logs)
        # The return of a decision: the quality still to be gained, and the delays from here on.
        returns = quality[:, -1:] - quality.gather(1, episodes.written) + delays.flip(1).cumsum(1).flip(1)  # (rows, S)
        advantage = returns - self.judge(episodes.features)[:, :, 0]
        reads, writes = decision_log_probs(agent, episodes.features, episodes.ends)
        action_log_probs = torch.where(episodes.wrote, writes, reads)
        entropy = -(reads * reads.exp() + writes * writes.exp())
        learned = -advantage.detach() * action_log_probs - self.entropy * entropy + advantage.square()
        return Loss(learned.masked_fill(~episodes.free, 0).sum() / count, sources, logs)

    def score(self, episodes: Episodes, memory: Memory, targets: Padded, eos: int) -> tuple[Tensor, Tensor, Tensor]:
        """The quality after 0 .. U tokens (rows, U + 1), rewards of delays (rows, S), average proportions (rows,)."""
        rows, width = episodes.tokens.values.shape
        found, wanted = token_lists(episodes.tokens, None), token_lists(targets, eos)
        references = [wanted[row * len(wanted) // rows] for row in range(rows)]
        prefixes = [each[:count] for each in found for count in range(width + 1)]  # beyond its end, the whole output
        values = self.reward(prefixes, [each for each in references for _ in range(width + 1)])
        quality = torch.as_tensor(values, device=episodes.ends.device).to(episodes.ends.dtype).view(rows, width + 1)
        in_a_row = torch.zeros_like(memory.lengths) + 1  # the first state is read before the first decision
        costs = []
        for wrote in episodes.wrote.unbind(1):
            in_a_row = torch.where(wrote, 0, in_a_row + 1)
            costs.append(torch.sign(in_a_row - self.waits) + 1)
        delays = self.waits_weight * torch.stack(costs, dim=1).to(quality.dtype) * episodes.live
        visible = episodes.wrote & episodes.live & (episodes.written < episodes.tokens.lengths[:, None])  # not EOS
        sums, lengths = (episodes.times * visible).sum(1).to(quality.dtype), episodes.tokens.lengths
        proportions = torch.where(lengths > 0, sums / (lengths.clamp(min=1) * memory.lengths), 1.0)
        too_late = self.proportion_weight * (proportions - self.proportion).clamp(min=0)
        final = episodes.live.sum(1) - 1  # each row's last step
        return quality, delays.scatter_add(1, final[:, None], too_late[:, None]), proportions


def decision_log_probs(agent: Any, features: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities of reading, and of writing any token but EOS, where both are possible."""
    reads, writes = agent.policy_log_probs(features, ends)
    return reads, writes + torch.log1p(-ends.clamp(max=-1e-6).exp())  # clamped: log(1 - p(EOS)) must stay finite


def draw_bernoulli(chance: Tensor) -> Tensor:
    """True with these probabilities.  (rows,)"""
    return torch.rand_like(chance) < chance


def run_episodes(agent: Any, memory: Memory, longest: int, likeliest: bool = False) -> Episodes:
    """One episode per row of the memory, of at most `longest` tokens; decisions are sampled, or the likeliest."""
    state, token = agent.start(memory), torch.full_like(memory.lengths, agent.bos)
    over = torch.zeros_like(token, dtype=torch.bool)
    steps, tokens = [], []
    while not bool(over.all()):
        seen = agent.observe(token, state, memory)
        state, written = seen.state, seen.state["written"]
        _, writes = decision_log_probs(agent, seen.features, seen.end)
        free = ~seen.all_read & ~over
        wrote = seen.all_read | (writes.exp() > 0.5 if likeliest else draw_bernoulli(writes.exp()))
        no_end = seen.log_probs.index_fill(1, token.new_tensor([agent.eos]), float("-inf"))
        candidate = torch.where(seen.all_read[:, None], seen.log_probs, no_end).argmax(1)
        times = torch.minimum(state["frame"] + 1, memory.lengths)
        steps.append((seen.features, seen.end, wrote, free, ~over, times, written))
        token = torch.where(wrote, candidate, agent.blanks[0])
        ends = wrote & ((candidate == agent.eos) | (written + 1 == longest))
        tokens.append(torch.where(wrote & ~over & (candidate != agent.eos), candidate, -1))
        over = over | ends
    features, ends, wrote, free, live, times, written = (torch.stack(each, dim=1) for each in zip(*steps))
    rows = [torch.tensor([each for each in row if each >= 0]) for row in torch.stack(tokens, dim=1).tolist()]
    padded = Padded.stack([row.to(memory.lengths) for row in rows])
    written = torch.minimum(written, padded.lengths[:, None])
    return Episodes(features, ends, wrote, free, live, times, written, padded)
