"""What holds for every encoder that reads a source as it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from seqloom.contracts import Encoder
from seqloom.testing.claims import require, require_same
from seqloom.testing.small import source_for, tensors
from seqloom.types import Memory, Padded


def random_cuts(count: int = 25) -> list[list[int]]:
    """Sizes of the pieces of sources; some pieces are empty."""
    chance = np.random.default_rng(1)
    cuts = [chance.integers(0, 6, size=chance.integers(1, 10)).tolist() for _ in range(count)]
    return [[1] * 13, [0, 7, 0, 4, 0], [17], *(sizes for sizes in cuts if sum(sizes))]


CUTS = random_cuts()


def a_source_in_pieces_is_the_source_whatever_the_pieces(
    encoder: Encoder, cuts: Iterable[Sequence[int]] = CUTS
) -> None:
    for number, sizes in enumerate(cuts):
        batch = _whole(encoder, 1 + number % 3, sum(sizes))
        memory, offline = _streamed(encoder, batch, sizes), encoder(batch)
        wrong = f"a source in pieces of {', '.join(map(str, sizes))} has"
        require(torch.equal(memory.lengths, offline.lengths), f"{wrong} another number of states than the whole")
        require_same(memory.states, offline.states, f"{wrong} other states than the whole")
        require_same(memory.final, offline.final, f"{wrong} another memory.final than the whole")
        require_same(memory.costs, offline.costs, f"{wrong} other costs than the whole")


def what_is_known_so_far_never_changes(encoder: Encoder) -> None:
    """Open memory is a beginning of the whole one, and its summary is that of what was read."""
    batch = _whole(encoder, 2, 11)
    states, (part, _) = encoder(batch).states, encoder.extend(_piece(batch, 0, 7), encoder.start(2), False)
    wrong = "the states of the first 7 of 11 inputs are not those of the whole: they depend on what follows"
    require_same(part.states, states[:, : part.states.shape[1]], wrong)
    read = part.states.shape[1] * encoder.stride
    expected = encoder(_piece(batch, 0, read)).final["summary"]
    require_same(part.final["summary"], expected, f"the summary after 7 inputs is not that of the {read} read so far")


def going_on_changes_nothing_it_was_given(encoder: Encoder) -> None:
    batch = _whole(encoder, 2, 8)
    _, state = encoder.extend(_piece(batch, 0, 5), encoder.start(2), False)
    before = [value.clone() for value in tensors(state)]
    first, after = encoder.extend(_piece(batch, 5, 8), state, False)
    encoder.extend(_piece(batch, 0, 8), after, True)
    same = all(torch.equal(*pair) for pair in zip(before, tensors(state), strict=True))
    require(same, "extend changes the state that it was given: make a new one")
    again = encoder.extend(_piece(batch, 5, 8), state, False)[0].states
    require_same(again, first.states, "extend gives other states when it is called again with the same state")


def a_stream_without_an_end_takes_no_more_memory(encoder: Encoder) -> None:
    batch, state = _whole(encoder, 1, 12), encoder.start(1)
    sizes = []
    with torch.no_grad():
        for _ in range(20):
            for place in range(12):
                _, state = encoder.extend(_piece(batch, place, place + 1), state, False)
            sizes.append(sum(value.untyped_storage().nbytes() for value in tensors(state)))
    grows = f"its state grows: {max(sizes[5:10]):,} bytes after 120 inputs, {max(sizes[10:]):,} after 240"
    require(max(sizes[10:]) <= max(sizes[5:10]), grows)  # after so many no cache is still being filled
    kept = sum(value.numel() * value.element_size() for value in tensors(state))
    require(kept >= sizes[-1] / 3, "its state is a view of something larger: clone what is kept")


def _whole(encoder: Encoder, rows: int, length: int) -> Padded:
    """Rows of one length: streams are in step."""
    return source_for(encoder, (length,) * rows)


def _piece(batch: Padded, begin: int, end: int) -> Padded:
    values = batch.values[:, begin:end]
    return Padded(values, torch.full_like(batch.lengths, values.shape[1]))


def _streamed(encoder: Encoder, batch: Padded, sizes: Sequence[int]) -> Memory:
    """The memory of a source in pieces of these sizes; after the last one it is closed."""
    state, memory, begin = encoder.start(len(batch.lengths)), None, 0
    for number, size in enumerate(sizes):
        closed = number == len(sizes) - 1
        part, state = encoder.extend(_piece(batch, begin, begin + size), state, closed)
        require(part.closed == closed, f"extend(closed={closed}) returns a memory with closed={part.closed}")
        wrong = "extend returns padding: all rows of a stream have as many states as memory.lengths says"
        require(part.lengths.tolist() == [part.states.shape[1]] * len(batch.lengths), wrong)
        memory = part if memory is None else memory.append(part)
        begin += size
    assert memory is not None
    return memory
