"""The noisy channel: a decoder whose outputs must explain their source, too. A decoder around a decoder.

Yu, Blunsom, Dyer, Grefenstette & Kocisky 2017. The best output y of a source x is the one with the largest
    log q(y | x) + lm_weight * log p(y) + weight * log p(x | y) + length_bonus * |y|
which is theirs divided by the weight of q. Here q is a decoder with a blank, and brings the language model with
it (`fusion.py`). The channel p(x | y) is a segment-to-segment model (`decoders/ssnt.py`) trained the other way round,
whose encoder reads one way, so that y can grow. It knows what beginnings are worth, i tokens read and j written:
    p(x_1 .. x_i | y_1 .. y_j) = sum over k <= j of alpha(i, k), the chance that x_i is written at y_k
and of a whole one p(x | y). Before anything is written, each token of x is a guess among all that the channel knows.
Only the `proposals` best tokens of each row by q are looked at in this way, beside silence and the end.
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
from seqloom.nn.ops.lattice import exact
from seqloom.types import Memory, Output, Padded, State, flatten, hold, select

NAME = "channel"
NEVER = float("-inf")
UNEXPLAINED = -1e4  # log-probability of a source given an empty output: finite, so that such outputs have a rank


class NoisyChannel(Decoder):
    """State: the decoder's, and "channel": log-probabilities of beginnings of x, given what the row has written.

    "partial" (rows, I + 1): of so many tokens of x; "passed" (rows, I + 1): of these, and to go on with no more to the
    next of y; "whole" (rows,): of x and its end; "encoder": the channel's state; "read" (rows,): how many tokens of x
    are paid for. A row that has read one pays with whatever it does next: rows that are compared have paid for as many.
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
        """Where the channel's tokens are in another order, `tokens` has its number of each that the decoder writes,
        and `sources` of each that it reads."""
        super().__init__()
        if not 0 <= weight < float("inf"):
            raise SeqloomError(f"channel_weight = {weight}: expected a number of 0 or more")
        if not math.isfinite(length_bonus) or proposals < 1:
            raise SeqloomError(
                f"length_bonus = {length_bonus} must be a number, and proposals = {proposals} at least 1"
            )
        if not decoder.blanks or decoder.eos is None:
            raise SeqloomError("channel: this run reads all before it writes; give the channel to `rescore` instead")
        if not isinstance(channel.decoder, SSNT):
            raise SeqloomError('channel: expected a run with decoder.type = "ssnt"; give others to `rescore`')
        if channel.encoder is None or not answers_at_once(channel.encoder):
            raise SeqloomError(
                "channel: its encoder must answer each token at once, as outputs grow: "
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
        """What the channel has written before each token of the source is computed here, once."""
        source, channel = memory.parts["source"], self.channel
        symbols = source.states if self.sources is None else self.sources[source.states]  # (B, I)
        inputs = Padded(torch.cat([torch.full_like(symbols[:, :1], channel.bos), symbols], 1), source.lengths + 1)
        targets = torch.cat([symbols, symbols[:, :1]], 1).scatter(1, source.lengths[:, None], channel.eos)
        written = channel.prediction(inputs)  # (B, I + 1, size)
        extra = {"queries": channel.query(written), "wrote": channel.wrote(written), "targets": targets}
        memory = self.decoder.prepare(memory)
        return replace(memory, parts={**memory.parts, NAME: Memory(written, inputs.lengths, extra=extra)})

    def start(self, memory: Memory) -> State:
        part = memory.parts[NAME]
        nothing = torch.full_like(part.mask, NEVER, dtype=exact(part.states))
        nothing[:, 0] = 0
        begun = {
            "partial": nothing,
            "passed": nothing,
            "whole": torch.full_like(nothing[:, 0], UNEXPLAINED),
            "encoder": self.encoder.start(part.rows),
            "read": torch.zeros_like(part.lengths),
        }
        return {**self.decoder.start(memory), NAME: begun}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        if not memory.closed:
            raise SeqloomError("channel: needs the whole source, to know how outputs explain it; use `predict`")
        scores, after = self.decoder.step(token, without(state), memory)
        channel = state[NAME]
        if not self.weight:
            return scores + self.bonus(scores), {**after, NAME: channel}
        spoken = (token != self.bos) & ~torch.isin(token, torch.tensor(self.blanks, device=token.device))
        if maybe_any(spoken):
            channel = hold(~spoken, self.followed(token, channel, memory), channel)
        read = self.decoder.states_read(after, memory)
        assert read is not None, "a decoder with blanks knows how much it has read"
        charged, due = self.explained(channel, channel["read"]), self.explained(channel, read)
        likely = scores.index_fill(1, torch.tensor([*self.blanks, self.eos], device=token.device), NEVER)
        best = likely.topk(min(self.proposals, scores.shape[1]), dim=1).indices  # (rows, K)
        each = torch.arange(len(token), device=token.device).repeat_interleave(best.shape[1])
        proposed = self.followed(best.flatten(), select(channel, each), memory)
        worth = torch.full_like(scores, NEVER, dtype=due.dtype)
        worth = worth.scatter(1, best, self.explained(proposed, read[each]).view(best.shape))
        worth[:, self.blanks], worth[:, self.eos] = due[:, None], channel["whole"]
        changes = self.weight * (worth - charged[:, None]).to(scores)
        return scores + changes + self.bonus(scores), {**after, NAME: {**channel, "read": read}}

    def bonus(self, scores: Tensor) -> Tensor:
        """For each token that is part of the output.  (V,)"""
        bonus = torch.full_like(scores[0], self.length_bonus)
        bonus[[*self.blanks, self.eos]] = 0
        return bonus

    def followed(self, token: Tensor, channel: State, memory: Memory) -> State:
        """The state of rows, n a source, that have written one more token.  (rows,)"""
        part = memory.parts[NAME]
        heard = token if self.tokens is None else self.tokens[token]
        chunk = Padded(heard[:, None], torch.ones_like(token))
        one, encoder = self.encoder.extend(chunk, channel["encoder"], closed=False)
        # To the channel all tokens that may follow in a source are so many places of one text.
        places = self.channel.prepare(one).extra
        keys, encoded = (places[name].view(part.rows, -1, places[name].shape[2]) for name in ("keys", "encoded"))
        steps = self.channel.steps(keys, encoded, **part.extra)
        shift, emit = (each.flatten(0, 1).to(exact(each)) for each in steps)  # (rows, I + 1)
        owner = part.owner(len(token))
        emit = emit.masked_fill(~part.mask[owner], 0)
        # a(u) = passed(u) + a(u - 1) emit(u - 1), for all u at once.
        product = emit.cumsum(1) - emit
        stands = product + (channel["passed"] - product).logcumsumexp(1)
        writes = stands + emit
        so_far = torch.cat([torch.full_like(writes[:, :1], NEVER), writes[:, :-1]], 1)
        return {
            "passed": stands + shift,
            "partial": channel["partial"].logaddexp(so_far),
            "whole": writes.gather(1, part.lengths[owner, None] - 1)[:, 0],
            "encoder": encoder,
            "read": channel["read"],
        }

    def explained(self, channel: State, count: Tensor) -> Tensor:
        """log p(x_1 .. x_count | what the row has written); where that is nothing, a guess.  (rows,)"""
        known: Tensor = channel["partial"].gather(1, count[:, None])[:, 0]
        return known.where(known > NEVER, -count.to(known) * math.log(self.channel.hidden_size))

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        return Stepper.__call__(self, memory, inputs, state, attention)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """What each output is worth to a search, which is no probability.  (rows,)"""
        worth = self.decoder.log_prob(memory, inputs, targets) + self.length_bonus * (targets.lengths - 1)
        part = memory.parts[NAME]
        owner = part.owner(len(targets.lengths))
        written = targets.values if self.tokens is None else self.tokens[targets.values]
        read = self.channel.prepare(self.encoder(Padded(written, targets.lengths)))  # EOS is read, too, and left out
        read = replace(read, lengths=targets.lengths - 1)
        sources = Padded(part.extra["targets"][owner], part.lengths[owner])
        before = torch.cat([torch.full_like(owner[:, None], self.channel.bos), sources.values[:, :-1]], 1)
        explained = self.channel.log_prob(read, Padded(before, sources.lengths), sources)
        return worth + self.weight * explained.clamp_min(UNEXPLAINED)

    def limit(self, memory: Memory) -> Tensor:
        limit: Tensor = self.decoder.limit(memory)
        return limit

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        return self.decoder.states_read(without(state), memory)


def answers_at_once(encoder: Encoder) -> bool:
    """Whether it has a state for each token as it comes, and remembers as much of every text."""
    if not encoder.streams:
        return False
    one, begun = torch.ones(1, 1, dtype=torch.long, device=next(encoder.parameters()).device), encoder.start(1)
    with torch.no_grad():
        memory, after = encoder.extend(Padded(one, one[0]), begun, closed=False)
    shapes = [[value.shape for value in flatten(state).values()] for state in (begun, after)]
    return memory.states.shape[1] == 1 and shapes[0] == shapes[1]


def without(state: State) -> State:
    """All but the channel's."""
    return {name: entry for name, entry in state.items() if name != NAME}
