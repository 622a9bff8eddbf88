"""Bare loops over torch.nn, as written with care for one experiment.

Transformer: nn.Transformer, pre-norm, tied embeddings, logits without padding (`everywhere`: at all positions, as in
most loops), nn.functional.cross_entropy, fused Adam. LSTM: two nn.LSTM over padded rows, the backward one over rows
reversed within their lengths; Luong attention over all steps at once, or step by step with input feeding. Batches are
the same as those of all others.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import LABEL_SMOOTHING, PAD, Shape
from bench.workers import loop


def positions(length: int, size: int) -> Tensor:
    """Sines and cosines.  (length, size)"""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, size, 2) * (-math.log(10000) / size))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class BareTransformer(nn.Module):
    def __init__(self, shape: Shape, vocabulary: int):
        super().__init__()
        size, layers = shape["size"], shape["layers"]
        self.embedding = nn.Embedding(vocabulary, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        self.dropout = nn.Dropout(shape["dropout"])
        self.transformer = nn.Transformer(
            size,
            shape["heads"],
            layers,
            layers,
            shape["hidden"],
            shape["dropout"],
            batch_first=True,
            norm_first=True,
        )
        self.register_buffer("positions", positions(1024, size), persistent=False)
        self.positions: Tensor

    def embed(self, tokens: Tensor) -> Tensor:
        size = self.embedding.embedding_dim
        return self.dropout(self.embedding(tokens) * math.sqrt(size) + self.positions[: tokens.shape[1]])

    def forward(self, batch: PaddedBatch) -> Tensor:
        """The input of the last projection.  (B, U, size)"""
        padding = batch.source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(batch.inputs.shape[1])
        hidden: Tensor = self.transformer(
            self.embed(batch.source),
            self.embed(batch.inputs),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return hidden


class BareLSTM(nn.Module):
    def __init__(self, shape: Shape, vocabulary: int):
        super().__init__()
        size = shape["size"]
        self.rate, self.feeds = shape["dropout"], shape["input_feeding"]
        self.embedding = nn.Embedding(vocabulary, size)
        self.forwards = nn.LSTM(size, size // 2, batch_first=True)
        self.backwards = nn.LSTM(size, size // 2, batch_first=True)
        self.decoder = nn.LSTM(2 * size if self.feeds else size, size, batch_first=True)
        self.key = nn.Linear(size, size, bias=False)
        self.join = nn.Linear(2 * size, size)

    def drop(self, values: Tensor) -> Tensor:
        return dropout(values, self.rate, self.training)

    def encode(self, batch: PaddedBatch) -> tuple[Tensor, Tensor]:
        """All states (B, T, size), and the final ones (B, size)."""
        lengths, width = batch.source_lengths, batch.source.shape[1]
        embedded = self.drop(self.embedding(batch.source))
        places = torch.arange(width)
        reverse = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)  # (B, T)
        rows = torch.arange(len(lengths))[:, None]
        forward, _ = self.forwards(embedded)
        back, _ = self.backwards(embedded[rows, reverse])
        states = torch.cat([forward, back[rows, reverse]], dim=-1)
        last = torch.cat([forward[rows[:, 0], lengths - 1], back[rows[:, 0], lengths - 1]], dim=-1)
        return states, last

    def forward(self, batch: PaddedBatch) -> Tensor:
        states, last = self.encode(batch)
        keys = self.key(states).transpose(1, 2)  # (B, size, T)
        mask = torch.zeros(batch.source.shape).masked_fill_(batch.source == PAD, float("-inf"))[:, None]
        embedded = self.drop(self.embedding(batch.inputs))
        cell = torch.zeros_like(last)
        if self.feeds:
            return self.feed(embedded, states, keys, mask, (last, cell))
        hidden, _ = self.decoder(embedded, (last[None], cell[None]))  # (B, U, size)
        return self.attend(hidden, states, keys, mask)

    def attend(self, hidden: Tensor, states: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        context = torch.softmax(torch.baddbmm(mask, hidden, keys), dim=-1) @ states
        return torch.tanh(self.join(torch.cat([context, hidden], dim=-1)))

    def feed(
        self, embedded: Tensor, states: Tensor, keys: Tensor, mask: Tensor, state: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Input feeding: the input half of all steps in one product, then step by step."""
        size = embedded.shape[-1]
        weight, recurrent, *biases = self.decoder.parameters()  # (4 * size, 2 * size), (4 * size, size)
        projected = linear(embedded, weight[:, :size], biases[0] + biases[1])
        both = torch.cat([weight[:, size:], recurrent], dim=1).t()  # (2 * size, 4 * size)
        hidden, cell = state
        output, outputs = torch.zeros_like(hidden), []
        for step in projected.unbind(1):
            gates = torch.addmm(step, torch.cat([output, hidden], dim=1), both)
            enter, forget, candidate, leave = gates.chunk(4, dim=1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            output = self.drop(self.attend(hidden[:, None], states, keys, mask)[:, 0])
            outputs.append(output)
        return torch.stack(outputs, dim=1)


def loss_without_padding(model: nn.Module, batch: PaddedBatch) -> Tensor:
    """Logits of real targets only."""
    real = batch.targets != PAD
    hidden = model(batch)[real]  # (N, size)
    logits = linear(hidden, model.embedding.weight)  # type: ignore[arg-type, union-attr]
    return cross_entropy(logits, batch.targets[real], label_smoothing=LABEL_SMOOTHING)


def loss_everywhere(model: nn.Module, batch: PaddedBatch) -> Tensor:
    """Logits at all positions; the loss ignores padding."""
    logits = linear(model(batch), model.embedding.weight)  # type: ignore[arg-type, union-attr]
    return cross_entropy(
        logits.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD, label_smoothing=LABEL_SMOOTHING
    )


def build(shape: Shape, vocabulary: int) -> nn.Module:
    torch.manual_seed(1)
    return (BareTransformer if shape["kind"] == "transformer" else BareLSTM)(shape, vocabulary)


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model = build(job["shape"], job["vocabulary"])
    return loop.train(
        model, loss_everywhere if job.get("everywhere") else loss_without_padding, Batches(job["batches"])
    )


if __name__ == "__main__":
    serve(train=training)
