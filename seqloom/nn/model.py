"""A model: an encoder and a decoder, or a decoder alone, which is a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import nn

from seqloom.contracts import Constraint, Decoder, Encoder, Finder, Head, Search
from seqloom.nn.ops.linear import clear_weight_cache
from seqloom.nn.teacher_forcing import teacher_force
from seqloom.types import COST, Batch, Encoded, Hypothesis, Memory, Output, Padded, costs


class Model(nn.Module, Finder):
    """What is trained, saved and searched."""

    def __init__(self, encoder: Encoder | None, decoder: Decoder, share_embeddings: bool = False):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        if share_embeddings:
            tables = [getattr(part, "embedding", None) for part in (encoder, decoder)]
            if not all(isinstance(table, nn.Embedding) for table in tables):
                raise ValueError("share_embeddings needs an encoder and a decoder that both embed tokens")
            ours, theirs = (tuple(table.weight.shape) for table in tables if table is not None)
            if ours != theirs:
                raise ValueError(f"share_embeddings needs tables of one shape, not {ours} and {theirs}")
            decoder.embedding = encoder.embedding  # type: ignore[union-attr]

    def freeze(self) -> Self:
        """For inference: no drop-out, no gradients, and weights that will not change, so that copies can be cached."""
        return self.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        if mode and not any(weight.requires_grad for weight in self.parameters()):  # it was frozen
            clear_weight_cache()
            self.requires_grad_(True)
        return super().train(mode)

    def encode(self, source: Padded | None, rows: int = 0, attention: bool = False) -> Memory:
        """The prepared memory of a source; for a language model, an empty memory of so many rows."""
        if self.encoder is None:
            memory = Memory.empty(rows, self.device)
        else:
            assert source is not None, "this model reads a source"
            memory = self.encoder(self.replace_unknown(source), attention)
            if self.decoder.reads_source:
                if memory.states.shape[1] != source.values.shape[1]:
                    raise ValueError(
                        'this decoder needs one encoder state per source token: take encoder.type = "recurrent"'
                    )
                memory = replace(memory, parts={**memory.parts, "source": Memory(source.values, source.lengths)})
        return self.decoder.prepare(memory)

    def replace_unknown(self, source: Padded) -> Padded:
        """The source as the encoder reads it: tokens without an embedding become `unk`."""
        if self.decoder.unknown is None:
            return source
        first, unknown = self.decoder.unknown
        return replace(source, values=torch.where(source.values < first, source.values, unknown))

    def forward(self, batch: Batch, attention: bool = False) -> Output:
        """Teacher forcing."""
        memory = self.encode(batch.source, batch.inputs.values.shape[0], attention)
        output: Output = self.decoder(memory, batch.inputs, batch.state, attention)
        after = costs({"encoder": {COST: memory.extra.get(COST, {})}, "decoder": output.state})
        before = costs({"decoder": batch.state or {}})  # of the batches before: these costs are paid already
        spent = {
            part: {name: cost - before.get(part, {}).get(name, 0) for name, cost in entries.items()}
            for part, entries in after.items()
        }
        return replace(output, costs=spent)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def is_head(self) -> bool:  # type: ignore[override]
        return isinstance(self.decoder, Head)

    def pad(self, encoded: Sequence[Sequence[Encoded]]) -> Padded:
        """Encoded sources as one padded batch, on the model's device."""
        own, *others = (Padded.stack(column) for column in zip(*encoded))
        if others:  # of each member of an ensemble its own
            own = replace(own, parts={str(number): each for number, each in enumerate([own, *others])})
        return own.to(self.device)

    @torch.inference_mode()
    def find(
        self,
        encoded: Sequence[Sequence[Encoded]],
        search: Search,
        prefix: np.ndarray | None = None,
        constraints: Sequence[Constraint] = (),
        attention: bool = False,
        details: bool = True,
    ) -> list[list[Hypothesis]]:
        memory = self.encode(self.pad(encoded))
        prefixes = None if prefix is None else Padded.stack([prefix] * len(encoded)).to(self.device)
        found = search(self.decoder, memory, prefixes, constraints)
        found = [self.times_in_inputs(each, len(own)) for each, (own, *_) in zip(found, encoded)]
        return [self.with_attention(memory, entry, each) for entry, each in enumerate(found)] if attention else found

    def times_in_inputs(self, found: Sequence[Hypothesis], length: int) -> list[Hypothesis]:
        """Hypotheses whose times count inputs, not encoder states; `length` is that of the source."""
        stride = self.encoder.stride if self.encoder is not None else 1
        return [
            one if one.times is None else replace(one, times=[min(time * stride, length) for time in one.times])
            for one in found
        ]

    def with_attention(self, memory: Memory, entry: int, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses of one source, with their attention to it."""
        forced = teacher_force(self.decoder, memory, entry, found, heads=False)
        return [replace(one, attention=each.alignment or None) for one, each in zip(found, forced)]
