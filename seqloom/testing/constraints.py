"""What holds for every constraint: three outputs of up to twelve tokens, of a vocabulary of nine, or of five places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from seqloom.arrays import as_numpy
from seqloom.contracts import Constraint
from seqloom.data.special_tokens import BOS, EOS
from seqloom.testing.claims import require
from seqloom.testing.small import VOCABULARY
from seqloom.types import State, flatten, select

ROWS, LIMIT = 3, 12


def forbidden_tokens_score_minus_infinity_and_others_keep_their_score(constraint: Constraint) -> None:
    for scores, _, found, _ in _walk(constraint):
        require(found.shape == scores.shape, f"forbid() makes {found.shape} of scores (rows, V) {scores.shape}")
        same = (found == scores) | (found == -np.inf)
        require(same.all(), "forbid() changes scores of tokens that it allows: forbidden ones are -inf, others stay")


def following_it_never_leads_to_a_dead_end(constraint: Constraint) -> None:
    for seed in range(20):
        for place, (_, _, found, live) in enumerate(_walk(constraint, seed=seed)):
            allowed = (found > -np.inf)[live]
            require(allowed.any(1).all(), f"after {place} tokens that it allowed, none may follow")
            if place == LIMIT - 1:
                wrong = f"EOS is forbidden at the limit of {LIMIT} tokens: force earlier what must still come"
                require(allowed[:, EOS].all(), wrong)


def permuting_rows_commutes_with_a_step(constraint: Constraint) -> None:
    order = np.array([2, 0, 1])
    for scores, state, found, _ in _walk(constraint):
        permuted = as_numpy(constraint.forbid(scores[order].copy(), select(state, order)))
        wrong = "permuted rows are not treated as the rows they are: every entry of the state must have rows first"
        require(np.array_equal(permuted, found[order]), wrong)


def a_step_changes_nothing_it_was_given(constraint: Constraint) -> None:
    for _, state, _, _ in _walk(constraint):
        before = {name: as_numpy(value).copy() for name, value in flatten(state).items()}
        constraint.step(np.full(ROWS, 5), state)
        same = all(np.array_equal(before[name], as_numpy(value)) for name, value in flatten(state).items())
        require(same, "step() changes the state that it was given: make a new one")


def torch_gives_what_numpy_gives(constraint: Constraint) -> None:
    plain, tensors = _walk(constraint), _walk(constraint, tensors=True)
    for place, ((_, _, ours, _), (_, _, theirs, _)) in enumerate(zip(plain, tensors, strict=True)):
        wrong = f"after {place} tokens torch tensors get other scores than numpy arrays: use arrays.namespace"
        require(np.array_equal(ours, as_numpy(theirs)), wrong)


def _walk(
    constraint: Constraint, seed: int = 1, tensors: bool = False
) -> Iterator[tuple[Any, State, np.ndarray, np.ndarray]]:
    """Random outputs that the constraint allows, token by token: scores, the state, the scores after forbid, and which
    rows have not ended.
    """
    chance, over = np.random.default_rng(seed), np.zeros(ROWS, dtype=bool)

    def array(values: Any) -> Any:
        return torch.from_numpy(np.array(values)) if tensors else np.array(values)

    state = constraint.step(array([BOS] * ROWS), constraint.start(ROWS, array([LIMIT] * ROWS)))
    for _ in range(LIMIT):
        scores = chance.normal(size=(ROWS, VOCABULARY))
        found = as_numpy(constraint.forbid(array(scores), state))
        yield scores, state, found, ~over
        weights = (found > -np.inf) & ~np.isin(np.arange(VOCABULARY), (0, 1, BOS))
        weights = np.where(weights.any(1, keepdims=True), weights, found > -np.inf)
        token = [chance.choice(VOCABULARY, p=row / row.sum()) if row.any() else EOS for row in weights]
        over |= np.array(token) == EOS
        state = constraint.step(array(token), state)
