"""What holds for every encoder."""

from __future__ import annotations

import torch

from seqloom.contracts import Encoder
from seqloom.errors import SeqloomError
from seqloom.testing.claims import NotAsked, refused, require, require_gradients, require_same
from seqloom.testing.small import counted, longer, one_row, source, source_for
from seqloom.types import over_tensors


def the_memory_is_as_wide_as_promised(encoder: Encoder) -> None:
    batch = source_for(encoder)
    memory, counts = encoder(batch), counted(encoder, batch)
    wanted = (3, encoder.count_states(max(counts)), encoder.output_size)
    require(
        memory.states.shape == wanted,
        f"states have shape {tuple(memory.states.shape)}, not (B, T, output_size) {wanted}",
    )
    lengths = [encoder.count_states(length) for length in counts]
    read = ", ".join(map(str, counts))
    wrong = f"memory.lengths are {memory.lengths.tolist()}, not {lengths}: sources of {read}, as count_states() says"
    require(memory.lengths.tolist() == lengths, wrong)
    summary = memory.final.get("summary")
    require(summary is not None, 'memory.final has no "summary": (B, output_size)')
    assert summary is not None
    width = (3, encoder.output_size)
    require(summary.shape == width, f'final["summary"] has shape {tuple(summary.shape)}, not (B, output_size) {width}')
    require(memory.states.dtype == torch.float64, f"float64 weights give {memory.states.dtype} states: keep the dtype")


def padding_changes_nothing(encoder: Encoder) -> None:
    batch = source_for(encoder)
    memory = encoder(batch)
    padded = encoder(longer(batch))
    require(torch.equal(padded.lengths, memory.lengths), "more padding changes memory.lengths")
    for row, length in enumerate(memory.lengths):
        wrong = f"values beyond the length of row {row} change its states: padding leaks"
        require_same(padded.states[row, :length], memory.states[row, :length], wrong)
    require_same(padded.final, memory.final, "values beyond a row's length change memory.final: padding leaks")
    require_same(padded.costs, memory.costs, 'values beyond a row\'s length change extra["cost"]: padding leaks')


def a_batch_is_its_sources_one_by_one(encoder: Encoder) -> None:
    batch = source_for(encoder)
    memory = encoder(batch)
    for row in range(len(batch.lengths)):
        alone = encoder(one_row(batch, row))
        wrong = f"row {row} has other states in a batch than alone: rows see each other, or padding"
        require_same(alone.states[0], memory.states[row, : memory.lengths[row]], wrong)
        wrong = f"row {row} has another memory.final in a batch than alone"
        ours = memory.select(torch.tensor([row]))
        require_same(alone.final, ours.final, wrong)
        require_same(alone.costs, ours.costs, f'row {row} has another extra["cost"] in a batch than alone')


def every_parameter_gets_a_gradient(encoder: Encoder) -> None:
    encoder.train()  # some weights scale noise, of which there is none outside training
    memory = encoder(source_for(encoder))
    states = [each.states[each.mask] for each in (memory, *memory.parts.values())]
    loss = sum(each.pow(2).sum() + each.sum() for each in states) + memory.final["summary"].sum()
    loss.backward()
    require_gradients(encoder)


def one_that_does_not_stream_says_so(encoder: Encoder) -> None:
    if encoder.streams:
        raise NotAsked("it streams")
    wrong = "must refuse in one line an encoder that does not stream: leave start and extend out, or set streams"
    with refused(SeqloomError, "reads the end of a source before its beginning", f"start {wrong}"):
        encoder.start(1)
    with refused(SeqloomError, "reads the end of a source before its beginning", f"extend {wrong}"):
        encoder.extend(source((2,)), {}, True)


def a_state_has_rows_first(encoder: Encoder) -> None:
    if not encoder.streams:
        raise NotAsked("it does not stream, and has no state")
    wrong = "an entry of start(3) does not have 3 rows as its first axis"
    over_tensors(lambda value: require(len(value) == 3, wrong), encoder.start(3))
