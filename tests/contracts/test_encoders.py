"""What holds for every encoder, and for those that can read a source as it comes."""

from functools import cache

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqloom.errors import SeqloomError
from seqloom.types import Padded, over_tensors
from tests.building import FEATURES, cases, source, source_for, tensors

CASES = cases("encoders")


@pytest.fixture(params=CASES)
def encoder(request):
    return request.param()


def shortened(lengths, encoder):
    """How many states sources of these lengths have."""
    return -(-lengths // encoder.stride)


def test_the_memory_is_as_wide_as_promised(encoder):
    memory = encoder(source_for(encoder))
    assert memory.states.shape == (3, shortened(5, encoder), encoder.output_size)
    assert memory.lengths.tolist() == [shortened(length, encoder) for length in (5, 3, 1)]
    assert memory.final["summary"].shape == (3, encoder.output_size)
    assert memory.states.dtype == torch.float64


def test_padding_changes_nothing(encoder):
    batch = source_for(encoder)
    memory = encoder(batch)
    longer = encoder(Padded(torch.cat([batch.values, torch.full_like(batch.values, 5)], dim=1), batch.lengths))
    assert torch.equal(longer.lengths, memory.lengths)
    for row, length in enumerate(memory.lengths):
        torch.testing.assert_close(longer.states[row, :length], memory.states[row, :length])
    torch.testing.assert_close(longer.final, memory.final)


def test_a_batch_is_its_sentences_one_by_one(encoder):
    batch = source_for(encoder)
    memory = encoder(batch)
    for row, length in enumerate(batch.lengths):
        alone = encoder(Padded(batch.values[row : row + 1, :length], batch.lengths[row : row + 1]))
        torch.testing.assert_close(alone.states[0], memory.states[row, : memory.lengths[row]])
        torch.testing.assert_close(alone.final, memory.select(torch.tensor([row])).final)


def test_every_parameter_gets_a_gradient(encoder):
    memory = encoder(source_for(encoder))
    loss = memory.states[memory.mask].pow(2).sum() + memory.states[memory.mask].sum() + memory.final["summary"].sum()
    loss.backward()
    assert [name for name, value in encoder.named_parameters() if value.grad is None or not value.grad.any()] == []
    assert all(value.grad.isfinite().all() for value in encoder.parameters())


# -- reading a source as it comes


@cache
def streaming():
    """Every encoder that streams, by its name."""
    built = {case.id: case.values[0]() for case in CASES}
    return {name: encoder for name, encoder in built.items() if encoder.streams}


def whole(encoder, rows, length):
    """Rows of one length: streams are in step."""
    if not encoder.reads_vectors_in_tests:
        return source((length,) * rows)
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(rows, length, FEATURES, generator=generator, dtype=torch.float64)
    return Padded(values, torch.full((rows,), length))


def piece(batch, begin, end):
    values = batch.values[:, begin:end]
    return Padded(values, torch.full_like(batch.lengths, values.shape[1]))


def streamed(encoder, batch, sizes):
    """The memory of a source in pieces of these sizes; after the last one it is closed."""
    state, memory, begin = encoder.start(len(batch.lengths)), None, 0
    for number, size in enumerate(sizes):
        closed = number == len(sizes) - 1
        part, state = encoder.extend(piece(batch, begin, begin + size), state, closed)
        assert part.closed == closed
        assert part.lengths.tolist() == [part.states.shape[1]] * len(batch.lengths)
        memory = part if memory is None else memory.append(part)
        begin += size
    return memory


def test_some_encoders_of_every_kind_stream():
    assert {name.split("-")[0] for name in streaming()} == {"chunked", "convolution", "pyramidal", "recurrent"}


@pytest.mark.parametrize("name", list(streaming()))
@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(sum), rows=st.integers(1, 2))
@example(sizes=[1] * 13, rows=2)
@example(sizes=[0, 7, 0, 4, 0], rows=1)
@example(sizes=[17], rows=3)
def test_a_source_in_pieces_is_the_source_whatever_the_pieces(name, sizes, rows):
    encoder = streaming()[name]
    batch = whole(encoder, rows, sum(sizes))
    memory, offline = streamed(encoder, batch, sizes), encoder(batch)
    torch.testing.assert_close(memory.states, offline.states)
    assert torch.equal(memory.lengths, offline.lengths)
    torch.testing.assert_close(memory.final, offline.final)


@pytest.mark.parametrize("name", list(streaming()))
def test_what_is_known_so_far_never_changes(name):
    """Open memory is a beginning of the whole one, and its summary is that of what was read."""
    encoder = streaming()[name]
    batch = whole(encoder, 2, 11)
    states, (part, _) = encoder(batch).states, encoder.extend(piece(batch, 0, 7), encoder.start(2), False)
    torch.testing.assert_close(part.states, states[:, : part.states.shape[1]])
    read = part.states.shape[1] * encoder.stride
    torch.testing.assert_close(part.final["summary"], encoder(piece(batch, 0, read)).final["summary"])


@pytest.mark.parametrize("name", list(streaming()))
def test_going_on_changes_nothing_it_was_given(name):
    encoder = streaming()[name]
    batch = whole(encoder, 2, 8)
    _, state = encoder.extend(piece(batch, 0, 5), encoder.start(2), False)
    before = [value.clone() for value in tensors(state)]
    first, after = encoder.extend(piece(batch, 5, 8), state, False)
    encoder.extend(piece(batch, 0, 8), after, True)
    assert all(torch.equal(*pair) for pair in zip(before, tensors(state), strict=True))
    torch.testing.assert_close(encoder.extend(piece(batch, 5, 8), state, False)[0].states, first.states)


@pytest.mark.parametrize("name", list(streaming()))
def test_a_stream_without_an_end_takes_no_more_memory(name):
    encoder = streaming()[name]
    batch = whole(encoder, 1, 12)
    state, sizes = encoder.start(1), []
    with torch.no_grad():
        for _ in range(20):
            for place in range(12):
                _, state = encoder.extend(piece(batch, place, place + 1), state, False)
            sizes.append(sum(value.untyped_storage().nbytes() for value in tensors(state)))
    assert max(sizes[10:]) <= max(sizes[5:10])  # after so many no cache is still being filled
    kept = sum(value.numel() for value in tensors(state))
    assert kept * 8 >= sizes[-1] / 3  # what is kept is no view of something larger


def test_encoders_that_do_not_stream_say_so(encoder):
    if not encoder.streams:
        for ask in (lambda: encoder.start(1), lambda: encoder.extend(source((2,)), {}, True)):
            with pytest.raises(SeqloomError, match="reads the end of a source before its beginning"):
                ask()


def test_a_state_has_rows_first(encoder):
    if encoder.streams:
        over_tensors(lambda value: len(value) == 3 or pytest.fail("rows are not first"), encoder.start(3))
