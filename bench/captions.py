"""The training speed of captions with attention over a picture, relative to a bare loop of the same parts.

    OMP_NUM_THREADS=1 python -m bench.captions [--repeats N] [--out FILE]

The bare model has our weights: convolutions and group normalisation of torch, nn.LSTM, additive attention written out
over all words at once, nn.Linear. An update is loss, gradients, clipping and AdamW on uint8 pictures and their
captions. Both take turns, and times are processor times.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench import measuring
from bench.conv_s2s import UNIT, compare, copied
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.encoders.image import SCALE, Image
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Padded

WORDS, SHAPE, ROWS, LENGTH = 4000, (64, 64, 3), 64, 14  # as in captions-attention on Flickr8k
STATES, EMBEDDED, SIZE, HIDDEN, DROPOUT, SMOOTHING = 128, 128, 256, 128, 0.4, 0.1


def models(shape: tuple[int, int, int] = SHAPE, words: int = WORDS) -> tuple[Model, BareModel]:
    """Ours and the bare one, with the same weights."""
    torch.manual_seed(1)
    encoder = Image(shape=shape, size=STATES, dropout=DROPOUT / 2)
    decoder = Recurrent(
        vocabulary=words,
        memory_size=STATES,
        bos=BOS,
        eos=EOS,
        embedding_size=EMBEDDED,
        size=SIZE,
        attention=partial(Additive, size=HIDDEN),
        dropout=DROPOUT,
    )
    ours = Model(encoder, decoder)
    return ours, BareModel(ours)


class BareModel(nn.Module):
    """Pictures (B, H, W, C), inputs (B, U) -> scores (B, U, words)."""

    def __init__(self, ours: Model):
        super().__init__()
        decoder: Any = ours.decoder
        self.pictures, self.embedding = BarePictures(ours.encoder, DROPOUT / 2), copied(decoder.embedding)
        self.start = copied(decoder.bridging)
        self.lstm = nn.LSTM(EMBEDDED, SIZE, batch_first=True)
        self.lstm.load_state_dict(decoder.stack.cells[0].kernel.state_dict())
        self.query = nn.Linear(SIZE, HIDDEN, bias=False)
        self.query.load_state_dict(decoder.attention.query.state_dict())
        self.key, self.energy = copied(decoder.attention.key), nn.Parameter(decoder.attention.energy.weight[0].detach())
        self.join, self.output = copied(decoder.join), copied(decoder.output)

    def drop(self, values: Tensor) -> Tensor:
        return functional.dropout(values, DROPOUT, self.training)

    def forward(self, pictures: Tensor, inputs: Tensor) -> Tensor:
        states, summary = self.pictures(pictures.float().permute(0, 3, 1, 2))
        hidden, cell = torch.tanh(self.start(summary))[None].chunk(2, dim=-1)
        outputs, _ = self.lstm(self.drop(self.embedding(inputs)), (hidden.contiguous(), cell.contiguous()))
        scores = torch.tanh(self.query(outputs)[:, :, None] + self.key(states)[:, None]) @ self.energy  # (B, U, h * w)
        context = scores.softmax(-1) @ states
        return self.output(self.drop(torch.tanh(self.join(torch.cat([context, outputs], dim=-1)))))


class BarePictures(nn.Module):
    """Pictures (B, C, H, W) -> states (B, h * w, size) and summary (B, size)."""

    def __init__(self, ours: Any, dropout: float = 0.0):
        super().__init__()
        self.patches = same(ours.patches)
        self.blocks = nn.ModuleList(
            nn.ModuleList(map(same, (*each.norms, each.first, each.second, each.shortcut))) for each in ours.blocks
        )
        self.norm, self.dense, self.dropout = same(ours.norm), copied(ours.dense), dropout
        self.places = nn.Parameter((ours.rows[:, None] + ours.columns).detach().flatten(0, 1).clone())

    def drop(self, values: Tensor) -> Tensor:
        return functional.dropout(values, self.dropout, self.training)

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        values = self.patches(pictures / SCALE - 1)
        for before, between, first, second, shortcut in self.blocks:  # type: ignore[misc]
            change = second(between(first(before(values).relu())).relu())
            values = shortcut(values) + change
        states = self.drop(self.norm(values).relu().flatten(2).transpose(1, 2) + self.places)
        return states, self.drop(self.dense(states.flatten(1)).relu())


def same(layer: nn.Module) -> nn.Module:
    """A layer of torch with the same weights."""
    if isinstance(layer, nn.Conv2d):
        made: Any = nn.Conv2d(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            bias=layer.bias is not None,
        )
    elif isinstance(layer, nn.GroupNorm):
        made = nn.GroupNorm(layer.num_groups, layer.num_channels)
    else:
        return nn.Identity()
    made.load_state_dict(layer.state_dict())
    return made


def random_batch(shape: tuple[int, int, int] = SHAPE, rows: int = ROWS, words: int = WORDS) -> Batch:
    """Pictures, and captions of 8 to 14 words, sorted."""
    generator = np.random.default_rng(1)
    lengths = np.sort(generator.integers(8, LENGTH + 1, rows))[::-1]
    targets = [generator.integers(len(SPECIAL), words, length) for length in lengths]
    return Batch(
        source=Padded.stack(list(generator.integers(0, 256, (rows, *shape), dtype=np.uint8))),
        inputs=Padded.stack([np.append(BOS, each) for each in targets], PAD),
        targets=Padded.stack([np.append(each, EOS) for each in targets], PAD),
    ).to("cpu")


def updates(batch: Batch, ours: Model, bare: nn.Module) -> dict[str, Any]:
    """One update each. The bare model takes the inputs of the source, and those of the decoder."""
    targets = batch.targets.values
    source = [] if batch.source is None else [batch.source, *batch.source.parts.values()]
    given = [*(each.values for each in source), batch.inputs.values]
    smoothing = SMOOTHING if source else 0.0  # pictures have levels that no pixel can have
    objective = CrossEntropy(label_smoothing=smoothing).train()

    def loss_of_bare() -> Tensor:
        scores = bare(*given).flatten(0, 1)
        return functional.cross_entropy(scores, targets.flatten(), ignore_index=PAD, label_smoothing=smoothing)

    losses: dict[str, Any] = {
        "Seqloom": (ours.train(), lambda: objective(ours, batch, 0.0).total),
        UNIT: (bare.train(), loss_of_bare),
    }

    def update(model: nn.Module, loss: Any) -> Any:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> None:
            loss().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()

        return step

    return {name: update(*each) for name, each in losses.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.captions", description="The speed of captions.")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("results/bench-captions.json"))
    options = parser.parse_args()
    found = compare(updates(random_batch(), *models()), ROWS, options.repeats, "pictures")
    settings = {f"training, {ROWS} pictures": found}
    record = measuring.record(
        "captions",
        torch.get_num_threads(),
        shape=f"{SHAPE[0]} x {SHAPE[1]} pixels, states of {STATES}, LSTM of {SIZE}, up to {LENGTH} of {WORDS:,} words",
        repeats=options.repeats,
        settings=settings,
    )
    measuring.write(record, options.out)
    for name, each in found.items():
        speed = f"{each['pictures_per_second']:.0f} pictures/s"
        print(f"{name:10} {each['milliseconds']['median']:8.1f} ms  {speed}  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
