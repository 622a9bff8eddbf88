"""Monotonic attention against enumeration of alignments, against a plain loop, and hard against soft."""

from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from seqloom.nn.attention.monotonic import Monotonic, expected_alignments, stop_positions
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.types import Memory, Padded, hold, select
from tests.building import BOS, SMALL, build, memory_for

START = torch.tensor([[1.0, 0, 0, 0, 0]], dtype=torch.float64)


def normal(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def looped(energies, alignment):
    """The recursion as written in the paper, position by position.  (rows, Q, T), (rows, T) -> (rows, Q, T)"""
    found = []
    for energy in energies.unbind(1):
        arrived, values = torch.zeros_like(alignment[:, 0]), []
        for position, (stop, before) in enumerate(zip(energy.sigmoid().unbind(1), alignment.unbind(1))):
            passed = torch.sigmoid(-energy[:, position - 1]) if position else 0
            arrived = passed * arrived + before
            values.append(stop * arrived)
        alignment = torch.stack(values, 1)
        found.append(alignment)
    return torch.stack(found, 1)


def test_the_recursion_equals_the_sum_over_all_monotonic_alignments():
    """All ways in which three queries can stop at one of five positions each, never moving back."""
    energies = normal(1, 3, 5)
    stop = energies.sigmoid()[0]
    summed = torch.zeros(3, 5, dtype=torch.float64)
    for query in range(3):
        for positions in combinations_with_replacement(range(5), query + 1):
            probability, begin = torch.ones((), dtype=torch.float64), 0
            for number, position in enumerate(positions):
                probability = probability * (1 - stop[number, begin:position]).prod() * stop[number, position]
                begin = position
            summed[query, positions[-1]] += probability
    found = torch.stack(expected_alignments(energies, START)[1:], 1)[0]
    torch.testing.assert_close(found, summed, rtol=0, atol=1e-16)
    assert (found.sum(-1) < 1).all()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 13, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_scan_equals_the_loop_even_where_energies_are_large(width, dtype):
    energies = normal(6, 5, width, scale=15).clamp(-30, 30).to(dtype)
    start = torch.eye(1, width, dtype=dtype).expand(6, -1)
    found = torch.stack(expected_alignments(energies, start)[1:], 1)
    loop = looped(energies.double(), start.double())
    torch.testing.assert_close(found.double(), loop, rtol=1e-4 if dtype == torch.float32 else 1e-12, atol=1e-6)
    assert (found.double() - loop).abs().max() <= (1e-6 if dtype == torch.float32 else 1e-15)


def test_gradients_are_right_and_finite_where_energies_are_large():
    energies = normal(2, 3, 5).requires_grad_()
    start = normal(2, 5, seed=1).softmax(-1).requires_grad_()
    assert gradcheck(lambda *given: torch.stack(expected_alignments(*given), 1), (energies, start))
    large = normal(2, 3, 5, scale=100).requires_grad_()
    torch.stack(expected_alignments(large, start), 1).sum().backward()
    assert large.grad.isfinite().all()


@pytest.mark.parametrize("lengths", [(4,), (2,), (3, 1)])
def test_with_probabilities_0_and_1_hard_equals_soft(lengths):
    """All stops of two queries over four positions, including none at all, and with padding."""
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=8)), dtype=torch.float64).view(-1, 2, 4)
    memory = Memory(torch.zeros(len(lengths), 4, 1), torch.tensor(lengths))
    rows = len(signs)
    mask = memory.mask[memory.owner(rows)][:, None]
    energies = (signs * 1e3).masked_fill(~mask, float("-inf"))
    soft = torch.stack(expected_alignments(energies, torch.eye(1, 4, dtype=torch.float64).expand(rows, -1))[1:], 1)
    indices = torch.stack(stop_positions(energies, torch.zeros(rows, dtype=torch.long), memory)[1:], 1)
    hard = (indices[:, :, None] == torch.arange(4)) & mask
    assert torch.equal(soft, hard.double())
    found = hard.any(-1)
    assert found.any()
    assert not found.all()


def attention(**settings):
    """An attention that stops for some queries and not for others."""
    made = build(Monotonic, **settings)
    with torch.no_grad():
        made.gain.fill_(4.0)
        made.bias.fill_(-0.3)
    return made


def test_hard_contexts_are_single_states_or_zeros_as_the_weights_say():
    part = attention()
    memory = part.prepare(Memory(normal(4, 6, 8), torch.tensor([6, 4, 5, 6])))
    query = normal(4, 5, 8, seed=1)
    context, state, weights = part(query, memory, part.start(memory), weights=True)
    positions, energies = torch.zeros(4, dtype=torch.long), part.energies(query, memory)
    hits = misses = 0
    for number, row in product(range(5), range(4)):
        wanted = [position for position in range(int(positions[row]), 6) if energies[row, number, position] > 0]
        if wanted:
            positions[row] = wanted[0]
            torch.testing.assert_close(context[row, number], memory.states[row, wanted[0]])
            assert weights[row, 0, number].tolist() == [float(position == wanted[0]) for position in range(6)]
            hits += 1
        else:
            positions[row] = memory.lengths[row]
            assert not context[row, number].any()
            assert not weights[row, 0, number].any()
            misses += 1
    assert torch.equal(state["index"], positions)
    assert hits > 4
    assert misses > 4


def test_energies_do_not_depend_on_the_norm_of_v_and_start_low():
    part = build(Monotonic)
    memory = part.prepare(Memory(normal(1, 3, 8), torch.tensor([3])))
    before = part.energies(normal(1, 2, 8), memory)
    with torch.no_grad():
        part.energy.weight.mul_(7)
    torch.testing.assert_close(part.energies(normal(1, 2, 8), memory), before)
    fresh = Monotonic(query_size=8, memory_size=8, size=16, bias=-4)
    assert fresh.bias.item() == -4
    assert fresh.gain.item() == 0.25


def test_noise_is_added_in_training_only():
    part, memory = build(Monotonic, decoding="soft"), Memory(normal(2, 5, 8), torch.tensor([5, 3]))
    memory, query = part.prepare(memory), normal(2, 3, 8)

    def attend():
        return part(query, memory, part.start(memory))[0]

    quiet = attend()
    torch.testing.assert_close(attend(), quiet)
    part.train()
    torch.manual_seed(1)
    assert not torch.allclose(attend(), attend())
    part.noise = 0.0
    torch.testing.assert_close(attend(), quiet)


def test_noise_is_normal_with_the_deviation_that_was_asked_for():
    part, memory = build(Monotonic, noise=0.3).train(), Memory(normal(2, 5, 8), torch.tensor([5, 3]))
    memory, query = part.prepare(memory), normal(2, 3, 8)
    energies = part.energies(query, memory)
    torch.manual_seed(1)
    weights = part(query, memory, part.start(memory), weights=True)[2][:, 0]
    torch.manual_seed(1)
    noisy = energies + 0.3 * torch.randn(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(weights, looped(noisy, part.start(memory)["alignment"]))


# -- a memory that grows


def decoders(decoding="hard"):
    made = []
    for part, order in ((Recurrent, {"order": "luong"}), (Recurrent, {"order": "bahdanau"}), (GNMT, {})):
        decoder = build(part, bridge="zero", attention=partial(Monotonic, decoding=decoding), **order)
        with torch.no_grad():
            decoder.attention.query.weight.mul_(4)
            decoder.attention.gain.fill_(4.0)
            decoder.attention.bias.fill_(-2.5)
        made.append(decoder)
    return made


def opened(decoder, memory, begin, end, closed):
    """The part of a memory that a stream holds: positions from `begin` to `end`."""
    part = replace(memory, states=memory.states[:, :end], lengths=torch.full_like(memory.lengths, end), closed=closed)
    return decoder.prepare(replace(part, extra={})).forget(begin)


@pytest.mark.parametrize("number", range(3))
@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=8), seed=st.integers(0, 5))
def test_decoding_a_growing_memory_equals_decoding_the_whole_source(number, sizes, seed):
    """Two rows per source with tokens of their own; rows step when ready, and states no longer needed are dropped."""
    decoder = decoders()[number]
    memory = memory_for(decoder, (sum(sizes),) * 2, seed)
    tokens = torch.randint(4, 9, (4, 5), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = BOS
    offline = decoder(memory, Padded(tokens, torch.full((4,), 5))).scores
    begin = end = 0
    at, scores = [0] * 4, torch.zeros_like(offline)
    state = decoder.start_rows(opened(decoder, memory, 0, 0, False), 4)
    for chunk, size in enumerate(sizes):
        end += size
        grown = opened(decoder, memory, begin, end, chunk == len(sizes) - 1)
        while True:
            given = torch.stack([tokens[row, min(at[row], 4)] for row in range(4)])
            logits, after = decoder.step(given, state, grown)
            ready = [at[row] < 5 and bool(logits[row].isfinite().all()) for row in range(4)]
            assert all(ready[row] or at[row] == 5 or not logits[row].isfinite().any() for row in range(4))
            if not any(ready):
                break
            state = hold(~torch.tensor(ready), after, state)
            for row in range(4):
                if ready[row]:
                    scores[row, at[row]] = logits[row]
                    at[row] += 1
        begin = max(begin, min(decoder.first_needed(state), end))
    assert at == [5] * 4
    torch.testing.assert_close(scores, offline)


def test_some_rows_wait_some_write_early_and_states_already_passed_are_not_needed():
    decoder = decoders()[0]
    memory = memory_for(decoder, (6, 6, 6, 6))
    state = decoder.start(opened(decoder, memory, 0, 0, False))
    begin = torch.full((4,), BOS)
    waiting = [
        decoder.step(begin, state, opened(decoder, memory, 0, end, False))[0].isinf().all(-1) for end in range(7)
    ]
    counts = [int(each.sum()) for each in waiting]
    assert counts[0] == 4
    assert counts == sorted(counts, reverse=True)
    assert counts[5] < 4
    for _ in range(3):
        logits, state = decoder.step(begin, state, memory)
    positions = state["attention"]["index"]
    assert positions.max() > 0
    for row, position in enumerate(positions.tolist()):
        assert decoder.first_needed(select(state, torch.tensor([row]))) == position
    assert decoder.first_needed(state) == int(positions.min())
    assert logits.isfinite().all()


def test_soft_attention_waits_for_the_end_of_the_source():
    for decoder in decoders("soft"):
        memory = memory_for(decoder, (5, 5))
        begin = torch.full((2,), BOS)
        state = decoder.start(opened(decoder, memory, 0, 0, False))
        for end in range(6):
            logits, after = decoder.step(begin, state, opened(decoder, memory, 0, end, False))
            assert logits.isinf().all()
            assert decoder.first_needed(after) == 0
        logits, _ = decoder.step(begin, state, memory)
        torch.testing.assert_close(logits, decoder.step(begin, decoder.start(memory), memory)[0])


def test_attention_to_an_empty_source_is_zero():
    for decoding in ("hard", "soft"):
        part = attention(decoding=decoding)
        memory = part.prepare(
            Memory(torch.zeros(2, 0, SMALL["memory_size"]).double(), torch.zeros(2, dtype=torch.long))
        )
        context, _, weights = part(normal(2, 3, 8), memory, part.start(memory), weights=True)
        assert weights.shape == (2, 1, 3, 0)
        assert torch.equal(context, torch.zeros(2, 3, 8, dtype=torch.float64))


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="noise = -1 must be 0 or more"):
        build(Monotonic, noise=-1)
