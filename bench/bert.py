"""The speed of an update of BERT's pre-training, beside the library transformers.

    OMP_NUM_THREADS=1 python -m bench.bert [--repeats N] [--out FILE]

Both models have the sizes of the recipe `bert`, read the same batch of masked texts and pairs, and take a step of
AdamW. They take turns, and times are processor times.
"""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench import measuring
from bench.conv_s2s import UNIT, compare
from seqloom.config.build import build_model
from seqloom.config.complete import complete
from seqloom.config.recipes import read_recipe
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import EOS
from seqloom.inference.filling import Lines
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.tasks.masked import Masked
from seqloom.types import COUNTED, Batch

WORDS, DOCUMENTS, LINES, TOKENS = 8_000, 40, 30, 4_096  # different words, and of the text; tokens of a batch


def batch_of_text(tokens: int = TOKENS, words: int = WORDS) -> tuple[Text, Batch]:
    """A codec, and a batch of a text of random words."""
    random = np.random.default_rng(1)
    lines = []
    for _ in range(DOCUMENTS):
        lines += [" ".join(f"w{word}" for word in random.integers(words, size=20)) for _ in range(LINES)] + [""]
    codec = Text(units="word", size=words, mask=True).fit([" ".join(f"w{word}" for word in range(words))])
    task = Masked(source=codec)
    text: Any = Lines.of(task, lines)
    plan = task.plan(text.lengths, tokens, 1, 0)
    largest = max(range(len(plan)), key=lambda number: len(plan[number]))
    return codec, task.collate(text, plan[largest])


def ours(codec: Text) -> Model:
    torch.manual_seed(1)
    return build_model(complete(read_recipe("bert"), "bert"), codec, codec).train()


def theirs(codec: Text) -> nn.Module:
    from transformers import BertConfig, BertForPreTraining

    torch.manual_seed(1)
    encoder = complete(read_recipe("bert"), "bert")["encoder"]
    config = BertConfig(
        vocab_size=codec.vocabulary,
        hidden_size=encoder["size"],
        num_hidden_layers=encoder["layers"],
        num_attention_heads=encoder["heads"],
        intermediate_size=encoder["hidden"],
        max_position_embeddings=encoder["longest"],
    )
    return BertForPreTraining(config).train()


def updates(model: Model, other: nn.Module, batch: Batch) -> dict[str, Callable[[], None]]:
    """One update of each."""
    assert batch.source is not None
    tokens, mask, ends = batch.source.values, batch.source.mask, batch.source.values == EOS
    counted = torch.as_tensor(batch.extra[COUNTED]) > 0
    counted[:, 0] = False
    inputs = {
        "input_ids": tokens,
        "attention_mask": mask.long(),
        "token_type_ids": (ends.cumsum(1) - ends.long()).clamp(max=1),
        "labels": torch.where(counted, batch.targets.values, -100),
        "next_sentence_label": (batch.targets.values[:, 0] != EOS).long(),
    }
    objective = CrossEntropy()

    def our_loss() -> Tensor:
        loss = objective(model, batch, 0.0)
        return loss.total / loss.count

    def their_loss() -> Tensor:
        loss: Tensor = other(**inputs).loss
        return loss

    return {"Seqloom": update(model, our_loss), UNIT: update(other, their_loss)}


def update(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bert", description="The speed of BERT's pre-training.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/bench-bert.json"))
    options = parser.parse_args()
    codec, batch = batch_of_text()
    count = int(batch.targets.lengths.sum())
    systems = compare(updates(ours(codec), theirs(codec), batch), count, options.repeats, "tokens")
    systems["transformers"] = systems.pop(UNIT)
    record = measuring.record(
        "bert",
        torch.get_num_threads(),
        ("torch", "numpy", "transformers"),
        shape=f"the recipe bert, {count:,} tokens, {codec.vocabulary:,} of a vocabulary",
        repeats=options.repeats,
        settings={"pre-training": systems},
    )
    measuring.write(record, options.out)
    for name, each in systems.items():
        print(f"{name:14} {each['milliseconds']['median']:8.1f} ms  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
