"""A model: an encoder and a decoder, or a decoder alone, which is a language model."""

from dataclasses import replace
from typing import Self

import torch
from torch import nn

from seqloom.contracts import Decoder, Encoder
from seqloom.layers.linear import forget_copies
from seqloom.types import Batch, Memory, Output, Padded, costs


class Model(nn.Module):
    """What is trained, saved and searched."""

    def __init__(self, encoder: Encoder | None, decoder: Decoder, share_embeddings: bool = False):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        if share_embeddings:
            tables = [getattr(part, "embedding", None) for part in (encoder, decoder)]
            if not all(isinstance(table, nn.Embedding) for table in tables):
                raise ValueError("share_embeddings needs an encoder and a decoder that both embed symbols")
            ours, theirs = (tuple(table.weight.shape) for table in tables if table is not None)
            if ours != theirs:
                raise ValueError(f"share_embeddings needs tables of one shape, not {ours} and {theirs}")
            decoder.embedding = encoder.embedding  # type: ignore[union-attr]

    def train(self, mode: bool = True) -> Self:
        if mode:
            forget_copies()
        return super().train(mode)

    def encode(self, source: Padded | None, rows: int = 0, attention: bool = False) -> Memory:
        """The prepared memory of a source, or the empty one of a language model."""
        if self.encoder is None:
            memory = Memory.empty(rows, next(self.parameters()).device)
        else:
            assert source is not None, "this model reads a source"
            memory = self.encoder(self.known(source), attention)
            if self.decoder.reads_source:
                if memory.states.shape[1] != source.values.shape[1]:
                    raise ValueError("this decoder chooses from the source: it needs an encoder with a state a symbol")
                memory = replace(memory, parts={**memory.parts, "source": Memory(source.values, source.lengths)})
        return self.decoder.prepare(memory)

    def known(self, source: Padded) -> Padded:
        """The source as the encoder reads it: symbols that it has no vector for are one."""
        if self.decoder.unknown is None:
            return source
        first, unknown = self.decoder.unknown
        return Padded(torch.where(source.values < first, source.values, unknown), source.lengths)

    def forward(self, batch: Batch, attention: bool = False) -> Output:
        """Teacher forcing."""
        memory = self.encode(batch.source, batch.inputs.values.shape[0], attention)
        output: Output = self.decoder(memory, batch.inputs, batch.state, attention)
        spent = {"cost": memory.extra.get("cost", {}), "decoder": output.state}
        before, after = costs(batch.state or {}), costs(spent)
        return replace(output, costs={name: cost - before.get(name, 0) for name, cost in after.items()})
