"""Random words, and recipes small enough to learn from them in a second or two."""

import random
from collections.abc import Sequence
from typing import Any

LETTERS = "abcde"
Recipe = dict[str, Any]


def words(count: int, lengths: Sequence[int], seed: int = 1) -> list[str]:
    """Different words of random letters, in random order: those held out are unseen."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choices(LETTERS, k=chance.choice(lengths)))] = None
    return list(found)


def recipe(encoder: Recipe, decoder: Recipe, **train: Any) -> Recipe:
    text = {"type": "text", "units": "char"}
    return {
        "seed": 1,
        "search": {"type": "beam", "beam_size": 1},
        "task": {"source": text, "target": text, "metrics": ["exact", "cer"]},
        "encoder": encoder,
        "decoder": decoder,
        "train": {"schedule": "cosine", "warmup": 20, "validate_every": 10_000, "device": "cpu", **train},
    }


def lstm(steps: int, *, attention: bool = True, size: int = 48, tokens: int = 256) -> Recipe:
    decoder: Recipe = {"type": "recurrent", "embedding_size": 32, "size": size}
    if attention:
        decoder["attention"] = {"type": "additive", "size": 32}
    encoder = {"type": "recurrent", "embedding_size": 32, "size": size, "bidirectional": True}
    return recipe(encoder, decoder, steps=steps, learning_rate=1e-2, tokens=tokens)


def transformer(steps: int, **encoder: Any) -> Recipe:
    part = {"type": "transformer", "size": 32, "layers": 2, "heads": 4, "hidden": 64, "dropout": 0.0}
    return recipe({**part, **encoder}, part, steps=steps, learning_rate=5e-3, tokens=384)
