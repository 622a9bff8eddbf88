"""What holds for every head: a decoder without step, which says its output at once."""

from itertools import product

import pytest
import torch

from seqloom.errors import SeqloomError
from seqloom.types import Padded
from tests.building import BOS, UNK, VOCABULARY, cases, memory_for, shortened, unprepared


@pytest.fixture(params=cases("decoders", heads=True))
def head(request):
    return request.param()


@pytest.fixture
def memory(head):
    return memory_for(head)


def inputs(head, memory, rows=None):
    """What teacher forcing gives it: as many positions as it answers."""
    answer = head.answer(memory)
    owner = memory.owner(rows or memory.rows)
    return Padded(torch.zeros_like(answer.values[owner]), answer.lengths[owner])


def test_a_head_has_no_step_and_says_so(head, memory):
    with pytest.raises(SeqloomError, match="at once"):
        head.step(torch.zeros(memory.rows, dtype=torch.long), head.start(memory), memory)
    assert head.eos is None


def test_an_answer_is_what_is_trained(head, memory):
    answer = head.answer(memory)
    if answer.values.is_floating_point():
        torch.testing.assert_close(answer.values, head(memory, inputs(head, memory)).scores)
    else:
        best = log_prob(head, memory, answer)
        for place, token in product(range(answer.values.shape[1]), range(UNK + 1, VOCABULARY)):
            other = answer.values.clone()
            other[:, place] = token
            assert (log_prob(head, memory, Padded(other, answer.lengths)) <= best).all()


def log_prob(head, memory, output):
    """The log-probability of an output, given itself as the inputs of teacher forcing."""
    before = torch.cat([torch.full_like(output.values[:, :1], BOS), output.values[:, :-1]], dim=1)
    return head.log_prob(memory, Padded(before, output.lengths), output)


def test_rows_do_not_see_each_other_and_padding_of_the_memory_changes_nothing(head, memory):
    answer = head.answer(memory)
    for row, own in enumerate(answer.lengths.tolist()):
        alone = head.prepare(shortened(unprepared(head), row))
        torch.testing.assert_close(head.answer(alone).values[0, :own], answer.values[row, :own])


def test_several_rows_a_source_are_as_if_the_memory_were_repeated(head, memory):
    repeated = memory.select(memory.owner(6))
    torch.testing.assert_close(
        head(memory, inputs(head, memory, 6)).scores, head(repeated, inputs(head, repeated)).scores
    )


def test_every_parameter_gets_a_gradient(head, memory):
    read = memory.states.requires_grad_(), memory.final["summary"].requires_grad_()
    scores = head(memory, inputs(head, memory)).scores
    scores[scores.isfinite()].pow(2).sum().backward()
    assert any(each.grad is not None and each.grad.any() for each in read)
    assert [name for name, value in head.named_parameters() if value.grad is None or not value.grad.any()] == []
