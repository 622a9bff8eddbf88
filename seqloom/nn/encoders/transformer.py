"""Transformer encoder. Vaswani et al. 2017, section 3.1.

With `adaptive` it is the Universal Transformer (Dehghani et al. 2019, section 2.2): one layer is applied to each
position as often as that position needs, up to `layers` times, and encodings of position and step t are added before
the t-th time. A position that has halted stays as it is and can still be attended; its state in the memory is the mean
of its states, weighted as in seqloom/nn/ops/halting.py.

BERT's (Devlin et al. 2019) has norm = "post", activation = "gelu", learned positions, `normalised` embeddings, and
`segments` = 2: tokens up to the first EOS, which separates two texts, have another vector added than those after it.

With `experts` the feed-forward networks of all layers are mixtures of that many, each as wide as `hidden`, of which a
position uses `active_experts` (seqloom/nn/layers/experts.py).
"""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder, Task
from seqloom.data.special_tokens import EOS
from seqloom.nn.attention.multihead import mask_bias
from seqloom.nn.layers.embedding import AddPositions, embedding, input_layer
from seqloom.nn.layers.experts import Routing, expert_maps
from seqloom.nn.layers.positions import Learned, Sinusoidal
from seqloom.nn.layers.transformer import Activation, Norm, TransformerLayer
from seqloom.nn.ops.halting import Halting
from seqloom.nn.ops.mean import masked_mean
from seqloom.nn.ops.packing import Packing
from seqloom.types import COST, Memory, Padded, State


class Transformer(Encoder):
    """Self-attention over the whole source, layer after layer."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 1024,
        dropout: float = 0.1,
        norm: Norm = "pre",
        activation: Activation = "relu",
        positions: Literal["sinusoidal", "learned"] = "sinusoidal",
        longest: int = 512,
        normalised: bool = False,
        segments: int = 0,
        adaptive: bool = False,
        epsilon: float = 0.01,
        experts: int = 0,
        active_experts: int = 2,
    ):
        super().__init__()
        if adaptive and experts:
            raise ValueError("experts do not work with adaptive = true: leave one of them out")
        if adaptive and normalised:
            raise ValueError("normalised = true does not work with adaptive = true: leave one of them out")
        if segments and (segments < 2 or vocabulary is None):
            raise ValueError(f"segments = {segments}: expected 0, or for sources of tokens 2 or more")
        self.output_size, self.longest = size, longest if positions == "learned" else None
        self.embedding = input_layer(vocabulary, features, size, scaled=True)
        self.segments = embedding(segments, size) if segments else None
        self.positioned = AddPositions(
            size=size, positions=positions, longest=longest, dropout=dropout, normalised=normalised
        )
        self.layers = cast(
            Sequence[TransformerLayer],
            nn.ModuleList(
                TransformerLayer(
                    size=size,
                    heads=heads,
                    hidden=hidden,
                    dropout=dropout,
                    norm=norm,
                    activation=activation,
                    experts=experts,
                    active_experts=active_experts,
                )
                for _ in range(1 if adaptive else layers)
            ),
        )
        self.halting = Halting(size=size, most=layers, epsilon=epsilon) if adaptive else None
        if adaptive:
            self.times = Sinusoidal(size=size) if positions == "sinusoidal" else Learned(size=size, longest=layers)
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()

    def suit(self, task: Task) -> None:
        super().suit(task)
        if self.longest is not None and task.window > self.longest:
            wanted = f"raise it to task.window = {task.window}"
            raise ValueError(f"has learned positions up to longest = {self.longest}: {wanted}")

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        packing = Packing(source.mask)
        embedded = self.embedding(packing.pack(source.values))  # (N, size)
        if self.segments is not None:
            before = (source.values == EOS).cumsum(1) - (source.values == EOS).long()  # separators before a position
            embedded = embedded + self.segments(packing.pack(before.clamp(max=self.segments.num_embeddings - 1)))
        run = self.run_layers if self.halting is None else self.ponder
        values, extra = run(embedded, packing, attention)
        states = packing.unpack(self.norm(values))  # (B, T, size)
        summary = masked_mean(Padded(states, source.lengths))
        return Memory(states, source.lengths, {"summary": summary}, extra)

    def run_layers(self, embedded: Tensor, packing: Packing, attention: bool) -> tuple[Tensor, State]:
        """Run all layers: the last output, costs of experts, and on request attention and experts of each layer."""
        visible = None if packing.full else mask_bias(packing.mask)
        values = self.positioned(embedded, packing.offsets())
        weights: list[Tensor] = []
        routings: dict[str, Routing] = {}
        for number, layer in enumerate(self.layers):
            values = self.before_layer(number, values, packing)
            values, weight, routing = layer.encode(values, packing, visible, attention)
            if weight is not None:
                weights.append(weight)
            if routing is not None:
                routings[f"layers.{number}"] = routing
        extra: State = {"attention": torch.stack(weights, dim=1)} if attention else {}  # (B, layers, heads, T, T)
        if routings:
            extra[COST] = {part: routing.costs(packing) for part, routing in routings.items()}
            extra |= {"experts": expert_maps(routings, packing)} if attention else {}
        return values, extra

    def before_layer(self, number: int, values: Tensor, packing: Packing) -> Tensor:
        """What a layer reads: the output of the one below, unless a subclass puts something between.  (N, size)"""
        return values

    def ponder(self, embedded: Tensor, packing: Packing, attention: bool) -> tuple[Tensor, State]:
        """Repeat one layer; also returns its cost per source, and on request the attention and steps per position."""
        assert self.halting is not None
        visible = None if packing.full else mask_bias(packing.mask)
        (layer,), encodings = self.layers, self.positioned.positions(packing.offsets())  # (N, size)
        start = self.positioned.dropout(embedded * self.positioned.scale)
        weights: list[Tensor] = []

        def step(number: int, state: State, running: Tensor) -> tuple[Tensor, State]:
            before = state["values"]
            times = self.times(torch.tensor(number, device=encodings.device))
            values, weight, _ = layer.encode(before + (encodings + times).to(before.dtype), packing, visible, attention)
            if weight is not None:
                weights.append(weight)
            values = torch.where(running[:, None], values, before)
            return values, {"values": values}

        result = self.halting(step, {"values": start}, len(start))
        spent = {"ponder": result.ponder, "steps": result.steps}
        extra: State = {COST: {name: packing.unpack(each).sum(1) for name, each in spent.items()}}  # (B,) each
        if attention:
            extra["attention"] = torch.stack(weights, dim=1)
            extra["steps"] = packing.unpack(result.steps)[:, :, None]  # (B, T, 1)
        return result.output, extra
