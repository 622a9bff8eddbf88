"""An ensemble: several models that choose every token together. A decoder of decoders.

Hansen & Salamon 1990; Sutskever, Vinyals & Le 2014, section 3.6, for translation. A member reads its own part of the
memory and keeps its own state, so recurrent networks and Transformers mix. Their probabilities are averaged by
    average="arithmetic"   p = 1/n sum_i p_i               a mixture: one confident member is enough
    average="geometric"    p = prod_i p_i^(1/n) / Z        a product of experts (Hinton 2002): any member has a veto
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder, Encoder, Head
from seqloom.errors import SeqloomError, nearest, show
from seqloom.nn.model import Model
from seqloom.types import Memory, Output, Padded, State

Average = Literal["arithmetic", "geometric"]


class Ensemble(Decoder):
    """State: {"0": the first member's, "1": ...}; so are the parts of its memory. Scores are log-probabilities."""

    def __init__(self, *, members: Sequence[Decoder], average: Average = "arithmetic"):
        super().__init__()
        if not members:
            raise SeqloomError("an ensemble has no members: give at least one run")
        if average not in get_args(Average):
            raise SeqloomError(f"average = {show(average)}: no such mean{nearest(average, get_args(Average))}")
        if any(isinstance(member, Head) for member in members):
            raise SeqloomError("a head has no steps to average, and an ensemble averages token by token: use one run")
        if any(member.features is not None for member in members):
            raise SeqloomError("an ensemble averages the probabilities of tokens, and vectors have none: use one run")
        ends = {(member.bos, member.eos) for member in members}
        if len(ends) > 1:
            raise SeqloomError(f"members of an ensemble must have one BOS and one EOS, not {sorted(ends, key=str)}")
        if any(member.blanks for member in members):  # one member would read on while another waits
            raise SeqloomError("decoders with blanks do not advance together, so they make no ensemble: use one run")
        if len({(member.chooses, member.unknown) for member in members}) > 1:
            raise SeqloomError("members of an ensemble must copy or point alike, with the same source vocabulary")
        ((self.bos, self.eos),) = ends
        self.average, self.unknown = average, members[0].unknown
        self.chooses, self.reads_source = members[0].chooses, members[0].reads_source  # type: ignore[misc]
        self.length_ratio = max(member.length_ratio for member in members)
        self.length_offset = max(member.length_offset for member in members)
        self.members = cast(Sequence[Decoder], nn.ModuleList(members))

    def prepare(self, memory: Memory) -> Memory:
        """Each part by its own member; a memory without parts is shared by all."""
        given = {"source": memory.parts["source"]} if self.reads_source else {}
        own = [memory.parts.get(str(number), memory) for number, _ in enumerate(self.members)]
        read = [replace(part, parts={**part.parts, **given}) for part in own]
        parts = {str(number): member.prepare(part) for number, (member, part) in enumerate(zip(self.members, read))}
        return replace(memory, parts=parts)

    def start(self, memory: Memory) -> State:
        return {str(number): member.start(memory.parts[str(number)]) for number, member in enumerate(self.members)}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        logits, after = [], {}
        for number, member in enumerate(self.members):
            name = str(number)
            scores, after[name] = member.step(token, state[name], memory.parts[name])
            logits.append(scores)
        return self.average_log_probs(logits), after

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        outputs = [
            member(memory.parts[str(number)], inputs, None if state is None else state[str(number)], attention)
            for number, member in enumerate(self.members)
        ]
        hiddens, projections = zip(*(output.positions for output in outputs))
        sizes = [each.shape[-1] for each in hiddens]

        def project(hidden: Tensor) -> Tensor:
            parts = hidden.split(sizes, dim=-1)
            return self.average_log_probs([projection(part) for projection, part in zip(projections, parts)])

        hidden = torch.cat(hiddens, dim=-1)  # (rows, U, all sizes)
        after = {str(number): output.state for number, output in enumerate(outputs)}
        return Output(hidden, project, after, attention_maps(outputs, memory))

    def limit(self, memory: Memory) -> Tensor:
        """The largest limit of any member.  (B,)"""
        limits = [member.limit(memory.parts[str(number)]) for number, member in enumerate(self.members)]
        return torch.stack(limits).amax(dim=0)

    def average_log_probs(self, logits: Sequence[Tensor]) -> Tensor:
        """The averaged log-probabilities.  n times (..., V) -> (..., V)"""
        sizes = sorted({each.shape[-1] for each in logits})
        if len(sizes) > 1:
            found = " and ".join(map(str, sizes))
            raise SeqloomError(f"members of an ensemble score {found} tokens; expected one vocabulary")
        log_probs = torch.stack([torch.log_softmax(each, dim=-1) for each in logits])  # (n, ..., V)
        if self.average == "arithmetic":
            return log_probs.logsumexp(dim=0) - math.log(len(logits))
        return torch.log_softmax(log_probs.mean(dim=0), dim=-1)


class MemberEncoders(Encoder):
    """One encoder per member. Their memories are parts; the memory itself has the positions they share, if they do.

    Where members encode a source differently, each gets its own part of it.
    """

    output_size = 0

    def __init__(self, *, members: Sequence[Encoder]):
        super().__init__()
        self.members = cast(Sequence[Encoder], nn.ModuleList(members))

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        own = [part for name, part in source.parts.items() if name.isdecimal()]  # others are inputs, such as sound
        sources = own or [source] * len(self.members)
        found = [encoder(each, attention) for encoder, each in zip(self.members, sources, strict=True)]
        first = found[0]
        shared = not own and all(torch.equal(part.mask, first.mask) for part in found)
        whole = (
            Memory(first.states[:, :, :0], first.lengths) if shared else Memory.empty(first.rows, first.states.device)
        )
        return replace(whole, parts={str(number): part for number, part in enumerate(found)})


def ensemble_of(models: Sequence[Model], average: Average = "arithmetic") -> Model:
    """Several models as one. They share the target vocabulary; all read a source, or none does."""
    encoders = [model.encoder for model in models if model.encoder is not None]
    if encoders and len(encoders) < len(models):
        raise SeqloomError("language models and models that read a source make no ensemble: use runs of one kind")
    decoder = Ensemble(members=[model.decoder for model in models], average=average)
    return Model(MemberEncoders(members=encoders) if encoders else None, decoder)


def attention_maps(outputs: Sequence[Output], memory: Memory) -> dict[str, Tensor]:
    """The attention of each member that attends, averaged over its layers and heads: one layer per member."""
    maps: dict[str, Tensor] = {}
    for name in ("source", "self"):
        found = [output.attention[name].mean((1, 2), keepdim=True) for output in outputs if name in output.attention]
        if found and name == "source" and memory.states.shape[1] == 0:
            raise SeqloomError(
                "these runs encode a source into different positions, so their attention cannot be averaged: "
                "leave attention and coverage_penalty out, or use one run"
            )
        if found:
            maps[name] = torch.cat(found, dim=1)  # (rows, members, 1, U, T)
    return maps
