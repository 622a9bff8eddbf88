"""Layers, glimpses and depth step by step, as the equations have them."""

import pytest
import torch

from seqloom.nn.attention.additive import Additive
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.layers.recurrent import RecurrentStack
from seqloom.types import Padded
from tests.building import EOS, VOCABULARY, build, memory_for, source

SIZE = 8


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("cell", [LSTM, GRU])
@torch.no_grad()
def test_every_layer_of_a_residual_encoder_but_the_first_adds_its_input(cell, residual):
    """Also where the embedding is as wide as the layers, so that the first one could."""
    encoder = build(Recurrent, layers=3, embedding_size=SIZE, size=SIZE, cell=cell, residual=residual)
    batch = source((5, 3, 1))
    values = encoder.embedding(batch.values)
    for number, layer in enumerate(encoder.forwards):
        outputs, _ = layer.run(Padded(values, batch.lengths), layer.start(3))
        values = outputs + values if residual and number > 0 else outputs
    torch.testing.assert_close(encoder(batch).states[batch.mask], values[batch.mask])


@pytest.mark.parametrize("residual", [False, True])
@torch.no_grad()
def test_every_layer_of_a_residual_stack_but_the_first_adds_its_input(residual):
    stack = build(RecurrentStack, cell=GRU, input_size=SIZE, size=SIZE, layers=3, residual=residual)
    values, state = torch.randn(2, SIZE, dtype=torch.float64), stack.start(2)
    found, after = stack.step(values, state)
    for number, layer in enumerate(stack.cells):
        outputs, expected = layer(layer.project(values), state[str(number)])
        torch.testing.assert_close(after[str(number)], expected)
        values = outputs + values if residual and number > 0 else outputs
    torch.testing.assert_close(found, values)


@pytest.mark.parametrize("glimpses", [0, 1, 2, 3])
@torch.no_grad()
def test_a_pointer_looks_as_often_as_it_should_before_it_points(glimpses):
    """Vinyals, Bengio & Kudlur 2016, section 4.2, and Vinyals et al. 2015, eq. 3, of each row and place by itself."""
    decoder = build(Pointer, glimpses=glimpses, attention=Additive)
    memory = memory_for(decoder, (5, 3))
    hidden = torch.randn(2, 4, SIZE, dtype=torch.float64)
    queries, scores = decoder.point(hidden, memory)
    for row, length in enumerate(memory.lengths.tolist()):
        states = memory.states[row, :length]
        for place in range(4):
            query = hidden[row, place]
            for _ in range(glimpses):
                shares = energies(decoder.glimpse, query, states).softmax(0)
                query = torch.tanh(decoder.joining(torch.cat([shares @ states, query])))
            torch.testing.assert_close(queries[row, place], query)
            expected = energies(decoder.pointing, query, torch.cat([decoder.end[None], states]))
            torch.testing.assert_close(scores[row, place, EOS], expected[0])
            torch.testing.assert_close(scores[row, place, VOCABULARY : VOCABULARY + length], expected[1:])
            assert scores[row, place].isfinite().sum() == 1 + length


def energies(attention, query, states):
    """v . tanh(W q + U k) of one query.  (D,), (T, D) -> (T,)"""
    return torch.tanh(attention.query(query) + attention.key(states)) @ attention.energy.weight[0]


@pytest.mark.parametrize(("norm", "sharpness", "bias"), [("pre", 3, -3), ("post", 12, -2)])
@torch.no_grad()
def test_positions_that_have_halted_are_attended_as_they_were_when_they_halted(norm, sharpness, bias):
    encoder = build(Transformer, adaptive=True, layers=6, norm=norm)
    encoder.halting.unit.weight.mul_(sharpness)
    encoder.halting.unit.bias.fill_(bias)
    (layer,), entered, inner = encoder.layers, [], encoder.layers[0].encode

    def record(values, *given):
        entered.append(values)
        return inner(values, *given)

    layer.encode = record
    batch = source((6,), seed=4)
    steps = encoder(batch, attention=True).extra["steps"][0, :, 0].long().tolist()
    encodings = encoder.positioned.positions(torch.arange(6))
    states = [each - encodings - encoder.times(torch.tensor(time)) for time, each in enumerate(entered)]
    assert 1 < max(steps) == len(entered)
    assert min(steps) < max(steps) - 1  # one position halts while others take two steps or more
    for position, taken in enumerate(steps):
        for time in range(1, len(entered)):
            same = torch.allclose(states[time][position], states[time - 1][position], atol=1e-9)
            assert same == (time > taken), (position, time, taken)
