"""What holds for every decoder that can step."""

import pytest
import torch

from seqloom.types import Padded, select
from tests.building import BOS, VOCABULARY, cases, memory_for, shortened, source, tensors, unprepared, valid


@pytest.fixture(params=cases("decoders"))
def decoder(request):
    return request.param()


@pytest.fixture
def memory(decoder):
    return memory_for(decoder)


def forced(decoder, memory, lengths=(5, 2, 4)):
    words = source(lengths, seed=3)
    begin = torch.full((len(lengths), 1), BOS)
    return Padded(torch.cat([begin, valid(decoder, memory, words.values)], dim=1)[:, :-1], words.lengths)


def symbols(decoder, memory):
    """How many a step scores: the vocabulary, and of a decoder that chooses from its source the places of that."""
    return VOCABULARY + (memory.states.shape[1] if decoder.reads_source else 0)


def finite(scores):
    return torch.where(scores.isfinite(), scores, 0)


def stepped(decoder, memory, inputs, state=None):
    """Scores by stepping, for rows that all run to the end."""
    state = decoder.start_rows(memory, inputs.shape[0]) if state is None else state
    scores = []
    for token in inputs.unbind(1):
        logits, state = decoder.step(token, state, memory)
        scores.append(logits)
    return torch.stack(scores, 1), state


def test_teacher_forcing_is_stepping(decoder, memory):
    inputs = forced(decoder, memory, (5, 5, 5))
    output = decoder(memory, inputs)
    scores, _ = stepped(decoder, memory, inputs.values)
    assert output.scores.shape == (3, 5, symbols(decoder, memory))
    torch.testing.assert_close(output.scores, scores)


def test_a_mixture_of_one_symbol_is_that_symbol_and_each_share_of_a_mixture_counts(decoder, memory):
    tokens, width = valid(decoder, memory, torch.tensor([5, 6, 7])), symbols(decoder, memory)
    state = decoder.start(memory)
    only = torch.nn.functional.one_hot(tokens, width).double()
    torch.testing.assert_close(decoder.step(only, state, memory)[0], decoder.step(tokens, state, memory)[0])
    shares = torch.rand(3, width, dtype=torch.float64, requires_grad=True)
    scores, _ = decoder.step(shares, state, memory)
    (gradient,) = torch.autograd.grad(finite(scores).square().sum(), shares)
    assert (gradient[:2] != 0).all()  # the last has one token to look at, whatever it says


def test_what_the_last_projection_sees_is_as_wide_as_the_decoder_says(decoder, memory):
    assert decoder(memory, forced(decoder, memory)).hidden.shape[-1] == decoder.hidden_size


def test_padding_of_the_inputs_changes_nothing_and_the_state_is_that_at_each_rows_end(decoder, memory):
    inputs = forced(decoder, memory, (5, 2, 4))
    output = decoder(memory, inputs)
    token = valid(decoder, memory, torch.tensor([5, 6, 7]))
    after, _ = decoder.step(token, output.state, memory)
    for row, length in enumerate(inputs.lengths):
        ours = memory.select(torch.tensor([row]))
        scores, state = stepped(decoder, ours, inputs.values[row : row + 1, :length])
        torch.testing.assert_close(output.scores[row : row + 1, :length], scores)
        torch.testing.assert_close(after[row : row + 1], decoder.step(token[row : row + 1], state, ours)[0])


def test_padding_of_the_memory_changes_nothing(decoder):
    given = unprepared(decoder, (5, 3, 1))
    wide = decoder.prepare(given)
    inputs = forced(decoder, wide, (4, 4, 4))
    scores = decoder(wide, inputs).scores
    for row in range(3):
        alone = decoder.prepare(shortened(given, row))
        found = decoder(alone, Padded(inputs.values[row : row + 1], inputs.lengths[:1])).scores[0]
        torch.testing.assert_close(found, scores[row, :, : found.shape[1]])
        assert not scores[row, :, found.shape[1] :].isfinite().any()


def test_going_on_from_a_state_is_as_if_never_interrupted(decoder, memory):
    inputs = forced(decoder, memory, (6, 6, 6))
    whole = decoder(memory, inputs).scores
    half = torch.full((3,), 3)
    first = decoder(memory, Padded(inputs.values[:, :3], half))
    second = decoder(memory, Padded(inputs.values[:, 3:], half), first.state)
    torch.testing.assert_close(torch.cat([first.scores, second.scores], dim=1), whole)


def test_rows_that_are_given_nothing_stay_as_they_are(decoder, memory):
    _, state = stepped(decoder, memory, forced(decoder, memory, (2, 2, 2)).values)
    token = valid(decoder, memory, torch.tensor([4, 5, 6]))
    after = decoder(memory, Padded(token[:, None], torch.tensor([1, 0, 1])), state).state
    logits, _ = decoder.step(token, after, memory)
    held, _ = decoder.step(token, state, memory)
    gone_on, _ = decoder.step(token, decoder.step(token, state, memory)[1], memory)
    torch.testing.assert_close(logits, torch.where(torch.tensor([[False], [True], [False]]), held, gone_on))


def test_permuting_rows_commutes_with_a_step(decoder):
    memory = memory_for(decoder, (4,))
    inputs = forced(decoder, memory, (3, 3, 3))
    _, state = stepped(decoder, memory, inputs.values)
    order, token = torch.tensor([2, 0, 1]), valid(decoder, memory, torch.tensor([4, 5, 6]))
    logits, after = decoder.step(token, state, memory)
    permuted, permuted_after = decoder.step(token[order], select(state, order), memory)
    torch.testing.assert_close(permuted, logits[order])
    torch.testing.assert_close(
        decoder.step(token, permuted_after, memory)[0], decoder.step(token[order.argsort()], after, memory)[0][order]
    )


def test_several_rows_a_source_are_as_if_the_memory_were_repeated(decoder, memory):
    inputs = forced(decoder, memory, (4, 4, 4, 4, 4, 4))
    torch.testing.assert_close(decoder(memory, inputs).scores, decoder(memory.select(memory.owner(6)), inputs).scores)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_step_changes_nothing_it_was_given(decoder, memory, gradients):
    one, other = (valid(decoder, memory, torch.tensor(each)) for each in ([4, 5, 6], [6, 4, 5]))
    with torch.set_grad_enabled(gradients):
        _, state = stepped(decoder, memory, forced(decoder, memory, (2, 2, 2)).values)
        before = [value.clone() for value in tensors(state)]
        logits, after = decoder.step(one, state, memory)
        further, _ = decoder.step(one, after, memory)
        decoder.step(other, decoder.step(other, state, memory)[1], memory)
        assert all(torch.equal(*pair) for pair in zip(before, tensors(state)))
        torch.testing.assert_close(decoder.step(one, state, memory)[0], logits)
        torch.testing.assert_close(decoder.step(one, after, memory)[0], further)


def test_the_past_decides_the_present_and_the_future_does_not(decoder, memory):
    inputs = forced(decoder, memory, (5, 5, 5))
    other = inputs.values.clone()
    other[:, 3:] = valid(decoder, memory, 4 + (source((5, 5, 5), seed=3).values[:, 2:4] - 3) % (VOCABULARY - 4))
    scores, changed = decoder(memory, inputs).scores, decoder(memory, Padded(other, inputs.lengths)).scores
    torch.testing.assert_close(scores[:, :3], changed[:, :3])
    assert (finite(scores)[:, 3] - finite(changed)[:, 3]).abs().max() > 1e-6


def test_attention_is_given_on_request_and_sums_to_one_or_monotonic_to_no_more(decoder, memory):
    inputs = forced(decoder, memory, (4, 4, 4))
    assert decoder(memory, inputs).attention == {}
    output = decoder(memory, inputs, attention=True)
    torch.testing.assert_close(output.scores, decoder(memory, inputs).scores)
    for name, weights in output.attention.items():
        rows, _, _, queries, keys = weights.shape
        assert (rows, queries) == (3, 4)
        assert keys == (memory.states.shape[1] if name == "source" else 4)
        if name == "source" and getattr(getattr(decoder, "attention", None), "monotonic", False):
            assert (weights.sum(-1) <= 1 + 1e-12).all()
        else:
            torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_every_parameter_gets_a_gradient(decoder, memory):
    decoder.train()  # what is chosen outside training may have none
    finite(decoder(memory, forced(decoder, memory, (5, 5, 5))).scores).pow(2).sum().backward()
    assert [name for name, value in decoder.named_parameters() if value.grad is None or not value.grad.any()] == []
