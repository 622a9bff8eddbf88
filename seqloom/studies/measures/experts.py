"""Measures of mixtures of experts: the loss, and how evenly the experts of an encoder share the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

ROWS = 500  # sources read at a time


def loss_and_balance(model: Predictor, data: Splits) -> Measures:
    """Nats per tag and the task's metrics; with experts the entropy of importance and of load over its maximum."""
    import torch

    from seqloom.nn.ops.balance import evenness

    examples = test_examples(model, data)
    tags = sum(len(example.target.split()) for example in examples)
    found = {"loss": -sum(model.score(examples)) / tags, **evaluate_test_set(model, data)}
    for name, sums in expert_sums(model, [example.source for example in examples]).items():
        found[name] = float(torch.stack([evenness(each) for each in sums]).mean())
    return found


def expert_sums(model: Predictor, sources: list[Any]) -> dict[str, list[Any]]:
    """Importance and load of each expert over these sources, one tensor per layer of the encoder; {} if none."""
    import torch

    from seqloom.objectives.cross_entropy import expert_shares
    from seqloom.types import Padded

    source = model.task.source
    assert source is not None
    found: dict[str, list[Any]] = {}
    with torch.no_grad():
        for first in range(0, len(sources), ROWS):
            read = Padded.stack([source.read(each) for each in sources[first : first + ROWS]])
            for name, layers in expert_shares(model.model.encode(read.to(model.device)).costs).items():
                before = found.get(name, [0] * len(layers))
                found[name] = [one + other for one, other in zip(before, layers)]
    return found


def keys_by_expert(model: Predictor, data: Splits) -> dict[str, Any]:
    """Of each key of the task `piecewise`, the share of its positions that each expert of the last layer takes."""
    by_key: dict[str, list[Any]] = {}
    for example in test_examples(model, data):
        by_key.setdefault(example.source.split()[0], []).append(example.source)
    shares = []
    for key in sorted(by_key, key=lambda name: int(name[1:])):
        load = expert_sums(model, by_key[key]).get("load")
        if load is None:
            return {"shares": []}
        shares.append((load[-1] / load[-1].sum()).tolist())
    return {"shares": shares}
