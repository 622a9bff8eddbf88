"""Measures of recurrent cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.studies.study import Measures, Splits, evaluate_test_set, test_examples

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


def accepted_lines(model: Predictor, data: Splits) -> Measures:
    """How many lines a^n b^n the model ends in the right place, given a^n b, by its likeliest tokens."""
    lines = [example.target for example in test_examples(model, data)]
    right = [model.generate(prefix=line[: len(line) // 2 + 1], argmax_every=1)[0] == line for line in lines]
    return {"accepted": 100 * sum(right) / len(right)}
