"""What a head answers: the likeliest tokens, or vectors, at once and without a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError, shown
from seqloom.inference.find import Prediction, batches
from seqloom.inference.system import System, encode_source, pieces
from seqloom.types import Memory, Output, Padded

Answer = tuple[list[float], Any]  # log-probabilities of its tokens, and the tokens or vectors


@torch.inference_mode()
def answers(
    system: System, sources: Sequence[Any], *, n_best: int = 1, details: bool = True, search: Any = None, **options: Any
) -> list[list[Prediction]]:
    """The n_best answers for each source. A validation brings a search of its own, which is not used."""
    task, model = system.task, system.model
    one_token = task.target.vocabulary is not None and not model.decoder.per_token
    refused = [name for name, value in options.items() if value] or ["n_best"] * (n_best > 1 and not one_token)
    if n_best < 1:
        raise SeqloomError(f"n_best = {shown(n_best)}: expected 1 or more")
    if refused:
        raise SeqloomError(f"this run answers at once, without a search: leave out {', '.join(refused)}")
    encoded = [encode_source(system, source) for source in sources]
    found: list[list[Prediction]] = [[] for _ in sources]
    for rows in batches([max(map(len, each)) for each in encoded]):
        memory = model.encode(model.pad([encoded[row] for row in rows]))
        for row, best in zip(rows, answers_of(system, memory, n_best)):
            found[row] = [
                Prediction(task.decode(output, sources[row]), sum(scores), pieces(task.target, output), scores)
                for scores, output in best
            ]
    return found


def answers_of(system: System, memory: Memory, n_best: int) -> list[list[Answer]]:
    """The answers for each source of a memory: of one token the n_best, of several or of vectors the best."""
    head = system.model.decoder
    if system.task.target.vocabulary is not None and not head.per_token:
        scores = head_output(system, memory, one_bos(system, memory)).scores[:, 0].log_softmax(-1)  # (B, V)
        return [ranked(each, n_best) for each in scores.cpu().numpy()]
    best = head.answer(memory)
    log_probs = chosen_log_probs(system, memory, best).tolist() if head.per_token else [[]] * memory.rows
    lengths = best.lengths.tolist()
    rows = zip(best.values.cpu(), log_probs, lengths)
    return [[(scores[:length], value[:length])] for value, scores, length in rows]


def chosen_log_probs(system: System, memory: Memory, answer: Padded) -> Tensor:
    """The log-probability of each token of an answer, given those before it.  (B, T)"""
    log_probs = head_output(system, memory, after_bos(system, answer)).scores.log_softmax(-1)
    return log_probs.gather(-1, answer.values[:, :, None])[:, :, 0]


def head_output(system: System, memory: Memory, inputs: Padded, attention: bool = False) -> Output:
    """What a head computes for each source: the scores of its tokens."""
    output: Output = system.model.decoder(memory, inputs, attention=attention)
    return output


def one_bos(system: System, memory: Memory) -> Padded:
    """The input of a head that answers with one token."""
    ones = memory.lengths.new_ones(memory.rows)
    return Padded(torch.full_like(ones, system.task.bos)[:, None], ones)


def after_bos(system: System, answer: Padded) -> Padded:
    """The inputs of a head that answers with these tokens: BOS, and all but the last."""
    first = torch.full_like(answer.values[:, :1], system.task.bos)
    return Padded(torch.cat([first, answer.values[:, :-1]], dim=1), answer.lengths)


def ranked(log_probs: np.ndarray, n_best: int) -> list[Answer]:
    """The likeliest answers, special tokens left out; an empty one where all are equally likely.  (V,)"""
    words = log_probs[len(SPECIAL) :]
    if len(words) > 1 and words.max() == words.min():  # a reader found no word that it could answer with
        return [([float(words[0])], np.empty(0, dtype=np.int64))]
    best = np.argsort(-words, kind="stable")[: min(n_best, np.count_nonzero(np.exp(words)))]
    return [([float(words[each])], np.array([each + len(SPECIAL)])) for each in best]
