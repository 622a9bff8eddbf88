"""The speed of a gated PixelCNN: training beside a bare loop of the same convolutions, drawing beside a naive loop.

    OMP_NUM_THREADS=1 python -m bench.pixels [--repeats N] [--out FILE]

The bare model has our weights, in torch's convolutions and linear layers; an update is loss, gradients, clipping and
AdamW. The naive loop draws each pixel from a pass of the bare model over the whole picture, which is timed for some
pixels and counted for all. Both take turns, and times are processor times.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench import measuring
from bench.captions import updates
from bench.conv_s2s import UNIT, compare
from seqloom.data.codecs.pixels import FIRST
from seqloom.data.special_tokens import BOS
from seqloom.nn.decoders.pixels import Pixels
from seqloom.nn.layers.drawing import Drawing
from seqloom.nn.layers.pixel_cnn import GatedLayer, gate
from seqloom.nn.model import Model
from seqloom.search.sample import Sampling
from seqloom.types import Batch, Memory, Padded

SIDE, SIZE, LAYERS, HIDDEN = 28, 32, 8, 64  # as in the recipe pixels
ROWS, DRAWN, TIMED = 16, 64, 3  # pictures of a batch, pictures that are drawn, passes that are timed


def models(side: int = SIDE, layers: int = LAYERS) -> tuple[Model, BareModel]:
    """Ours and the bare one, with the same weights."""
    torch.manual_seed(1)
    decoder = Pixels(
        vocabulary=FIRST + 2,
        canvas=(side, side, 1),
        memory_size=0,
        bos=BOS,
        eos=None,
        size=SIZE,
        layers=layers,
        hidden=HIDDEN,
    )
    return Model(None, decoder), BareModel(decoder.drawing, side)


class BareModel(nn.Module):
    """Inputs (B, H * W), BOS and all pixels but the last -> scores (B, H * W, V)."""

    def __init__(self, ours: Drawing, side: int):
        super().__init__()
        self.side = side
        self.embedding = nn.Embedding.from_pretrained(ours.embedding.weight.detach().clone(), freeze=False)
        self.layers = nn.ModuleList(BareLayer(each) for each in ours.network.layers)
        self.last = nn.Conv2d(SIZE, HIDDEN, 1)
        self.output = nn.Linear(HIDDEN, ours.output.linear.out_features)
        with torch.no_grad():
            self.last.weight.copy_(ours.last.linear.weight[:, :, None, None])
            self.last.bias.copy_(ours.last.linear.bias)
        self.output.load_state_dict(ours.output.linear.state_dict())

    def forward(self, inputs: Tensor) -> Tensor:
        embedded = functional.pad(self.embedding(inputs[:, 1:]), (0, 0, 0, 1))
        vertical = horizontal = embedded.transpose(1, 2).unflatten(2, (self.side, self.side))
        for layer in self.layers:
            vertical, horizontal = layer(vertical, horizontal)
        hidden = self.last(horizontal.relu()).relu().flatten(2).transpose(1, 2)
        return functional.pad(self.output(hidden), (FIRST, 0), value=float("-inf"))


class BareLayer(nn.Module):
    """Both stacks, by padding and cropping, as PixelCNNs are commonly written."""

    def __init__(self, ours: GatedLayer):
        super().__init__()
        self.first, reach = ours.first, ours.reach
        lines = ours.above.lines
        self.above = nn.Conv2d(ours.inputs, ours.outputs, (lines, 2 * reach + 1), padding=(reach, reach))
        self.across = nn.Conv2d(ours.outputs, ours.outputs, 1)
        taps = reach if self.first else reach + 1
        self.left = nn.Conv2d(ours.inputs, ours.outputs, (1, taps), padding=(0, reach), bias=False)
        self.leave = nn.Conv2d(SIZE, SIZE, 1)
        self.above.load_state_dict(ours.above.convolution.state_dict())
        self.across.load_state_dict(ours.across.state_dict())
        with torch.no_grad():
            self.left.weight.copy_(ours.left.convolution.weight[:, :, None, :taps])
            self.leave.weight.copy_(ours.leave.linear.weight[:, :, None, None])
            self.leave.bias.copy_(ours.leave.linear.bias)

    def forward(self, vertical: Tensor, horizontal: Tensor) -> tuple[Tensor, Tensor]:
        height, width = horizontal.shape[2:]
        seen = self.above(vertical)[:, :, :height]
        found = gate(self.left(horizontal)[:, :, :, :width] + self.across(seen))
        change = self.leave(found)
        return gate(seen), change if self.first else horizontal + change


def random_batch(rows: int = ROWS, side: int = SIDE) -> Batch:
    pixels = torch.randint(FIRST, FIRST + 2, (rows, side * side), generator=torch.Generator().manual_seed(1))
    lengths = torch.full((rows,), side * side)
    inputs = torch.cat([torch.full((rows, 1), BOS), pixels[:, :-1]], dim=1)
    return Batch(source=None, inputs=Padded(inputs, lengths), targets=Padded(pixels, lengths))


@torch.inference_mode()
def drawing(ours: Model, bare: BareModel, repeats: int) -> dict[str, dict[str, Any]]:
    """Milliseconds of processor time for so many pictures, and pictures per second."""
    inputs = random_batch(DRAWN, bare.side).inputs.values
    found: dict[str, list[float]] = {"Seqloom": [], UNIT: []}
    for turn in range(1 + repeats):  # the first warms up
        begin = time.process_time()
        Sampling(seed=turn)(ours.decoder, Memory.empty(DRAWN))
        between = time.process_time()
        for _ in range(TIMED):
            bare(inputs)
        end = time.process_time()
        if turn:
            found["Seqloom"].append(1000 * (between - begin))
            found[UNIT].append(1000 * (end - between) / TIMED * bare.side**2)
    ratios = [naive / own for own, naive in zip(found["Seqloom"], found[UNIT])]
    return {
        name: {
            "milliseconds": measuring.summary(each),
            "pictures_per_second": measuring.significant(1000 * DRAWN / measuring.median(each)),
            "ratio": measuring.median(ratios) if name == "Seqloom" else 1.0,
        }
        for name, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pixels", description="The speed of a PixelCNN.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/bench-pixels.json"))
    options = parser.parse_args()
    ours, bare = models()
    training = compare(updates(random_batch(), ours, bare), ROWS, options.repeats, "pictures")
    drawn = drawing(ours.eval(), bare.eval(), max(options.repeats // 3, 1))
    settings = {f"training, {ROWS} pictures": training, f"drawing {DRAWN} pictures": drawn}
    record = measuring.record(
        "pixels",
        torch.get_num_threads(),
        shape=f"{SIDE} x {SIDE} pixels of two levels, {LAYERS} layers of {SIZE}",
        repeats=options.repeats,
        settings=settings,
    )
    measuring.write(record, options.out)
    for setting, systems in settings.items():
        for name, each in systems.items():
            speed = f"{each['pictures_per_second']:.1f} pictures/s"
            median = each["milliseconds"]["median"]
            print(f"{setting:24} {name:10} {median:10.1f} ms  {speed}  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
