"""Alternatives to an output: other hypotheses, and at each token its runners-up."""

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


def build_searches(system: System, n_best: int, **settings: Any) -> tuple[Search, Search]:
    """The search that answers, and one that is wide enough for n_best outputs: the same one if its beam is."""
    width = settings.pop("beam_size", system.recipe["search"].get("beam_size", 5))
    wide = build_search(system, **{**settings, "beam_size": max(width, n_best), "n_best": n_best})
    return wide if width >= n_best else build_search(system, **{**settings, "beam_size": width, "n_best": 1}), wide


def answer_first(answer: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The answer of `predict`, then the other outputs of the wider beam; empty without an answer."""
    return [*answer, *(one for one in others if one.tokens != answer[0].tokens)][:n_best] if answer else []


def allowed_tokens(constraints: Constraints, inputs: Padded, vocabulary: int) -> Tensor:
    """Which tokens the constraints allow at each position; they are those of a search's first row.  (n, U, V)"""
    rows, device = len(inputs.lengths), inputs.values.device
    constraints = constraints.select(torch.zeros(rows, dtype=torch.long, device=device))
    allowed = []
    for token in inputs.values.unbind(1):
        constraints = constraints.step(token)
        allowed.append(constraints.forbid(torch.zeros(rows, vocabulary, device=device)) == 0)
    return torch.stack(allowed, dim=1)


def likeliest(log_probs: Tensor, chosen: int, piece: Callable[[int], str]) -> list[tuple[str, float]]:
    """The likeliest tokens of one position with their probabilities, the chosen one among them.  (V,)"""
    best = log_probs.topk(min(RUNNERS_UP, len(log_probs)))
    ranked = dict(zip(best.indices.tolist(), best.values.exp().tolist()))
    if chosen not in ranked:  # a beam keeps unlikely tokens, too
        ranked[chosen] = float(log_probs[chosen].exp())
    return [(piece(token), value) for token, value in ranked.items() if value]
