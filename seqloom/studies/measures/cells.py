"""Measures of recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def next_token_accuracy(model: Predictor, data: Splits) -> Measures:
    """How often the likeliest next token is right under teacher forcing; and the metrics of the task."""
    import torch

    from seqloom.objectives.cross_entropy import CrossEntropy

    examples = test_examples(model, data)
    source, target = model.task.source, model.task.target
    assert source is not None
    correct = count = 0.0
    with torch.no_grad():
        for first in range(0, len(examples), 256):
            part = examples[first : first + 256]
            batch = model.task.batch(
                [source.read(example.source) for example in part],
                [target.encode(example.target, example.source) for example in part],
            )
            loss = CrossEntropy()(model.model, batch.to(model.device), 1.0)
            correct, count = correct + loss.logs["correct"].item(), count + loss.count.item()
    return {"accuracy": 100 * correct / count, **evaluate_test_set(model, data)}


def answer_accuracy(model: Predictor, data: Splits) -> Measures:
    """Of a running text: how often the likeliest next token is right, of the tokens that count in its loss."""
    from seqloom.tasks.text import RunningText

    assert isinstance(model.task, RunningText)
    tokens, right = right_tokens(model, [example.target for example in test_examples(model, data)])
    return {"accuracy": 100 * float(right[model.task.counted(tokens)].mean())}


def right_tokens(model: Predictor, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a running text, EOS after each line, and whether the model finds each likeliest.  (N,) each"""
    import torch

    from seqloom.data.special_tokens import EOS
    from seqloom.inference.running_text import CHUNK
    from seqloom.types import Padded, State

    tokens = np.concat([np.append(model.task.target.encode(line), EOS) for line in lines])
    text = torch.from_numpy(np.append(EOS, tokens)).to(model.device)
    memory, right = model.model.encode(None, rows=1), []
    state: State | None = None
    with torch.no_grad():
        for begin in range(0, len(tokens), CHUNK):
            read, wanted = text[begin : begin + CHUNK + 1][:-1], text[begin + 1 : begin + CHUNK + 1]
            output = model.model.decoder(
                memory, Padded(read[None], torch.tensor([len(read)], device=text.device)), state
            )
            state = output.state
            right.append((output.scores[0].argmax(-1) == wanted).cpu().numpy())
    return tokens, np.concat(right)


def accepted_lines(model: Predictor, data: Splits) -> Measures:
    """How many lines a^n b^n the model ends in the right place, given a^n b, by its likeliest tokens."""
    lines = [example.target for example in test_examples(model, data)]
    right = [model.generate(prefix=line[: len(line) // 2 + 1], argmax_every=1)[0] == line for line in lines]
    return {"accepted": 100 * sum(right) / len(right)}
