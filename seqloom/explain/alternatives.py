"""What else a model might have written: other outputs, and at each token the likeliest others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from seqloom.contracts import Search
from seqloom.inference.system import System, build_search
from seqloom.search.constraints.combined import Constraints
from seqloom.types import Hypothesis, Padded

RUNNERS_UP = 5


def searches(system: System, width: int, n_best: int, **settings: Any) -> tuple[Search, Search]:
    """The search that answers, and a wider one for all else there is to see; where the widths agree they are one."""
    wide = build_search(system, **{**settings, "beam_size": max(width, n_best), "n_best": n_best})
    return wide if width >= n_best else build_search(system, **{**settings, "beam_size": width, "n_best": 1}), wide


def answer_first(answer: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int) -> list[Hypothesis]:
    """What `predict` says, then the others of a wider beam; without an answer nothing."""
    return [*answer, *(one for one in others if one.tokens != answer[0].tokens)][:n_best] if answer else []


def allowed(constraints: Constraints, inputs: Padded, vocabulary: int) -> Tensor:
    """Which tokens might have stood in each place: the constraints of a search's first row, replayed.  (n, U, V)"""
    rows, device = len(inputs.lengths), inputs.values.device
    constraints = constraints.select(torch.zeros(rows, dtype=torch.long, device=device))
    places = []
    for token in inputs.values.unbind(1):
        constraints = constraints.step(token)
        places.append(constraints.forbid(torch.zeros(rows, vocabulary, device=device)) == 0)
    return torch.stack(places, dim=1)


def likeliest(log_probs: Tensor, chosen: int, piece: Callable[[int], str]) -> list[tuple[str, float]]:
    """The tokens that might have stood in a place with their probabilities, the chosen one among them.  (V,)"""
    best = log_probs.topk(min(RUNNERS_UP, len(log_probs)))
    ranked = dict(zip(best.indices.tolist(), best.values.exp().tolist()))
    if chosen not in ranked:  # a beam keeps unlikely tokens, too
        ranked[chosen] = float(log_probs[chosen].exp())
    return [(piece(token), value) for token, value in ranked.items() if value]
