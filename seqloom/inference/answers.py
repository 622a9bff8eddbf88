"""What a head answers: the likeliest tokens, or vectors, at once and without a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from seqloom.contracts import Decoder
from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError
from seqloom.inference.find import Prediction, batches
from seqloom.inference.system import System, encode_source, pieces
from seqloom.types import Memory, Output, Padded


@torch.inference_mode()
def answers(
    system: System, sources: Sequence[Any], *, n_best: int = 1, details: bool = True, search: Any = None, **options: Any
) -> list[list[Prediction]]:
    """The n_best answers for each source. A validation brings a search of its own, which is not used."""
    task, model = system.task, system.model
    has_tokens = task.target.vocabulary is not None
    refused = [name for name, value in options.items() if value] or ["n_best"] * (n_best > 1 and not has_tokens)
    if refused:
        raise SeqloomError(f"this run answers at once, without a search: leave out {', '.join(refused)}")
    encoded = [encode_source(system, source) for source in sources]
    found: list[list[Prediction]] = [[] for _ in sources]
    for rows in batches([max(map(len, each)) for each in encoded]):
        memory = model.encode(model.pad([encoded[row] for row in rows]))
        if has_tokens:
            scores = head_output(system, memory).scores[:, 0].log_softmax(-1)  # (B, V)
            outputs = [ranked(each, n_best) for each in scores.cpu().numpy()]
        else:
            vectors = model.decoder.answer(memory)
            outputs = [[(0.0, value[:length])] for value, length in zip(vectors.values.cpu(), vectors.lengths.tolist())]
        for row, best in zip(rows, outputs):
            found[row] = [
                Prediction(
                    task.decode(output, sources[row]),
                    score,
                    pieces(task.target, output),
                    [score] if has_tokens else [],
                )
                for score, output in best
            ]
    return found


def head_output(system: System, memory: Memory, attention: bool = False) -> Output:
    """What a head computes for each source: the scores of one token."""
    head: Decoder = system.model.decoder
    ones = memory.lengths.new_ones(memory.rows)
    output: Output = head(memory, Padded(torch.full_like(ones, system.task.bos)[:, None], ones), attention=attention)
    return output


def ranked(log_probs: np.ndarray, n_best: int) -> list[tuple[float, np.ndarray]]:
    """The likeliest answers, special tokens left out; an empty one where all are equally likely.  (V,)"""
    words = log_probs[len(SPECIAL) :]
    if len(words) > 1 and words.max() == words.min():  # a reader found no word that it could answer with
        return [(float(words[0]), np.empty(0, dtype=np.int64))]
    best = np.argsort(-words, kind="stable")[: min(n_best, np.count_nonzero(np.exp(words)))]
    return [(float(words[each]), np.array([each + len(SPECIAL)])) for each in best]
