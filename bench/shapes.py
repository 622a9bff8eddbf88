"""The models that all systems build. This file needs only Python: workers in every environment read it."""

from __future__ import annotations

from typing import Any

Shape = dict[str, Any]
PAD, UNK, BOS, EOS = 0, 1, 2, 3  # in every system
LABEL_SMOOTHING, CLIP, LEARNING_RATE, BETAS = 0.1, 1.0, 5e-4, (0.9, 0.98)

TRANSFORMER: Shape = {
    "kind": "transformer",
    "size": 256,
    "hidden": 1024,
    "heads": 4,
    "layers": 3,  # each of encoder and decoder
    "dropout": 0.1,
}
LSTM: Shape = {
    "kind": "lstm",
    "size": 512,  # of embeddings and decoder, and of both directions of the encoder together
    "layers": 1,
    "dropout": 0.1,
    "input_feeding": False,
}
SHAPES: dict[str, Shape] = {
    "transformer": TRANSFORMER,
    "lstm": LSTM,
    "lstm-input-feeding": {**LSTM, "input_feeding": True},
}
