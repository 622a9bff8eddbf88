"""The training speed of lip reading with sound (WLAS), relative to a bare loop of the same parts.

    OMP_NUM_THREADS=1 python -m bench.lips [--repeats N] [--out FILE]

The bare model has our weights: the bare pictures of bench.captions over windows of five frames, nn.LSTM for frames and
sound, two additive attentions written out over all letters at once. An update is loss, gradients, clipping and AdamW.
Both take turns, and times are processor times.
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
from bench.captions import BarePictures, updates
from bench.conv_s2s import compare, copied
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.several import Several as AttendToSeveral
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.image import Image
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.several import Several
from seqloom.nn.encoders.video import Video
from seqloom.nn.model import Model
from seqloom.types import Batch, Composite, Padded

LETTERS, SHAPE, FEATURES = 30, (12, 12, 1), 160  # as in lips-and-sound
ROWS, FRAMES, SOUNDS, LENGTH, WINDOW = 16, 64, 64, 24, 5
PICTURE, EMBEDDED, SIZE, LETTER, HIDDEN, DROPOUT = 64, 128, 128, 32, 96, 0.1


def models() -> tuple[Model, BareModel]:
    """Ours and the bare one, with the same weights."""
    torch.manual_seed(1)
    vectors = partial(Recurrent, embedding_size=EMBEDDED, size=SIZE, reverse=True)
    film = partial(Video, window=WINDOW, image=partial(Image, size=PICTURE, patch=2, stages=2), encoder=vectors)
    inputs = {"": {"shape": SHAPE}, "sound": {"features": FEATURES}}
    encoder = Several(inputs=inputs, encoder=film, parts={"sound": vectors})
    decoder = Decoder(
        vocabulary=LETTERS,
        memory_size=SIZE,
        bos=BOS,
        eos=EOS,
        embedding_size=LETTER,
        size=SIZE,
        attention=partial(AttendToSeveral, attention=partial(Additive, size=HIDDEN)),
        dropout=DROPOUT,
    )
    ours = Model(encoder, decoder)
    return ours, BareModel(ours)


class BareModel(nn.Module):
    """Films (B, T, H, W, C), sounds (B, S, features), inputs (B, U) -> scores (B, U, letters)."""

    def __init__(self, ours: Model):
        super().__init__()
        encoder: Any = ours.encoder
        decoder: Any = ours.decoder
        self.pictures = BarePictures(encoder.encoder.image)
        both = (encoder.encoder.encoder, encoder.parts["sound"])
        self.layers = nn.ModuleList(copied(each.embedding) for each in both)
        self.lstms = nn.ModuleList(lstm(EMBEDDED, each.forwards[0]) for each in both)
        self.summary, self.start = copied(encoder.summary), copied(decoder.bridging)
        self.embedding, self.lstm = copied(decoder.embedding), lstm(LETTER, decoder.stack.cells[0])
        attentions = decoder.attention.attentions.values()
        self.queries = nn.ModuleList(without_bias(each.query) for each in attentions)
        self.keys = nn.ModuleList(copied(each.key) for each in attentions)
        self.energies = nn.ParameterList(each.energy.weight[0].detach() for each in attentions)
        self.join, self.output = copied(decoder.join), copied(decoder.output)

    def drop(self, values: Tensor) -> Tensor:
        return functional.dropout(values, DROPOUT, self.training)

    def forward(self, films: Tensor, sounds: Tensor, inputs: Tensor) -> Tensor:
        rows, count, *shape = films.shape
        padded = torch.cat([films[:, :1].expand(rows, WINDOW - 1, *shape), films], dim=1)
        windows = padded.unfold(1, WINDOW, 1).permute(0, 1, 5, 4, 2, 3).float()  # (B, T, window, C, H, W)
        _, vectors = self.pictures(windows.flatten(2, 3).flatten(0, 1))
        states, summaries = [], []
        for layer, network, values in zip(self.layers, self.lstms, (vectors.view(rows, count, -1), sounds)):
            outputs, (last, _) = network(layer(values).flip(1))
            states.append(outputs)
            summaries.append(last[0])
        summary = self.summary(torch.cat(summaries, dim=-1))
        hidden, cell = torch.tanh(self.start(summary))[None].chunk(2, dim=-1)
        outputs, _ = self.lstm(self.drop(self.embedding(inputs)), (hidden.contiguous(), cell.contiguous()))
        contexts = []
        for query, key, energy, values in zip(self.queries, self.keys, self.energies, states):
            scores = torch.tanh(query(outputs)[:, :, None] + key(values)[:, None]) @ energy  # (B, U, T)
            contexts.append(scores.softmax(-1) @ values)
        return self.output(self.drop(torch.tanh(self.join(torch.cat([*contexts, outputs], dim=-1)))))


def lstm(inputs: int, ours: Any) -> nn.LSTM:
    made = nn.LSTM(inputs, SIZE, batch_first=True)
    made.load_state_dict(ours.kernel.state_dict())
    return made


def without_bias(ours: Any) -> nn.Linear:
    made = nn.Linear(ours.in_features, ours.out_features, bias=False)
    made.load_state_dict(ours.state_dict())
    return made


def random_batch(rows: int = ROWS, frames: int = FRAMES) -> Batch:
    """Films of one length, and texts of 12 to 24 letters, sorted."""
    generator = np.random.default_rng(1)
    lengths = np.sort(generator.integers(12, LENGTH + 1, rows))[::-1]
    targets = [generator.integers(len(SPECIAL), LETTERS, length) for length in lengths]
    sources = [
        Composite(
            generator.integers(0, 256, (frames, *SHAPE), dtype=np.uint8),
            {"sound": generator.normal(size=(frames * SOUNDS // FRAMES, FEATURES)).astype(np.float32)},
        )
        for _ in range(rows)
    ]
    return Batch(
        source=Padded.stack(sources),
        inputs=Padded.stack([np.append(BOS, each) for each in targets], PAD),
        targets=Padded.stack([np.append(each, EOS) for each in targets], PAD),
    ).to("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lips", description="The speed of lip reading.")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("results/bench-lips.json"))
    options = parser.parse_args()
    found = compare(updates(random_batch(), *models()), ROWS * FRAMES, options.repeats, "frames")
    record = measuring.record(
        "lips",
        torch.get_num_threads(),
        shape=f"{SHAPE[0]} x {SHAPE[1]} pixels, {FRAMES} frames and {SOUNDS} vectors of sound, LSTMs of {SIZE}",
        repeats=options.repeats,
        settings={f"training, {ROWS} films": found},
    )
    measuring.write(record, options.out)
    for name, each in found.items():
        speed = f"{each['frames_per_second']:.0f} frames/s"
        print(f"{name:10} {each['milliseconds']['median']:8.1f} ms  {speed}  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
