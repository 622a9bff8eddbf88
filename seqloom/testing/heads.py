"""What holds for every head: a decoder without step, which gives its output at once."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from seqloom.contracts import Head
from seqloom.data.special_tokens import BOS, UNK
from seqloom.errors import SeqloomError
from seqloom.testing.claims import refused, require, require_gradients, require_same
from seqloom.testing.small import VOCABULARY, memory_for, shortened, unprepared
from seqloom.types import Memory, Padded


def a_head_has_no_step_and_says_so(head: Head) -> None:
    memory = memory_for(head)
    with refused(SeqloomError, "at once", "a head answers at once: leave step() out"):
        head.step(torch.zeros(memory.rows, dtype=torch.long), head.start(memory), memory)
    require(head.eos is None, f"a head ends no output by a token: eos must be None, not {head.eos}")


def an_answer_is_what_is_trained(head: Head) -> None:
    memory = memory_for(head)
    answer = head.answer(memory)
    if answer.values.is_floating_point():
        scores = head(memory, _inputs(head, memory)).scores
        require_same(answer.values, scores, "answer() gives other numbers than forward() is trained on")
        return
    best = _log_prob(head, memory, answer)
    for place, token in product(range(answer.values.shape[1]), range(UNK + 1, VOCABULARY)):
        other = answer.values.clone()
        other[:, place] = token
        likelier = _log_prob(head, memory, Padded(other, answer.lengths)) > best
        require(not likelier.any(), f"answer() is not the likeliest output: token {token} at place {place} is likelier")


def rows_do_not_see_each_other_and_padding_of_the_memory_changes_nothing(head: Head) -> None:
    answer = head.answer(memory_for(head))
    for row, own in enumerate(answer.lengths.tolist()):
        alone = head.prepare(shortened(unprepared(head), row))
        wrong = f"row {row} has another answer in a batch than alone: rows see each other, or padding leaks"
        require_same(head.answer(alone).values[0, :own], answer.values[row, :own], wrong)


def several_rows_per_source_are_as_if_the_memory_were_repeated(head: Head) -> None:
    memory = memory_for(head)
    repeated = memory.select(memory.owner(6))
    found, expected = head(memory, _inputs(head, memory, 6)).scores, head(repeated, _inputs(head, repeated)).scores
    wrong = "2 rows per source are not scored as with the memory repeated: row r reads entry memory.owner(rows)[r]"
    require_same(found, expected, wrong)


def every_parameter_gets_a_gradient(head: Head) -> None:
    memory = memory_for(head)
    read = [memory.states.requires_grad_(), memory.final["summary"].requires_grad_()]
    scores = head(memory, _inputs(head, memory)).scores
    scores[scores.isfinite()].pow(2).sum().backward()
    reached = any(value.grad is not None and value.grad.any() for value in read)
    require(
        reached, "no gradient reaches the memory, neither its states nor its summary: the encoder would learn nothing"
    )
    require_gradients(head)


def _inputs(head: Head, memory: Memory, rows: int | None = None) -> Padded:
    """What teacher forcing gives it: as many positions as it answers."""
    answer = head.answer(memory)
    owner = memory.owner(rows or memory.rows)
    return Padded(torch.zeros_like(answer.values[owner]), answer.lengths[owner])


def _log_prob(head: Head, memory: Memory, output: Padded) -> Tensor:
    """The log-probability of an output, given itself as the inputs of teacher forcing.  (rows,)"""
    before = torch.cat([torch.full_like(output.values[:, :1], BOS), output.values[:, :-1]], dim=1)
    return head.log_prob(memory, Padded(before, output.lengths), output)
