"""What holds for every attention; monotonic ones may find nothing, and depend on the order of the source."""

import pytest
import torch

from seqloom.types import Memory, select
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


def start(attention, memory, rows):
    """A prepared memory, and the state of so many rows."""
    prepared = attention.prepare(memory)
    return prepared, select(attention.start(prepared), prepared.owner(rows))


def attend(attention, query, memory):
    return attention(query, *start(attention, memory, len(query)), weights=True)


def test_weights_are_distributions_over_real_positions(attention, memory):
    context, _, weights = attend(attention, queries(3, 5), memory)
    assert context.shape == (3, 5, attention.output_size)
    assert weights.shape[0] == 3
    assert weights.shape[2:] == (5, 4)
    total = weights.sum(-1)
    if attention.monotonic:
        assert (weights >= 0).all()
        assert (total <= 1 + 1e-12).all()
        assert (total.diff(dim=-1) <= 1e-12).all()  # who has passed the end does not come back
    else:
        torch.testing.assert_close(total, torch.ones_like(total))
    assert not weights.masked_select(~memory.mask[:, None, None]).any()


def test_asking_for_weights_changes_nothing(attention, memory):
    query = queries(3, 5)
    context, _, none = attention(query, *start(attention, memory, 3))
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


def test_queries_one_by_one_are_all_at_once(attention, memory):
    query = queries(6, 5)
    context, _, weights = attend(attention, query, memory)
    prepared, state = start(attention, memory, 6)
    for place in range(5):
        one, state, weight = attention(query[:, place : place + 1], prepared, state, weights=True)
        torch.testing.assert_close(one[:, 0], context[:, place])
        torch.testing.assert_close(weight[:, :, 0], weights[:, :, place])


def test_the_state_is_that_after_each_rows_last_real_query(attention, memory):
    query, further = queries(3, 4), queries(3, 2)
    prepared, state = start(attention, memory, 3)
    real = torch.tensor([4, 0, 2])
    _, after, _ = attention(query, prepared, state, lengths=real)
    context, _, _ = attention(further, prepared, after)
    for row, count in enumerate(real):
        alone, ours = prepared.select(torch.tensor([row])), select(state, torch.tensor([row]))
        _, ours, _ = attention(query[row : row + 1, :count], alone, ours) if count else (None, ours, None)
        torch.testing.assert_close(context[row], attention(further[row : row + 1], alone, ours)[0][0])


def test_permuting_the_source_permutes_the_weights_only(attention, memory):
    if attention.monotonic:
        pytest.skip("what comes first is found first")
    order = torch.tensor([2, 0, 3, 1])
    full = Memory(memory.states, torch.tensor([4, 4, 4]))
    query = queries(3, 2)
    context, _, weights = attend(attention, query, full)
    moved, _, moved_weights = attend(attention, query, Memory(full.states[:, order], full.lengths))
    torch.testing.assert_close(moved, context)
    torch.testing.assert_close(moved_weights, weights[..., order])


def test_every_parameter_gets_a_gradient(attention, memory):
    attention.train()  # what is chosen outside training may have none
    attend(attention, queries(3, 2).requires_grad_(), memory)[0].pow(2).sum().backward()
    assert [name for name, value in attention.named_parameters() if value.grad is None or not value.grad.any()] == []
