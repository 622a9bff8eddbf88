"""What holds for every decoder that writes while it reads."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch

from seqloom.contracts import Decoder, Online
from seqloom.types import Memory, Padded, over_tensors, select
from tests.building import BOS, EOS, PAD, VOCABULARY, cases, memory_for, tensors

SPECIAL = (5, PAD, 6, 5, PAD, PAD, 7, PAD, PAD, 4)  # what is written, and when it goes on
NEVER = float("-inf")


@pytest.fixture(params=cases("decoders", online=True))
def decoder(request):
    return request.param()


@pytest.fixture
def memory(decoder):
    return memory_for(decoder)


def tokens(rows, shift=1):
    """Each row another part of the tokens above, after BOS.  (rows, 8)"""
    chosen = [[BOS, *(SPECIAL[(row * shift + place) % len(SPECIAL)] for place in range(7))] for row in range(rows)]
    return torch.tensor(chosen)


def followed(decoder, memory, symbols, state=None):
    """Scores of all steps, and the state after them.  (rows, n) -> (rows, n, V)"""
    state = decoder.start_rows(memory, len(symbols)) if state is None else state
    found = []
    for token in symbols.unbind(1):
        scores, state = decoder.step(token, state, memory)
        found.append(scores)
    return torch.stack(found, 1), state


def test_it_says_what_is_silent_and_what_an_output_may_be(decoder, memory):
    assert isinstance(decoder, Online)
    assert decoder.blanks == (PAD,)
    assert decoder.eos == EOS
    assert (decoder.limit(memory) > 0).all()
    assert decoder.limit(memory).shape == (3,)


def test_scores_are_log_probabilities_of_at_most_one_and_beginnings_never_come(decoder, memory):
    scores, _ = followed(decoder, memory, tokens(3))
    assert scores.shape == (3, 8, VOCABULARY)
    assert not scores.isnan().any()
    assert (scores.exp().sum(-1) <= 1 + 1e-9).all()
    assert (scores.amax(-1) > NEVER).all()
    assert (scores[:, :, BOS] == NEVER).all()


def test_past_the_last_state_there_is_only_the_end(decoder, memory):
    scores, state = followed(decoder, memory, torch.tensor([[BOS] + [PAD] * 5] * 3))
    over = state["frame"] >= memory.lengths
    assert over.all()
    expected = torch.full((VOCABULARY,), NEVER, dtype=torch.float64)
    expected[EOS] = 0
    assert torch.equal(scores[:, -1], expected.expand(3, -1))
    assert (scores[0, 0] > NEVER).sum() > 1  # not so before


def test_the_clock_goes_on_by_what_moves_it_and_never_back(decoder):
    memory = memory_for(decoder, (12,))
    symbols = tokens(3, shift=3)
    _, state = followed(decoder, memory, symbols[:, :1])
    assert state["frame"].tolist() == [0, 0, 0]
    for token in symbols[:, 1:].unbind(1):
        before, (_, state) = state["frame"], decoder.step(token, state, memory)
        moves = (token == PAD) | (decoder.advances == "all")
        assert torch.equal(state["frame"] > before, moves & (before < 12))
        assert (state["frame"] >= before).all()


def test_going_on_from_a_state_is_as_if_never_interrupted(decoder, memory):
    symbols = tokens(3)
    whole, _ = followed(decoder, memory, symbols)
    first, state = followed(decoder, memory, symbols[:, :3])
    second, _ = followed(decoder, memory, symbols[:, 3:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    forced = decoder(memory, Padded(symbols, torch.tensor([8, 3, 8])))
    torch.testing.assert_close(forced.scores[[0, 2]], whole[[0, 2]])
    torch.testing.assert_close(forced.scores[1, :3], whole[1, :3])
    after = decoder.step(symbols[:, 3], forced.state, memory)[0]
    torch.testing.assert_close(after[1], whole[1, 3])


def test_a_step_changes_nothing_it_was_given(decoder, memory):
    _, state = followed(decoder, memory, tokens(3)[:, :4])
    before = [value.clone() for value in tensors(state)]
    one, other = torch.tensor([PAD, 5, 6]), torch.tensor([5, PAD, 7])
    scores, after = decoder.step(one, state, memory)
    kept = scores.clone()
    further, _ = decoder.step(one, after, memory)
    decoder.step(other, decoder.step(other, state, memory)[1], memory)
    assert all(torch.equal(*pair) for pair in zip(before, tensors(state)))
    assert torch.equal(scores, kept)
    assert torch.equal(decoder.step(one, state, memory)[0], scores)
    assert torch.equal(decoder.step(one, after, memory)[0], further)


def test_permuting_rows_commutes_with_a_step(decoder):
    memory = memory_for(decoder, (4,))
    symbols, order = tokens(3, shift=3), torch.tensor([2, 0, 1])
    scores, state = followed(decoder, memory, symbols[:, :5])
    permuted, permuted_state = followed(decoder, memory, symbols[order, :5])
    torch.testing.assert_close(permuted, scores[order])
    for one, other in zip(tensors(permuted_state), tensors(select(state, order))):
        torch.testing.assert_close(one, other)
    token = torch.tensor([PAD, 5, 6])
    torch.testing.assert_close(
        decoder.step(token[order], select(state, order), memory)[0], decoder.step(token, state, memory)[0][order]
    )


def test_several_rows_a_source_are_as_if_the_memory_were_repeated(decoder, memory):
    symbols = tokens(6)
    repeated = memory.select(memory.owner(6))
    torch.testing.assert_close(followed(decoder, memory, symbols)[0], followed(decoder, repeated, symbols)[0])


def test_padding_of_the_memory_changes_nothing(decoder, memory):
    symbols = tokens(3)
    scores, _ = followed(decoder, memory, symbols)
    for row, length in enumerate(memory.lengths.tolist()):
        alone = memory.select(torch.tensor([row]))
        alone = decoder.prepare(replace(alone, states=alone.states[:, :length], extra={}))
        torch.testing.assert_close(followed(decoder, alone, symbols[row : row + 1])[0][0], scores[row])


def test_the_past_decides_the_present(decoder):
    """All but CTC, whose past is the last token, know what was written two tokens ago."""
    memory = memory_for(decoder, (12,))
    one, other = (torch.tensor([[BOS, first, PAD, 6, PAD, PAD]]) for first in (4, 5))
    differs = (followed(decoder, memory, one)[0] - followed(decoder, memory, other)[0]).nan_to_num(0).abs()[0].amax(-1)
    assert differs[0] < 1e-12
    assert differs[1] > 1e-6


# -- sources that come in pieces


def pieces(decoder, states, cuts):
    """The memory after each piece, the last one closed; none of the pieces is prepared with another."""
    ends = [*cuts, states.shape[1]]
    memory, start, found = None, 0, []
    for end in ends:
        lengths = torch.full((states.shape[0],), end - start)
        chunk = decoder.prepare(Memory(states[:, start:end], lengths, closed=end == ends[-1]))
        memory = chunk if memory is None else memory.append(chunk)
        found.append(memory)
        start = end
    return found


def streamed(decoder, states, symbols, cuts, forgetful):
    """The scores of all steps; rows that wait are asked again with more, and nobody goes on before all can."""
    waited, forgotten = 0, 0
    left = pieces(decoder, states, cuts)
    memory = left.pop(0)
    state = decoder.start_rows(memory, len(symbols))
    found = []
    for token in symbols.unbind(1):
        scores, after = decoder.step(token, state, memory)
        while (scores == NEVER).all(-1).any():
            assert not memory.closed
            waited += 1
            memory = left.pop(0)
            if forgetful:
                forgotten = max(forgotten, decoder.first_needed(state))
                memory = memory.forget(min(forgotten, memory.states.shape[1]))
            scores, after = decoder.step(token, state, memory)
        state = after
        found.append(scores)
    return torch.stack(found, 1), waited


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_source_in_pieces_is_the_source_whatever_they_are(decoder, forgetful):
    generator = torch.Generator().manual_seed(4)
    states = torch.randn(2, 4, decoder.memory_size_in_tests, generator=generator, dtype=torch.float64)
    symbols = torch.tensor([[BOS, 5, PAD, 6, PAD, PAD, 4, PAD], [BOS, PAD, 5, PAD, 5, PAD, 6, 7]] * 2)[[0, 2, 1, 3]]
    offline, _ = followed(decoder, decoder.prepare(Memory(states, torch.tensor([4, 4]))), symbols)
    all_waits = 0
    for count in range(5):
        for cuts in combinations(range(4), count):  # 0 is a piece without anything
            scores, waits = streamed(decoder, states, symbols, cuts, forgetful)
            torch.testing.assert_close(scores, offline)
            all_waits += waits
    assert all_waits > 10


def test_a_row_without_input_waits_and_another_goes_on(decoder):
    states = torch.randn(1, 12, decoder.memory_size_in_tests, dtype=torch.float64)
    open_memory = pieces(decoder, states, (11,))[0]
    assert not open_memory.closed
    symbols = torch.tensor([[BOS] + [PAD] * 12, [BOS, 5] + [PAD] * 11])
    scores, state = followed(decoder, open_memory, symbols)
    assert (scores[:, -1] == NEVER).all()
    assert (scores[:, 0] > NEVER).any(-1).all()
    first = followed(decoder, open_memory, symbols[:, :1])[1]
    mixed = over_tensors(lambda new, old: torch.stack([new[0], old[1]]), state, first)
    after = decoder.step(torch.tensor([PAD, 5]), mixed, open_memory)[0]
    assert (after[0] == NEVER).all()
    assert (after[1] > NEVER).any()


def test_the_limit_counts_what_was_forgotten(decoder):
    states = torch.randn(1, 6, decoder.memory_size_in_tests, dtype=torch.float64)
    memory = decoder.prepare(Memory(states, torch.tensor([6])))
    assert torch.equal(decoder.limit(memory.forget(4)), decoder.limit(memory))


# -- probabilities of outputs


def test_every_parameter_gets_a_gradient_where_outputs_have_an_exact_probability(decoder):
    if type(decoder).log_prob is Decoder.log_prob or decoder.trained_by != "marginal":
        pytest.skip("trained by paths, not by outputs")
    memory = memory_for(decoder, (5, 3, 4))
    inputs = Padded(torch.tensor([[BOS, 5, 6], [BOS, 4, 0], [BOS, 7, 5]]), torch.tensor([3, 2, 3]))
    targets = Padded(torch.tensor([[5, 6, EOS], [4, EOS, 0], [7, 5, EOS]]), inputs.lengths)
    log_prob = decoder.log_prob(memory, inputs, targets)
    assert log_prob.shape == (3,)
    assert (log_prob < 0).all()
    log_prob.sum().backward()
    assert [name for name, value in decoder.named_parameters() if value.grad is None or not value.grad.any()] == []


def test_several_outputs_a_source_are_as_if_the_memory_were_repeated(decoder):
    if decoder.trained_by == "read_write":
        pytest.skip("writes an output in too many ways to add up")
    memory = memory_for(decoder, (5, 3))
    inputs = Padded(torch.tensor([[BOS, 5, 6], [BOS, 4, 0], [BOS, 7, 5], [BOS, 0, 0]]), torch.tensor([3, 2, 3, 1]))
    targets = Padded(torch.tensor([[5, 6, EOS], [4, EOS, 0], [7, 5, EOS], [EOS, 0, 0]]), inputs.lengths)
    repeated = memory.select(memory.owner(4))
    torch.testing.assert_close(decoder.log_prob(memory, inputs, targets), decoder.log_prob(repeated, inputs, targets))
