"""Streaming Transformer encoder that reads chunk by chunk: a position attends its own chunk and a few before it.

Chen et al. 2021 ("Developing real-time streaming Transformer transducer"), by a mask over chunks; a stream caches the
keys and values of earlier chunks, as Transformer-XL does (Dai et al. 2019, section 3.2). Time and memory per input do
not grow with the source.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder
from seqloom.nn.attention.multihead import mask_bias
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.layers.positions import Sinusoidal
from seqloom.nn.layers.transformer import Norm, TransformerLayer
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.mean import masked_mean, update_mean
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory, Padded, State


class Chunked(Encoder):
    """Chunks of `chunk` inputs; each attends itself and `left` chunks before it, so context grows with every layer."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 1024,
        chunk: int = 8,
        left: int = 4,
        dropout: float = 0.1,
        norm: Norm = "pre",
    ):
        super().__init__()
        for name, value in (("layers", layers), ("chunk", chunk)):
            if value < 1:
                raise ValueError(f"{name} = {value} must be 1 or more")
        if left < 0:
            raise ValueError(f"left = {left} must be 0 or more")
        self.output_size = size
        self.chunk, self.left = chunk, left
        self.embedding = input_layer(vocabulary, features, size, scaled=True)
        self.positions = Sinusoidal(size=size)
        self.dropout = Dropout(dropout)
        self.layers = cast(
            Sequence[TransformerLayer],
            nn.ModuleList(
                TransformerLayer(size=size, heads=heads, hidden=hidden, dropout=dropout, norm=norm)
                for _ in range(layers)
            ),
        )
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        packing = Packing(source.mask)
        visible = self.visible(0, packing.width, 0)[None]  # (1, T, T)
        if not packing.full:  # padding attends itself, since a softmax over nothing is NaN
            alone = torch.eye(packing.width, dtype=torch.bool, device=visible.device)
            visible = visible & packing.mask[:, None] | alone
        bias = visibility_bias(visible)
        encodings = self.encodings(0, packing.width)[packing.offsets()]
        values = self.add_positions(self.embedding(packing.pack(source.values)), encodings)  # (N, size)
        weights: list[Tensor] = []
        for layer in self.layers:
            values, weight, _ = layer.encode(values, packing, bias, attention)
            if weight is not None:
                weights.append(weight)
        states = packing.unpack(self.norm(values))  # (B, T, size)
        extra = {"attention": torch.stack(weights, dim=1)} if attention else {}  # (B, layers, heads, T, T)
        return Memory(states, source.lengths, {"summary": masked_mean(Padded(states, source.lengths))}, extra)

    @property
    def streams(self) -> bool:
        return True

    def start(self, rows: int) -> State:
        """Inputs that do not fill a chunk yet; cached keys and values; the mean and the number of states so far."""
        weight, heads = self.embedding.weight, self.layers[0].self_attention.heads
        past = weight.new_zeros(rows, 2, heads, 0, self.output_size // heads)  # (B, 2, heads, positions, d)
        return {
            "rest": weight.new_zeros(rows, 0, self.output_size),
            "layers": {str(layer): past for layer in range(len(self.layers))},
            "summary": weight.new_zeros(rows, self.output_size),
            "frame": torch.zeros(rows, dtype=torch.long, device=weight.device),
        }

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        embedded = torch.cat([state["rest"], self.embedding(chunk.values)], dim=1)
        ready = embedded.shape[1] - (0 if closed else embedded.shape[1] % self.chunk)
        states, layers = self.run_layers(embedded[:, :ready], state["layers"], int(state["frame"][0]))
        summary, frame = update_mean(state["summary"], state["frame"], states)
        memory = Memory(states, torch.full_like(frame, ready), {"summary": summary}, closed=closed)
        return memory, {"rest": embedded[:, ready:], "layers": layers, "summary": summary, "frame": frame}

    def run_layers(self, embedded: Tensor, past: State, start: int) -> tuple[Tensor, State]:
        """Run all layers on the positions from `start` on: states (B, T, size), and the cache for later chunks."""
        rows, width, _ = embedded.shape
        if not width:
            return embedded, past
        packing = Packing.unpadded(rows, width, embedded.device)
        bias = visibility_bias(self.visible(start, width, past["0"].shape[3])[None])
        values = packing.pack(self.add_positions(embedded, self.encodings(start, width)))  # (N, size)
        after: State = {}
        for number, layer in enumerate(self.layers):
            values, cache, _, _ = layer.extend(values, packing, bias, past[str(number)].transpose(0, 1))
            kept = min(self.left * self.chunk, cache[0].shape[2])
            after[str(number)] = torch.stack([each[:, :, each.shape[2] - kept :] for each in cache], dim=1)
        return packing.unpack(self.norm(values)), after

    def encodings(self, start: int, width: int) -> Tensor:
        """Positional encodings, without a table since a stream may never end.  (width, size)"""
        return self.positions.compute(torch.arange(start, start + width, device=self.embedding.weight.device))

    def add_positions(self, embedded: Tensor, encodings: Tensor) -> Tensor:
        """Embeddings times sqrt(size), plus positions, with drop-out.  (..., size)"""
        return self.dropout(torch.add(encodings.to(embedded.dtype), embedded, alpha=self.output_size**0.5))

    def visible(self, start: int, width: int, before: int) -> Tensor:
        """What positions from `start` on may attend: `before` earlier ones and themselves.  (width, before + width)"""
        positions = torch.arange(start - before, start + width, device=self.embedding.weight.device)
        chunks = positions.div(self.chunk, rounding_mode="floor")
        distance = chunks[before:, None] - chunks
        return (distance >= 0) & (distance <= self.left)


def visibility_bias(visible: Tensor) -> Tensor | None:
    """The bias of a mask, None if it is all true.  (B, Q, T) -> (B, 1, Q, T)"""
    return None if bool(visible.all()) else mask_bias(visible)
