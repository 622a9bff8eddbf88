"""The noisy channel: outputs are also scored by how well they predict their source. A decoder around a decoder.

Yu, Blunsom, Dyer, Grefenstette & Kocisky 2017. The best output y of a source x is the one with the largest
    log q(y | x) + lm_weight * log p(y) + weight * log p(x | y) + length_bonus * |y|
which is theirs divided by the weight of q. Here q is a decoder with a blank, possibly with a language model
(`shallow_fusion.py`). The channel p(x | y) is a segment-to-segment model (`decoders/ssnt.py`) trained from target to
source, whose encoder reads one way, so that y can grow. It scores prefixes, of i source tokens given j target tokens:
    p(x_1 .. x_i | y_1 .. y_j) = sum over k <= j of alpha(i, k), the probability that x_i is written at y_k
and in the end the whole, p(x | y). Before anything is written, each token of x has the uniform probability 1 / V.
Only the `proposals` best tokens of each row by q are scored by the channel, beside the blank and EOS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from seqloom.arrays import maybe_any
from seqloom.contracts import Decoder, Encoder, Stepper
from seqloom.errors import SeqloomError
from seqloom.nn.decoders.ssnt import SSNT
from seqloom.nn.model import Model
from seqloom.nn.ops.lattice import accumulation_dtype
from seqloom.types import Memory, Output, Padded, State, flatten, hold, select

KEY = "channel"
IMPOSSIBLE = float("-inf")
UNEXPLAINED = -1e4  # log-probability of a source given an empty output: finite, so that such outputs have a rank


class NoisyChannel(Decoder):
    """State: the decoder's, and "channel": log-probabilities of prefixes of x, given what the row has written.

    "partial" (rows, I + 1): of the first i tokens of x; "passed" (rows, I + 1): of these, and to shift to the next
    token of y; "whole" (rows,): of x and its EOS; "encoder": the channel's encoder state; "read" (rows,): how many
    tokens of x are in the row's score so far. A token of x is scored with the first step after it was read, so that
    rows at the same frame have the same tokens of x in their scores.
    """

    scores = "log_probs"
    reads_source = True

    tokens: Tensor | None
    sources: Tensor | None

    def __init__(
        self,
        *,
        decoder: Decoder,
        channel: Model,
        weight: float,
        length_bonus: float = 0.0,
        proposals: int = 10,
        tokens: Sequence[int] | None = None,
        sources: Sequence[int] | None = None,
    ):
        """`tokens` and `sources` map what the decoder writes and reads to the channel's tokens, if these differ."""
        super().__init__()
        if not 0 <= weight <= 1000:
            raise SeqloomError(f"channel_weight = {weight}: expected a number from 0 to 1,000")
        if not abs(length_bonus) <= 1000 or not 1 <= proposals <= 10_000:
            raise SeqloomError(
                f"length_bonus = {length_bonus}: expected at most 1,000; proposals = {proposals}: expected 1 to 10,000"
            )
        if not decoder.blanks or decoder.eos is None:
            raise SeqloomError("channel: this run reads all before it writes; give the channel to `rescore` instead")
        if not isinstance(channel.decoder, SSNT):
            raise SeqloomError('channel: expected a run with decoder.type = "ssnt"; give others to `rescore`')
        if channel.encoder is None or not encodes_each_token(channel.encoder):
            raise SeqloomError(
                "channel: its encoder must give one state per token as outputs grow: "
                "train with encoder.bidirectional = false, or a convolution"
            )
        self.decoder, self.channel, self.encoder = decoder, channel.decoder, channel.encoder
        self.weight, self.length_bonus, self.proposals = weight, length_bonus, proposals
        self.register_buffer("tokens", None if tokens is None else torch.tensor(tokens), persistent=False)
        self.register_buffer("sources", None if sources is None else torch.tensor(sources), persistent=False)
        self.bos, self.eos, self.blanks = decoder.bos, decoder.eos, decoder.blanks
        self.advances = decoder.advances
        self.may_rise = weight > 0 or length_bonus > 0
        self.length_ratio, self.length_offset = decoder.length_ratio, decoder.length_offset

    def prepare(self, memory: Memory) -> Memory:
        """The channel's prediction network over the source, computed once."""
        source, channel = memory.parts["source"], self.channel
        tokens = source.states if self.sources is None else self.sources[source.states]  # (B, I)
        inputs = Padded(torch.cat([torch.full_like(tokens[:, :1], channel.bos), tokens], 1), source.lengths + 1)
        targets = torch.cat([tokens, tokens[:, :1]], 1).scatter(1, source.lengths[:, None], channel.eos)
        written = channel.prediction(inputs)  # (B, I + 1, size)
        extra = {"queries": channel.query(written), "wrote": channel.wrote(written), "targets": targets}
        memory = self.decoder.prepare(memory)
        return replace(memory, parts={**memory.parts, KEY: Memory(written, inputs.lengths, extra=extra)})

    def start(self, memory: Memory) -> State:
        part = memory.parts[KEY]
        nothing = torch.full_like(part.mask, IMPOSSIBLE, dtype=accumulation_dtype(part.states))
        nothing[:, 0] = 0
        channel = {
            "partial": nothing,
            "passed": nothing,
            "whole": torch.full_like(nothing[:, 0], UNEXPLAINED),
            "encoder": self.encoder.start(part.rows),
            "read": torch.zeros_like(part.lengths),
        }
        return {**self.decoder.start(memory), KEY: channel}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        if not memory.closed:
            raise SeqloomError("channel: it scores the whole source, so it cannot stream; use `predict`")
        scores, after = self.decoder.step(token, decoder_state(state), memory)
        channel = state[KEY]
        if not self.weight:
            return scores + self.bonus(scores), {**after, KEY: channel}
        visible = (token != self.bos) & ~torch.isin(token, torch.tensor(self.blanks, device=token.device))
        if maybe_any(visible):
            channel = hold(~visible, self.advance_channel(token, channel, memory), channel)
        read = self.decoder.states_read(after, memory)
        assert read is not None, "a decoder with blanks knows how many states it has read"
        charged, due = self.prefix_log_prob(channel, channel["read"]), self.prefix_log_prob(channel, read)
        likely = scores.index_fill(1, torch.tensor([*self.blanks, self.eos], device=token.device), IMPOSSIBLE)
        best = likely.topk(min(self.proposals, scores.shape[1]), dim=1).indices  # (rows, K)
        each = torch.arange(len(token), device=token.device).repeat_interleave(best.shape[1])
        proposed = self.advance_channel(best.flatten(), select(channel, each), memory)
        channel_scores = torch.full_like(scores, IMPOSSIBLE, dtype=due.dtype)
        channel_scores = channel_scores.scatter(1, best, self.prefix_log_prob(proposed, read[each]).view(best.shape))
        channel_scores[:, self.blanks], channel_scores[:, self.eos] = due[:, None], channel["whole"]
        changes = self.weight * (channel_scores - charged[:, None]).to(scores)
        return scores + changes + self.bonus(scores), {**after, KEY: {**channel, "read": read}}

    def bonus(self, scores: Tensor) -> Tensor:
        """`length_bonus` for each token that is part of the output, 0 for blanks and EOS.  (V,)"""
        bonus = torch.full_like(scores[0], self.length_bonus)
        bonus[[*self.blanks, self.eos]] = 0
        return bonus

    def advance_channel(self, token: Tensor, channel: State, memory: Memory) -> State:
        """The channel's state after one more token of each row.  (rows,)"""
        part = memory.parts[KEY]
        read = token if self.tokens is None else self.tokens[token]
        chunk = Padded(read[:, None], torch.ones_like(token))
        one, encoder = self.encoder.extend(chunk, channel["encoder"], closed=False)
        # The channel reads the rows of one source as positions of one text.
        prepared = self.channel.prepare(one).extra
        keys, encoded = (prepared[name].view(part.rows, -1, prepared[name].shape[2]) for name in ("keys", "encoded"))
        steps = self.channel.step_log_probs(keys, encoded, **part.extra)
        shift, emit = (each.flatten(0, 1).to(accumulation_dtype(each)) for each in steps)  # (rows, I + 1)
        owner = part.owner(len(token))
        emit = emit.masked_fill(~part.mask[owner], 0)
        # a(u) = passed(u) + a(u - 1) emit(u - 1), for all u at once.
        product = emit.cumsum(1) - emit
        arrived = product + (channel["passed"] - product).logcumsumexp(1)
        writes = arrived + emit
        so_far = torch.cat([torch.full_like(writes[:, :1], IMPOSSIBLE), writes[:, :-1]], 1)
        return {
            "passed": arrived + shift,
            "partial": channel["partial"].logaddexp(so_far),
            "whole": writes.gather(1, part.lengths[owner, None] - 1)[:, 0],
            "encoder": encoder,
            "read": channel["read"],
        }

    def prefix_log_prob(self, channel: State, count: Tensor) -> Tensor:
        """log p(x_1 .. x_count | the tokens written); uniform where there are none yet.  (rows,)"""
        known: Tensor = channel["partial"].gather(1, count[:, None])[:, 0]
        return known.where(known > IMPOSSIBLE, -count.to(known) * math.log(self.channel.hidden_size))

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        return Stepper.__call__(self, memory, inputs, state, attention)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The score of each output in a search; not a probability.  (rows,)"""
        total = self.decoder.log_prob(memory, inputs, targets) + self.length_bonus * (targets.lengths - 1)
        part = memory.parts[KEY]
        owner = part.owner(len(targets.lengths))
        written = targets.values if self.tokens is None else self.tokens[targets.values]
        read = self.channel.prepare(self.encoder(Padded(written, targets.lengths)))
        read = replace(read, lengths=targets.lengths - 1)  # without EOS
        sources = Padded(part.extra["targets"][owner], part.lengths[owner])
        before = torch.cat([torch.full_like(owner[:, None], self.channel.bos), sources.values[:, :-1]], 1)
        channel_log_prob = self.channel.log_prob(read, Padded(before, sources.lengths), sources)
        return total + self.weight * channel_log_prob.clamp_min(UNEXPLAINED)

    def limit(self, memory: Memory) -> Tensor:
        limit: Tensor = self.decoder.limit(memory)
        return limit

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        return self.decoder.states_read(decoder_state(state), memory)


def encodes_each_token(encoder: Encoder) -> bool:
    """Whether it streams one state per token, with a state of fixed size."""
    if not encoder.streams:
        return False
    one, start = torch.ones(1, 1, dtype=torch.long, device=next(encoder.parameters()).device), encoder.start(1)
    with torch.no_grad():
        memory, after = encoder.extend(Padded(one, one[0]), start, closed=False)
    shapes = [[value.shape for value in flatten(state).values()] for state in (start, after)]
    return memory.states.shape[1] == 1 and shapes[0] == shapes[1]


def decoder_state(state: State) -> State:
    """The state without the channel's entry."""
    return {name: entry for name, entry in state.items() if name != KEY}
