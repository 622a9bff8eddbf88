"""The speed of ConvS2S, relative to a bare loop of the published design (Gehring et al. 2017, as in fairseq).

    OMP_NUM_THREADS=1 python -m bench.conv_s2s [--repeats N] [--out FILE]

The bare model is made of nn.Conv1d with torch's weight normalisation, glu and plain attention. It has our weights, so
both compute the same scores. It decodes with a buffer of the last inputs of each layer. Training is a whole update of a
batch, decoding greedy with outputs of a fixed length and one more step for EOS; only ours gives log-probabilities, too.
Both take turns, and times are processor times.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from bench import measuring
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL
from seqloom.nn.decoders.conv_s2s import ConvS2S as Decoder
from seqloom.nn.encoders.conv_s2s import ConvS2S as Encoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.types import Batch, Padded

WORDS, SIZE, LAYERS, KERNEL, DROPOUT, SMOOTHING = 6000, 192, 4, 3, 0.2, 0.1  # as in multi30k-conv-s2s
ROWS, LENGTH, LONGEST, WARMING = 96, 20, 512, 2
HALF = math.sqrt(0.5)
UNIT = "bare loop"


def models(words: int = WORDS, size: int = SIZE) -> tuple[Model, BareModel]:
    """Ours and the bare one, with the same weights; embeddings are shared."""
    torch.manual_seed(1)
    shared: dict[str, Any] = {"embedding_size": size, "size": size, "layers": LAYERS, "kernel": KERNEL}
    shared |= {"dropout": DROPOUT, "longest": LONGEST}
    decoder = Decoder(vocabulary=words, memory_size=size, bos=BOS, eos=EOS, **shared)
    ours = Model(Encoder(vocabulary=words, **shared), decoder, share_embeddings=True)
    return ours, BareModel(ours)


class BareModel(nn.Module):
    """ConvS2S in plain torch: sources (B, T), inputs (B, U) -> scores (B, U, words)."""

    def __init__(self, ours: Model):
        super().__init__()
        encoder: Any = ours.encoder
        decoder: Any = ours.decoder
        self.embedding = copied(encoder.embedding)
        self.places = nn.ModuleList(copied(each.positions.table) for each in (encoder, decoder))
        self.enter = nn.ModuleList(copied(each.enter) for each in (encoder, decoder))
        self.leave = nn.ModuleList(copied(each.leave) for each in (encoder, decoder))
        self.reading = nn.ModuleList(convolution(each, KERNEL // 2) for each in encoder.convolutions)
        self.writing = nn.ModuleList(convolution(each.convolution, KERNEL - 1) for each in decoder.layers)
        self.query = nn.ModuleList(copied(each.query) for each in decoder.layers)
        self.context = nn.ModuleList(copied(each.context) for each in decoder.layers)

    def drop(self, values: Tensor) -> Tensor:
        return functional.dropout(values, DROPOUT, self.training)

    def encode(self, sources: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """States, values to attend, and where padding is.  (B, T, D), (B, T, D), (B, T)"""
        padding = sources == PAD
        embedded = self.drop(self.embedding(sources) + self.places[0].weight[: sources.shape[1]])
        values = self.enter[0](embedded).transpose(1, 2)  # (B, size, T), as nn.Conv1d takes it
        for layer in self.reading:
            change = layer(self.drop(values).masked_fill(padding[:, None], 0.0))
            values = (functional.glu(change, dim=1) + values) * HALF
        states = self.leave[0](values.transpose(1, 2))
        return states, (states + embedded) * HALF, padding

    def attend(self, number: int, values: Tensor, embedded: Tensor, memory: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """(B, U, size) -> (B, U, size)"""
        states, attended, padding = memory
        query = (self.query[number](values) + embedded) * HALF
        scores = (query @ states.transpose(1, 2)).masked_fill(padding[:, None], float("-inf"))
        count = (~padding).sum(1).to(scores.dtype).sqrt()[:, None, None]
        return self.context[number](scores.softmax(-1) @ attended * count)

    def forward(self, sources: Tensor, inputs: Tensor) -> Tensor:
        memory, width = self.encode(sources), inputs.shape[1]
        embedded = self.drop(self.embedding(inputs) + self.places[1].weight[:width])
        values = self.enter[1](embedded)
        for number, layer in enumerate(self.writing):
            change = layer(self.drop(values).transpose(1, 2))[:, :, :width]  # padded on both sides, the end cut off
            gated = functional.glu(change, dim=1).transpose(1, 2)
            gated = (gated + self.attend(number, gated, embedded, memory)) * HALF
            values = (gated + values) * HALF
        return functional.linear(self.drop(self.leave[1](values)), self.embedding.weight)

    @torch.inference_mode()
    def decode(self, sources: Tensor, steps: int) -> Tensor:
        """Greedy outputs of so many tokens, with a buffer of each layer's last inputs.  (B, steps)"""
        memory, rows = self.encode(sources), len(sources)
        flat = [(each.weight.permute(0, 2, 1).flatten(1), each.bias) for each in self.writing]  # once, as fairseq does
        size = flat[0][0].shape[1] // KERNEL
        buffers = [torch.zeros(rows, KERNEL, size) for _ in flat]
        token, written = torch.full((rows,), BOS), []
        for place in range(steps):
            embedded = (self.embedding(token) + self.places[1].weight[place])[:, None]
            values = self.enter[1](embedded)
            for number, (weight, bias) in enumerate(flat):
                buffer = buffers[number]
                buffer[:, :-1] = buffer[:, 1:].clone()
                buffer[:, -1] = values[:, 0]
                gated = functional.glu(functional.linear(buffer.flatten(1), weight, bias), dim=-1)[:, None]
                gated = (gated + self.attend(number, gated, embedded, memory)) * HALF
                values = (gated + values) * HALF
            scores = functional.linear(self.leave[1](values)[:, 0], self.embedding.weight)
            scores[:, : len(SPECIAL)] = float("-inf")
            token = scores.argmax(-1)
            written.append(token)
        return torch.stack(written, dim=1)


def copied(layer: Any) -> Any:
    """A plain layer of torch with the same weights."""
    weight = layer.weight.detach().clone()
    made: Any = nn.Embedding(*weight.shape) if isinstance(layer, nn.Embedding) else nn.Linear(*weight.shape[::-1])
    made.weight = nn.Parameter(weight)
    if isinstance(made, nn.Linear):
        made.bias = nn.Parameter(layer.bias.detach().clone())
    return made


def convolution(ours: Any, padding: int) -> nn.Module:
    """nn.Conv1d with weight normalisation."""
    count, size = len(ours.bias), ours.input_size
    made = nn.Conv1d(size, count, KERNEL, padding=padding)
    made.weight = nn.Parameter(ours.weight.detach().view(count, KERNEL, size).transpose(1, 2).clone())
    made.bias = nn.Parameter(ours.bias.detach().clone())
    return weight_norm(made)  # its gain is the norm of the weight, as ours is at first


def random_batch(rows: int = ROWS, length: int = LENGTH, words: int = WORDS) -> Batch:
    """Sentences of similar length, sorted: 80 to 100 % of the longest."""
    generator = np.random.default_rng(1)
    lengths = np.sort(generator.integers(max(length * 4 // 5, 1), length + 1, rows))[::-1]
    sources, targets = ([generator.integers(len(SPECIAL), words, n) for n in lengths] for _ in range(2))
    return Batch(
        source=Padded.stack(sources, PAD),
        inputs=Padded.stack([np.append(BOS, each) for each in targets], PAD),
        targets=Padded.stack([np.append(each, EOS) for each in targets], PAD),
    ).to("cpu")


def updates(batch: Batch, ours: Model, bare: BareModel) -> dict[str, Callable[[], object]]:
    """One update each: loss, gradients, clipping, Adam."""
    assert batch.source is not None
    source, inputs, targets = batch.source.values, batch.inputs.values, batch.targets.values
    objective = CrossEntropy(label_smoothing=SMOOTHING).train()
    losses: dict[str, Any] = {
        "Seqloom": (ours.train(), lambda: objective(ours, batch, 0.0).total),
        UNIT: (
            bare.train(),
            lambda: functional.cross_entropy(
                bare(source, inputs).flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
            ),
        ),
    }

    def update(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], object]:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> None:
            loss().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()

        return step

    return {name: update(*each) for name, each in losses.items()}


def decodings(batch: Batch, ours: Model, bare: BareModel, steps: int) -> dict[str, Callable[[], Any]]:
    """Greedy outputs of so many tokens: EOS is forbidden before."""
    assert batch.source is not None
    source = batch.source
    ours.freeze()
    bare.eval()
    encoded = [[row[:length].numpy()] for row, length in zip(source.values, source.lengths.tolist())]
    search = BeamSearch(beam_size=1, minimum_length=steps, maximum_length=steps + 1)
    never = Banned([np.array([token]) for token in range(len(SPECIAL)) if token != EOS])
    return {
        "Seqloom": lambda: [each[0].tokens for each in ours.find(encoded, search, constraints=[never], details=False)],
        UNIT: lambda: bare.decode(source.values, steps + 1)[:, :-1].tolist(),
    }


def compare(
    systems: dict[str, Callable[[], object]], count: int, repeats: int, unit: str = "tokens"
) -> dict[str, dict[str, Any]]:
    """Milliseconds of processor time per batch of so many tokens, their speed, and that relative to the bare loop."""
    found: dict[str, list[float]] = {name: [] for name in systems}
    for turn in range(WARMING + repeats):
        for name, run in systems.items():
            begin = time.process_time()
            run()
            if turn >= WARMING:
                found[name].append(1000 * (time.process_time() - begin))
    return {
        name: {
            "milliseconds": measuring.summary(each),
            f"{unit}_per_second": measuring.significant(1000 * count / measuring.median(each)),
            "ratio": measuring.median([one / other for one, other in zip(found[UNIT], each)]),
        }
        for name, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conv_s2s", description="The speed of ConvS2S.")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("results/bench-conv-s2s.json"))
    options = parser.parse_args()
    batch, alone = random_batch(), random_batch(rows=1)
    tokens = int(batch.targets.lengths.sum())
    settings = {f"training, {ROWS} sentences": compare(updates(batch, *models()), tokens, options.repeats)}
    for name, given in ((f"greedy, {ROWS} sentences", batch), ("greedy, 1 sentence", alone)):
        count = len(given.targets.lengths) * LENGTH
        settings[name] = compare(decodings(given, *models(), LENGTH), count, options.repeats)
    record = measuring.record(
        "conv_s2s",
        torch.get_num_threads(),
        shape=f"{LAYERS} layers of {SIZE}, kernel {KERNEL}, {WORDS:,} words, up to {LENGTH} tokens",
        repeats=options.repeats,
        settings=settings,
    )
    measuring.write(record, options.out)
    for name, systems in settings.items():
        for system, each in systems.items():
            print(f"{name:24} {system:10} {each['milliseconds']['median']:8.1f} ms  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
