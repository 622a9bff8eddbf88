"""What holds for every attention. Monotonic ones may find nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from seqloom.contracts import Attention
from seqloom.testing.claims import require, require_gradients, require_same
from seqloom.testing.small import SMALL
from seqloom.types import Memory, State, select

LENGTHS = torch.tensor([4, 2, 3])


def weights_are_distributions_over_real_positions(attention: Attention) -> None:
    memory = _memory()
    context, _, weights = _attend(attention, _queries(3, 5), memory)
    wanted = (3, 5, attention.output_size)
    require(context.shape == wanted, f"contexts have shape {tuple(context.shape)}, not (rows, Q, output_size) {wanted}")
    require(weights is not None, "no weights are returned, though weights=True asks for them")
    assert weights is not None
    fits = weights.ndim == 4 and (weights.shape[0], *weights.shape[2:]) == (3, 5, 4)
    require(fits, f"weights have shape {tuple(weights.shape)}, not (rows, heads, Q, T) (3, heads, 5, 4)")
    total = weights.sum(-1)
    if attention.monotonic:
        require((weights >= 0).all(), "some weights are below 0")
        require((total <= 1 + 1e-12).all(), "the weights of a query sum to more than 1")
        comes_back = (
            "a query after one that passed the end finds something again: a monotonic attention never looks back"
        )
        require((total.diff(dim=-1) <= 1e-12).all(), comes_back)
    else:
        require_same(total, torch.ones_like(total), "the weights of a query do not sum to 1")
    padding = weights.masked_select(~memory.mask[:, None, None])
    require(not padding.any(), "padding gets some weight: mask the scores with memory.mask")


def asking_for_weights_changes_nothing(attention: Attention) -> None:
    memory, query = _memory(), _queries(3, 5)
    context, _, none = attention(query, *_start(attention, memory, 3))
    require(none is None, "weights are returned unasked: return None unless weights=True")
    require_same(context, _attend(attention, query, memory)[0], "contexts depend on whether weights are asked for")


def several_rows_per_source_are_as_if_the_memory_were_repeated(attention: Attention) -> None:
    memory, query = _memory(), _queries(6, 2)
    context, _, weights = _attend(attention, query, memory)
    repeated, _, repeated_weights = _attend(attention, query, memory.select(memory.owner(6)))
    wrong = "row r of the query must read entry r // (rows / B) of the memory, see memory.owner(rows)"
    require_same(context, repeated, f"contexts of 2 rows per source are not those of a memory repeated twice: {wrong}")
    require_same(weights, repeated_weights, f"weights of 2 rows per source are not those of a memory repeated: {wrong}")


def rows_do_not_see_each_other(attention: Attention) -> None:
    memory, query = _memory(), _queries(3, 2)
    context, _, _ = _attend(attention, query, memory)
    for row in range(3):
        alone, _, _ = _attend(attention, query[row : row + 1], memory.select(torch.tensor([row])))
        require_same(alone[0], context[row], f"the context of row {row} depends on the other rows of the batch")


def padding_changes_nothing(attention: Attention) -> None:
    memory, query = _memory(), _queries(3, 2)
    longer = Memory(torch.cat([memory.states, torch.full_like(memory.states, 7.0)], dim=1), LENGTHS, parts=memory.parts)
    context = _attend(attention, query, memory)[0]
    wrong = "states beyond memory.lengths change the context: padding leaks"
    require_same(_attend(attention, query, longer)[0], context, wrong)


def queries_one_by_one_are_all_at_once(attention: Attention) -> None:
    memory, query = _memory(), _queries(6, 5)
    context, _, weights = _attend(attention, query, memory)
    assert weights is not None
    prepared, state = _start(attention, memory, 6)
    for place in range(5):
        one, state, weight = attention(query[:, place : place + 1], prepared, state, weights=True)
        require_same(one[:, 0], context[:, place], f"query {place} has another context alone than among 5 queries")
        require_same(
            weight[:, :, 0], weights[:, :, place], f"query {place} has other weights alone than among 5 queries"
        )


def the_state_is_that_after_the_last_real_query_of_each_row(attention: Attention) -> None:
    memory, query, further = _memory(), _queries(3, 4), _queries(3, 2)
    prepared, state = _start(attention, memory, 3)
    real = torch.tensor([4, 0, 2])
    _, after, _ = attention(query, prepared, state, lengths=real)
    context, _, _ = attention(further, prepared, after)
    for row, count in enumerate(real):
        alone, ours = prepared.select(torch.tensor([row])), select(state, torch.tensor([row]))
        _, ours, _ = attention(query[row : row + 1, :count], alone, ours) if count else (None, ours, None)
        expected = attention(further[row : row + 1], alone, ours)[0][0]
        require_same(
            context[row], expected, f"row {row} goes on from another state than after its {count} real queries"
        )


def permuting_the_source_permutes_the_weights_unless_it_uses_positions(attention: Attention) -> None:
    order, query = torch.tensor([2, 0, 3, 1]), _queries(3, 2)
    memory = _memory()
    full = Memory(memory.states, torch.tensor([4, 4, 4]), parts=memory.parts)
    context, _, weights = _attend(attention, query, full)
    permuted = Memory(full.states[:, order], full.lengths, parts=full.parts)
    moved, _, moved_weights = _attend(attention, query, permuted)
    assert weights is not None
    if attention.uses_positions:
        wrong = "uses_positions is set, but permuting the source changes no context"
        require(not torch.allclose(moved, context), wrong)
        return
    wrong = "of a permuted source are others: if it is meant to use positions, set uses_positions = True in the class"
    require_same(moved, context, f"the contexts {wrong}")
    require_same(moved_weights, weights[..., order], f"the weights {wrong}")


def every_parameter_gets_a_gradient(attention: Attention) -> None:
    attention.train()  # what is chosen outside training may have none
    _attend(attention, _queries(3, 2).requires_grad_(), _memory())[0].pow(2).sum().backward()
    require_gradients(attention)


def _memory() -> Memory:
    """Three sources with the part that some attend to as well."""
    generator = torch.Generator().manual_seed(2)
    states, sound = (torch.randn(3, T, SMALL["memory_size"], generator=generator, dtype=torch.float64) for T in (4, 3))
    return Memory(states, LENGTHS, parts={"sound": Memory(sound, torch.tensor([2, 3, 1]))})


def _queries(rows: int, count: int) -> Tensor:
    return torch.randn(rows, count, SMALL["query_size"], dtype=torch.float64)


def _start(attention: Attention, memory: Memory, rows: int) -> tuple[Memory, State]:
    """A prepared memory, and the state of so many rows."""
    prepared = attention.prepare(memory)
    return prepared, select(attention.start(prepared), prepared.owner(rows))


def _attend(attention: Attention, query: Tensor, memory: Memory) -> tuple[Tensor, State, Tensor | None]:
    context, state, weights = attention(query, *_start(attention, memory, len(query)), weights=True)
    return context, state, weights
