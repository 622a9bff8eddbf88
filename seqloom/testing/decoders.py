"""What holds for every decoder that steps after it has read its whole source."""

from __future__ import annotations

import torch
from torch import Tensor

from seqloom.contracts import Decoder
from seqloom.data.special_tokens import BOS
from seqloom.testing.claims import NotAsked, require, require_gradients, require_same
from seqloom.testing.small import VOCABULARY, memory_for, shortened, source, tensors, unprepared, valid
from seqloom.types import Memory, Padded, State, costs, over_tensors, select


def teacher_forcing_is_stepping(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (5, 5, 5))
    output, (expected, state) = decoder(memory, inputs), _stepped(decoder, memory, inputs.values)
    found = output.scores
    wanted = (3, 5, _width(decoder, memory))
    require(found.shape == wanted, f"scores have shape {tuple(found.shape)}, not (rows, U, V) {wanted}")
    require_same(found, expected, "forward() scores tokens otherwise than step() after step()")
    require_same(costs(output.state), costs(state), "forward() has other costs than step() after step()")


def a_mixture_of_one_token_is_that_token_and_each_share_of_a_mixture_counts(decoder: Decoder) -> None:
    if decoder.features is not None:
        raise NotAsked("it reads vectors")
    memory = memory_for(decoder)
    tokens, width = valid(decoder, memory, torch.tensor([5, 6, 7])), _width(decoder, memory)
    _, state = decoder.step(torch.full((3,), decoder.bos), decoder.start(memory), memory)  # the first says nothing
    only = torch.nn.functional.one_hot(tokens, width).double()
    expected = decoder.step(tokens, state, memory)[0]
    require_same(
        decoder.step(only, state, memory)[0], expected, "step() reads a one-hot mixture otherwise than its token"
    )
    shares = torch.rand(3, width, dtype=torch.float64, requires_grad=True)
    scores, _ = decoder.step(shares, state, memory)
    (gradient,) = torch.autograd.grad(_finite(scores).square().sum(), shares)
    wrong = "some shares of a mixture (rows, V) change no score: take the mean of all embeddings, weighted"
    require((gradient[:2] != 0).all(), wrong)  # the last has one token to look at, whatever it says


def what_the_last_projection_sees_is_as_wide_as_the_decoder_says(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    width = decoder(memory, _forced(decoder, memory)).hidden.shape[-1]
    require(width == decoder.hidden_size, f"Output.hidden is {width} wide, hidden_size says {decoder.hidden_size}")


def padding_of_the_inputs_changes_nothing_and_the_state_is_that_at_the_end_of_each_row(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (5, 2, 4))
    output = decoder(memory, inputs)
    token = valid(decoder, memory, torch.tensor([5, 6, 7]))
    after, _ = decoder.step(token, output.state, memory)
    for row, length in enumerate(inputs.lengths):
        ours = memory.select(torch.tensor([row]))
        scores, state = _stepped(decoder, ours, inputs.values[row : row + 1, :length])
        wrong = f"row {row} of {length} inputs has other scores in a batch of 5 than alone: rows or padding leak"
        require_same(output.scores[row : row + 1, :length], scores, wrong)
        following = decoder.step(token[row : row + 1], state, ours)[0]
        wrong = f"the state that forward() returns is not that after the {length} inputs of row {row}"
        require_same(after[row : row + 1], following, wrong)
        own = over_tensors(lambda value, row=row: value[row : row + 1], costs(output.state))
        require_same(own, costs(state), f"row {row} of {length} inputs has other costs in a batch of 5 than alone")


def padding_of_the_memory_changes_nothing(decoder: Decoder) -> None:
    given = unprepared(decoder, (5, 3, 1))
    wide = decoder.prepare(given)
    inputs = _forced(decoder, wide, (4, 4, 4))
    scores = decoder(wide, inputs).scores
    for row in range(3):
        alone = decoder.prepare(shortened(given, row))
        found = decoder(alone, Padded(inputs.values[row : row + 1], inputs.lengths[:1])).scores[0]
        wrong = f"row {row} has other scores in a batch than alone: rows see each other, or padding of the memory leaks"
        require_same(found, scores[row, :, : found.shape[1]], wrong)
        wrong = f"row {row} scores places that its source does not have: they must be -inf"
        require(not scores[row, :, found.shape[1] :].isfinite().any(), wrong)


def going_on_from_a_state_is_as_if_never_interrupted(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (6, 6, 6))
    whole = decoder(memory, inputs).scores
    half = torch.full((3,), 3)
    first = decoder(memory, Padded(inputs.values[:, :3], half))
    second = decoder(memory, Padded(inputs.values[:, 3:], half), first.state)
    joined = torch.cat([first.scores, second.scores], dim=1)
    require_same(joined, whole, "forward() in two halves, with the state between them, is not forward() of the whole")


def rows_that_are_given_nothing_stay_as_they_are(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    _, state = _stepped(decoder, memory, _forced(decoder, memory, (2, 2, 2)).values)
    token = valid(decoder, memory, torch.tensor([4, 5, 6]))
    after = decoder(memory, Padded(token[:, None], torch.tensor([1, 0, 1])), state).state
    logits, _ = decoder.step(token, after, memory)
    held, _ = decoder.step(token, state, memory)
    gone_on, _ = decoder.step(token, decoder.step(token, state, memory)[1], memory)
    expected = torch.where(torch.tensor([[False], [True], [False]]), held, gone_on)
    require_same(logits, expected, "forward() with lengths 1, 0, 1 must move the state of rows 0 and 2 alone")


def permuting_rows_commutes_with_a_step(decoder: Decoder) -> None:
    memory = memory_for(decoder, (4,))
    inputs = _forced(decoder, memory, (3, 3, 3))
    _, state = _stepped(decoder, memory, inputs.values)
    order, token = torch.tensor([2, 0, 1]), valid(decoder, memory, torch.tensor([4, 5, 6]))
    logits, after = decoder.step(token, state, memory)
    permuted, permuted_after = decoder.step(token[order], select(state, order), memory)
    wrong = "a step of permuted rows is not the permuted step: every entry of the state must have rows first"
    require_same(permuted, logits[order], wrong)
    found = decoder.step(token, permuted_after, memory)[0]
    expected = decoder.step(token[order.argsort()], after, memory)[0][order]
    require_same(found, expected, wrong)


def several_rows_per_source_are_as_if_the_memory_were_repeated(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (4, 4, 4, 4, 4, 4))
    expected = decoder(memory.select(memory.owner(6)), inputs).scores
    wrong = "2 rows per source are not scored as with the memory repeated: row r reads entry memory.owner(rows)[r]"
    require_same(decoder(memory, inputs).scores, expected, wrong)


def a_step_changes_nothing_it_was_given(decoder: Decoder) -> None:
    _step_is_pure(decoder)


def a_step_without_gradients_changes_nothing_it_was_given(decoder: Decoder) -> None:
    with torch.no_grad():
        _step_is_pure(decoder)


def the_past_decides_the_present_and_the_future_does_not(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (5, 5, 5))
    other = inputs.values.clone()
    other[:, 3:] = valid(decoder, memory, 4 + (source((5, 5, 5), seed=3).values[:, 2:4] - 3) % (VOCABULARY - 4))
    scores, changed = decoder(memory, inputs).scores, decoder(memory, Padded(other, inputs.lengths)).scores
    require_same(
        scores[:, :3], changed[:, :3], "inputs from the fourth on change the scores of the first three: it looks ahead"
    )
    moved = (_finite(scores)[:, 3] - _finite(changed)[:, 3]).abs().max()
    require(moved > 1e-6, "another fourth input leaves the scores that follow it as they were")


def attention_is_given_on_request_and_sums_to_one_or_monotonic_to_no_more(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    inputs = _forced(decoder, memory, (4, 4, 4))
    plain, output = decoder(memory, inputs), decoder(memory, inputs, attention=True)
    require(plain.attention == {}, "Output.attention is filled without attention=True")
    require_same(output.scores, plain.scores, "scores depend on whether attention is asked for")
    for name, weights in output.attention.items():
        wanted = (3, 4, memory.states.shape[1] if name == "source" else 4)
        fits = weights.ndim == 5 and (weights.shape[0], *weights.shape[3:]) == wanted
        wrong = f'attention["{name}"] has shape {tuple(weights.shape)}, not (rows, layers, heads, U, T)'
        require(fits, f"{wrong} with rows, U, T = {wanted}")
        total = weights.sum(-1)
        if name == "source" and getattr(getattr(decoder, "attention", None), "monotonic", False):
            require((total <= 1 + 1e-12).all(), f'attention["{name}"] sums to more than 1')
        else:
            require_same(total, torch.ones_like(total), f'attention["{name}"] does not sum to 1')


def every_parameter_gets_a_gradient(decoder: Decoder) -> None:
    decoder.train()  # what is chosen outside training may have none
    memory = memory_for(decoder)
    length = min(int(decoder.limit(memory).min()), 20) if decoder.endless else 5  # a film has several frames
    _finite(decoder(memory, _forced(decoder, memory, (length,) * 3)).scores).pow(2).sum().backward()
    require_gradients(decoder)


def _forced(decoder: Decoder, memory: Memory, lengths: tuple[int, ...] = (5, 2, 4)) -> Padded:
    words = source(lengths, seed=3)
    values = valid(decoder, memory, words.values)
    begin = torch.full_like(values[:, :1], BOS if decoder.features is None else 0)
    return Padded(torch.cat([begin, values], dim=1)[:, :-1], words.lengths)


def _width(decoder: Decoder, memory: Memory) -> int:
    """How many numbers a step gives: one per token, and per place of the source if it chooses from these."""
    if decoder.features is not None:
        return decoder.step(torch.zeros(memory.rows, decoder.features).double(), decoder.start(memory), memory)[
            0
        ].shape[1]
    return VOCABULARY + (memory.states.shape[1] if decoder.reads_source else 0)


def _finite(scores: Tensor) -> Tensor:
    return torch.where(scores.isfinite(), scores, 0)


def _stepped(decoder: Decoder, memory: Memory, inputs: Tensor, state: State | None = None) -> tuple[Tensor, State]:
    """Scores by stepping, for rows that all run to the end."""
    state = decoder.start_rows(memory, inputs.shape[0]) if state is None else state
    scores = []
    for token in inputs.unbind(1):
        logits, state = decoder.step(token, state, memory)
        scores.append(logits)
    return torch.stack(scores, 1), state


def _step_is_pure(decoder: Decoder) -> None:
    memory = memory_for(decoder)
    one, other = (valid(decoder, memory, torch.tensor(each)) for each in ([4, 5, 6], [6, 4, 5]))
    _, state = _stepped(decoder, memory, _forced(decoder, memory, (2, 2, 2)).values)
    before = [value.clone() for value in tensors(state)]
    logits, after = decoder.step(one, state, memory)
    further, _ = decoder.step(one, after, memory)
    decoder.step(other, decoder.step(other, state, memory)[1], memory)
    same = all(torch.equal(*pair) for pair in zip(before, tensors(state)))
    require(same, "step() changes the state that it was given: make a new one")
    again = (
        "step() gives other scores when it is called again with the same state: it keeps something on self, or in place"
    )
    require_same(decoder.step(one, state, memory)[0], logits, again)
    require_same(decoder.step(one, after, memory)[0], further, again)
