"""What holds for every attention."""

import pytest
import torch

from seqloom.types import Memory
from tests.building import SMALL, cases

lengths = torch.tensor([4, 2, 3])


@pytest.fixture(params=cases("attention"))
def attention(request):
    return request.param()


@pytest.fixture
def memory():
    return Memory(torch.randn(3, 4, SMALL["memory_size"], dtype=torch.float64), lengths)


def queries(rows, count):
    return torch.randn(rows, count, SMALL["query_size"], dtype=torch.float64)


def attend(attention, query, memory):
    prepared = attention.prepare(memory)
    return attention(query, prepared, attention.start(prepared), weights=True)


def test_weights_are_distributions_over_real_positions(attention, memory):
    context, _, weights = attend(attention, queries(3, 5), memory)
    assert context.shape == (3, 5, attention.output_size)
    assert weights.shape[0] == 3
    assert weights.shape[2:] == (5, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert not weights.masked_select(~memory.mask[:, None, None]).any()


def test_asking_for_weights_changes_nothing(attention, memory):
    query = queries(3, 5)
    prepared = attention.prepare(memory)
    context, _, none = attention(query, prepared, attention.start(prepared))
    assert none is None
    torch.testing.assert_close(context, attend(attention, query, memory)[0])


def test_several_rows_a_source_are_as_if_the_memory_were_repeated(attention, memory):
    query = queries(6, 2)
    context, _, weights = attend(attention, query, memory)
    repeated, _, repeated_weights = attend(attention, query, memory.select(memory.owner(6)))
    torch.testing.assert_close(context, repeated)
    torch.testing.assert_close(weights, repeated_weights)


def test_padding_changes_nothing(attention, memory):
    query = queries(3, 2)
    context, _, _ = attend(attention, query, memory)
    longer = Memory(torch.cat([memory.states, torch.full_like(memory.states, 7.0)], dim=1), lengths)
    torch.testing.assert_close(attend(attention, query, longer)[0], context)


def test_permuting_the_source_permutes_the_weights_only(attention, memory):
    order = torch.tensor([2, 0, 3, 1])
    full = Memory(memory.states, torch.tensor([4, 4, 4]))
    query = queries(3, 2)
    context, _, weights = attend(attention, query, full)
    moved, _, moved_weights = attend(attention, query, Memory(full.states[:, order], full.lengths))
    torch.testing.assert_close(moved, context)
    torch.testing.assert_close(moved_weights, weights[..., order])


def test_every_parameter_gets_a_gradient(attention, memory):
    attend(attention, queries(3, 2).requires_grad_(), memory)[0].pow(2).sum().backward()
    assert [name for name, value in attention.named_parameters() if value.grad is None or not value.grad.any()] == []
