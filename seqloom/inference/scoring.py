"""The log-probability of given targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from seqloom.errors import SeqloomError
from seqloom.inference.find import batches
from seqloom.inference.running_text import line_log_probs
from seqloom.inference.system import System, as_examples, encode_source, refuse_masked
from seqloom.tasks.text import RunningText


@torch.inference_mode()
def score(system: System, pairs: Iterable[Any]) -> list[float]:
    """The log-probability of each target given its source; a language model takes the targets alone.

    For series of vectors it is the logarithm of their density. For running text these are the lines, each given all
    lines before it.
    """
    refuse_masked(system)
    task, model = system.task, system.model
    source, target = task.source, task.target
    if target.vocabulary is None and model.is_head:
        raise SeqloomError("this run outputs numbers, which have no log-probabilities: use `evaluate`")
    examples = as_examples(system, pairs)
    if isinstance(task, RunningText):
        return line_log_probs(model, task, [example.target for example in examples])
    sources = None if source is None else [encode_source(system, example.source) for example in examples]
    targets = [target.encode(example.target, example.source) for example in examples]
    scores = [0.0] * len(examples)
    longest = [max([len(each) + 1, *map(len, sources[row] if sources else ())]) for row, each in enumerate(targets)]
    for rows in batches(longest):
        batch = task.batch(None, [targets[row] for row in rows]).to(model.device)
        if sources is not None:
            batch = replace(batch, source=model.pad([sources[row] for row in rows]))
        memory = model.encode(batch.source, len(rows))
        log_probs = model.decoder.log_prob(memory, batch.inputs, batch.targets)
        for row, total in zip(rows, log_probs.tolist()):
            scores[row] = total
    return scores
