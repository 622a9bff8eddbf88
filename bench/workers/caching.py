"""A bare decoding loop for the bare Transformer: the encoder once, then one position at a time with a KV cache.

Written with care: one product for query, key and value, keys and values of the source once per sentence, caches of full
length that are written in place and re-ordered with the beam, scaled_dot_product_attention, no module calls inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, relu, scaled_dot_product_attention

from bench.pipe import Message, Turn, serve
from bench.shapes import BOS, EOS, PAD
from bench.workers import loop
from bench.workers.bare import BareTransformer


class Caching:
    """Greedy and beam search over one model."""

    def __init__(self, model: BareTransformer):
        self.model, self.layers = model.eval(), list(model.transformer.decoder.layers)
        self.size = model.embedding.embedding_dim
        self.heads = self.layers[0].self_attn.num_heads

    def split(self, values: Tensor) -> Tensor:
        """(rows, T, size) -> (rows, heads, T, size / heads)"""
        return values.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def read(self, sources: Tensor, beam_size: int) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Keys and values of the source for each layer, and its mask; repeated for the beam."""
        padding = sources == PAD
        memory = self.model.transformer.encoder(self.model.embed(sources), src_key_padding_mask=padding)
        pairs = []
        for layer in self.layers:
            part = layer.multihead_attn
            weight, bias = part.in_proj_weight[self.size :], part.in_proj_bias[self.size :]
            keys, values = linear(memory, weight, bias).repeat_interleave(beam_size, 0).chunk(2, dim=-1)
            pairs.append((self.split(keys).contiguous(), self.split(values).contiguous()))
        return pairs, (~padding).repeat_interleave(beam_size, 0)[:, None, None]

    def norm(self, values: Tensor, part: torch.nn.LayerNorm) -> Tensor:
        return layer_norm(values, (self.size,), part.weight, part.bias)

    def step(
        self,
        tokens: Tensor,
        place: int,
        caches: list[tuple[Tensor, Tensor]],
        memory: list[tuple[Tensor, Tensor]],
        allowed: Tensor,
    ) -> Tensor:
        """Logits of the next token.  (rows,) -> (rows, V)"""
        table, rows = self.model.embedding.weight, len(tokens)
        values = table[tokens] * math.sqrt(self.size) + self.model.positions[place]  # (rows, size)
        for layer, (keys, states), (source_keys, source_states) in zip(self.layers, caches, memory):
            own, cross = layer.self_attn, layer.multihead_attn
            three = linear(self.norm(values, layer.norm1), own.in_proj_weight, own.in_proj_bias)
            query, key, value = three.view(rows, 3, self.heads, 1, -1).unbind(1)
            keys[:, :, place : place + 1], states[:, :, place : place + 1] = key, value
            seen = scaled_dot_product_attention(query, keys[:, :, : place + 1], states[:, :, : place + 1])
            values = values + linear(seen.flatten(1), own.out_proj.weight, own.out_proj.bias)
            cross_query = linear(
                self.norm(values, layer.norm2), cross.in_proj_weight[: self.size], cross.in_proj_bias[: self.size]
            )
            seen = scaled_dot_product_attention(
                cross_query.view(rows, self.heads, 1, -1), source_keys, source_states, allowed
            )
            values = values + linear(seen.flatten(1), cross.out_proj.weight, cross.out_proj.bias)
            inner = relu(linear(self.norm(values, layer.norm3), layer.linear1.weight, layer.linear1.bias))
            values = values + linear(inner, layer.linear2.weight, layer.linear2.bias)
        last = self.model.transformer.decoder.norm
        assert isinstance(last, torch.nn.LayerNorm)
        return linear(self.norm(values, last), table)

    @torch.inference_mode()
    def search(self, sources: Tensor, steps: int, beam_size: int) -> Tensor:
        """The best output of each source; EOS not before the last step.  (B, steps)"""
        count = len(sources)
        memory, allowed = self.read(sources, beam_size)
        shape = (count * beam_size, self.heads, steps, self.size // self.heads)
        caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in self.layers]
        tokens = torch.full((count * beam_size,), BOS)
        outputs = torch.zeros(count * beam_size, steps, dtype=torch.long)
        totals = torch.full((count, beam_size), float("-inf"))
        totals[:, 0] = 0
        first = torch.arange(count)[:, None] * beam_size
        for place in range(steps):
            logits = self.step(tokens, place, caches, memory, allowed)
            if place < steps - 1:
                logits[:, EOS] = float("-inf")
            if beam_size == 1:
                tokens = logits.argmax(-1)
            else:
                scores = totals[:, :, None] + torch.log_softmax(logits, dim=-1).view(count, beam_size, -1)
                totals, places = scores.flatten(1).topk(beam_size, dim=1)  # (B, K)
                rows = (first + places // logits.shape[-1]).flatten()
                tokens = (places % logits.shape[-1]).flatten()
                outputs = outputs[rows]
                for keys, states in caches:  # only the part that is written
                    keys[:, :, : place + 1] = keys[:, :, : place + 1][rows]
                    states[:, :, : place + 1] = states[:, :, : place + 1][rows]
            outputs[:, place] = tokens
            if bool((tokens == EOS).all()):
                break
        return outputs.view(count, beam_size, steps)[:, 0]


def decoding(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    caching = Caching(BareTransformer(job["shape"], job["vocabulary"]))

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        return [len(row) for row in caching.search(sources, steps, beam_size).tolist()]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(decode=decoding)
