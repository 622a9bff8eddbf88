"""Deep-Att: both halves follow the equations of Zhou et al. 2016 step by step, and a linear path leads through them."""

from functools import partial

import pytest
import torch

from seqloom.nn.attention.dot import Dot
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.deep_att import DeepAtt as Decoder
from seqloom.nn.encoders.deep_att import DeepAtt as Encoder
from seqloom.nn.layers.fast_forward import run_fast_forward
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Padded
from tests.building import BOS, FEATURES, build, memory_for, source

SIZE = 8
CELLS = pytest.mark.parametrize(
    "cell",
    [LSTM, GRU, partial(GRU, reset="before"), partial(LSTM, without="input"), Elman],
    ids=["lstm", "gru", "gru-before", "three gates", "elman"],
)


def half(vector):
    return vector[: len(vector) // 2]


def lstm_by_hand(cell, vector, state):
    """f = W x + b, and one step of an LSTM on it: f, the hidden state and the cell state."""
    weights = dict(cell.kernel.named_parameters())
    f = weights["weight_ih_l0"] @ vector + weights["bias_ih_l0"] + weights["bias_hh_l0"]
    hidden, memory = state
    i, forget, g, o = (f + weights["weight_hh_l0"] @ hidden).view(4, -1)
    memory = forget.sigmoid() * memory + i.sigmoid() * g.tanh()
    return f, o.sigmoid() * memory.tanh(), memory


def column_by_hand(cells, vectors, backwards):
    """[Half(f); h] of the top layer at each of the vectors; and at the last one that it reads."""
    for layer, cell in enumerate(cells):
        order = range(len(vectors))
        if (layer % 2 == 1) != backwards:
            order = reversed(order)
        state = torch.zeros(2, SIZE, dtype=torch.float64)
        above = [None] * len(vectors)
        for time in order:
            f, hidden, memory = lstm_by_hand(cell, vectors[time], state)
            state = (hidden, memory)
            above[time] = torch.cat([half(f), hidden])
        vectors = above
    return vectors, vectors[time]


# -- the encoder


@pytest.mark.parametrize("interface_size", [None, 5])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@torch.no_grad()
def test_the_encoder_reads_its_columns_in_alternating_directions(layers, columns, interface_size):
    encoder = build(Encoder, layers=layers, columns=columns, interface_size=interface_size)
    batch = source((5, 3, 1))
    memory = encoder(batch)
    for row, length in enumerate(batch.lengths):
        vectors = list(encoder.embedding(batch.values[row, :length]))
        tops = [column_by_hand(cells, vectors, backwards=number == 1) for number, cells in enumerate(encoder.columns)]
        for time in range(length):
            expected = torch.cat([values[time] for values, _ in tops])
            assert len(expected) == columns * (2 * SIZE + SIZE)
            torch.testing.assert_close(memory.states[row, time], encoder.interface(expected))
        summary = encoder.interface(torch.cat([end for _, end in tops]))
        torch.testing.assert_close(memory.final["summary"][row], summary)


@CELLS
@torch.no_grad()
def test_other_cells_pass_on_half_of_what_they_project(cell):
    encoder = build(Encoder, cell=cell, layers=2, columns=1)
    bottom, top = encoder.columns[0]
    batch = source((4, 4, 4))
    values, states = encoder.embedding(batch.values), bottom.start(3)
    passed = []
    for vector in values.unbind(1):
        f = bottom.project(vector)
        hidden, states = bottom(f, states)
        passed.append(torch.cat([f[:, : f.shape[1] // 2], hidden], dim=1))
    states, expected = top.start(3), []
    for vector in reversed(passed):
        f = top.project(vector)
        hidden, states = top(f, states)
        expected.insert(0, torch.cat([f[:, : f.shape[1] // 2], hidden], dim=1))
    torch.testing.assert_close(encoder(batch).states, torch.stack(expected, dim=1))


@pytest.mark.parametrize("changed", [0, 2])
@torch.no_grad()
def test_a_column_of_one_layer_sees_one_side_and_of_two_layers_the_whole_source(changed):
    batch = source((3,), seed=1)
    values = batch.values.clone()
    values[0, changed] = 4 + (values[0, changed] - 3) % 5  # a different token
    for layers in (1, 2):
        encoder = build(Encoder, layers=layers)
        moved = encoder(Padded(values, batch.lengths)).states - encoder(batch).states
        first, second = ((part.abs().amax(-1)[0] > 1e-9).tolist() for part in moved.split(3 * SIZE, dim=-1))
        assert first == [layers == 2 or time >= changed for time in range(3)]
        assert second == [layers == 2 or time <= changed for time in range(3)]


# -- the linear path


def test_with_the_recurrence_and_the_outputs_cut_the_linear_path_is_the_product_of_its_matrices():
    encoder = build(Encoder, vocabulary=None, features=FEATURES, layers=4, columns=1)
    encoder.embedding = torch.nn.Identity()  # it reads vectors of its embedding size
    cells = encoder.columns[0]
    product = torch.eye(SIZE, dtype=torch.float64)
    with torch.no_grad():
        for layer, cell in enumerate(cells):
            cell.kernel.weight_hh_l0.zero_()
            if layer:
                cell.kernel.weight_ih_l0[:, 2 * SIZE :] = 0  # the columns that read h
            product = cell.kernel.weight_ih_l0[: 2 * SIZE, : len(product)] @ product
    inputs = torch.randn(3, SIZE, dtype=torch.float64)

    def top(values):
        return encoder(Padded(values[None], torch.tensor([3]))).states[0, :, : 2 * SIZE]

    jacobian = torch.autograd.functional.jacobian(top, inputs)  # (T, 2 * size, T, size)
    for after in range(3):
        for before in range(3):
            expected = product if after == before else torch.zeros_like(product)
            torch.testing.assert_close(jacobian[after, :, before], expected)


def test_the_gradient_at_the_bottom_is_that_of_the_linear_path_where_all_gates_are_shut():
    """Saturated gates let no gradient pass: what reaches the input of a deep stack goes from f to f."""
    encoder = build(Encoder, layers=6, columns=1)
    cells = encoder.columns[0]
    with torch.no_grad():
        for cell in cells:
            cell.kernel.bias_ih_l0[:SIZE] = -1000  # input gate
            cell.kernel.bias_ih_l0[3 * SIZE :] = -1000  # output gate
    values = torch.randn(1, 4, SIZE, dtype=torch.float64, requires_grad=True)
    given = Padded(values, torch.tensor([4]))
    outputs, top, _ = run_fast_forward(cells, given, [cell.start(1) for cell in cells], Dropout(0.0), alternate=True)
    assert not torch.autograd.grad(outputs.sum(), values, retain_graph=True)[0].any()
    (found,) = torch.autograd.grad(cells[-1].project(top)[..., : 2 * SIZE].sum(), values)
    expected = torch.ones(2 * SIZE, dtype=torch.float64)
    for cell in reversed(cells):
        expected = (expected @ cell.kernel.weight_ih_l0[: 2 * SIZE])[: 2 * SIZE]
    torch.testing.assert_close(found[0], expected.expand(4, SIZE))


def test_drop_out_leaves_the_linear_path_alone():
    encoder = build(Encoder, layers=3, columns=1)
    cells = encoder.columns[0]
    with torch.no_grad():
        for cell in cells[1:]:
            cell.kernel.weight_ih_l0[:, 2 * SIZE :] = 0
    given = Padded(torch.randn(2, 4, SIZE, dtype=torch.float64), torch.tensor([4, 2]))
    start = [cell.start(2) for cell in cells]
    plain, dropped = (run_fast_forward(cells, given, start, Dropout(rate).train())[1] for rate in (0.0, 0.5))
    torch.testing.assert_close(plain[..., : 2 * SIZE], dropped[..., : 2 * SIZE])
    assert (plain[..., 2 * SIZE :] != dropped[..., 2 * SIZE :]).any()


# -- the decoder


def inputs(lengths=(5, 2, 4)):
    words = source(lengths, seed=3)
    words.values[:, 0] = BOS
    return words


@pytest.mark.parametrize("layers", [1, 2, 4])
@torch.no_grad()
def test_forward_is_stepping_is_the_equations(layers):
    decoder = build(Decoder, layers=layers, attention=Dot)
    memory, tokens = memory_for(decoder), inputs()
    output = decoder(memory, tokens, attention=True)
    for row, length in enumerate(tokens.lengths):
        only = memory.select(torch.tensor([row]))
        known = only.states[0, : only.lengths[0]]  # (T, memory_size)
        stepped = decoder.start(only)
        states = [(stepped["layers"][str(layer)]["hidden"][0], stepped["layers"][str(layer)]["cell"][0])
                  for layer in range(layers)]  # fmt: skip
        for time, token in enumerate(tokens.values[row, :length]):
            weights = (known @ states[0][0]).softmax(0)  # the query is the bottom layer's last output
            vector = torch.cat([decoder.embedding(token), weights @ known])
            for layer, cell in enumerate(decoder.cells):
                f, hidden, kept = lstm_by_hand(cell, vector, states[layer])
                states[layer] = (hidden, kept)
                vector = torch.cat([half(f), hidden])
            expected = decoder.output(hidden)
            scores, stepped = decoder.step(token[None], stepped, only)
            torch.testing.assert_close(scores[0], expected)
            torch.testing.assert_close(output.scores[row, time], expected)
            torch.testing.assert_close(output.attention["source"][row, 0, 0, time, : len(known)], weights)
        for layer in range(layers):
            torch.testing.assert_close(output.state["layers"][str(layer)]["hidden"][row], states[layer][0])
            torch.testing.assert_close(output.state["layers"][str(layer)]["cell"][row], states[layer][1])


@CELLS
@torch.no_grad()
def test_with_other_cells_forward_is_stepping_too(cell):
    decoder = build(Decoder, layers=3, cell=cell)
    memory, tokens = memory_for(decoder), inputs((5, 5, 5))
    scores, state = decoder(memory, tokens).scores, decoder.start(memory)
    for time, token in enumerate(tokens.values.unbind(1)):
        found, state = decoder.step(token, state, memory)
        torch.testing.assert_close(found, scores[:, time])


@torch.no_grad()
def test_the_context_enters_the_bottom_layer_alone():
    decoder = build(Decoder, layers=3)
    assert [cell.input_size for cell in decoder.cells] == [SIZE + SIZE, 3 * SIZE, 3 * SIZE]
    memory, tokens = memory_for(decoder), inputs((5, 5, 5))
    decoder.cells[0].kernel.weight_ih_l0[:, SIZE:] = 0
    state = decoder.start(memory)
    first = decoder(memory, tokens, state).scores
    other = decoder.prepare(memory_for(decoder, seed=1))
    torch.testing.assert_close(decoder(other, tokens, state).scores, first)


# -- both, and padding


@torch.no_grad()
def test_padding_changes_nothing_from_the_source_to_the_scores():
    encoder = build(Encoder, layers=3)
    decoder = build(Decoder, layers=3, memory_size=encoder.output_size)
    batch, tokens = source((5, 3, 1)), inputs()
    scores = decoder(decoder.prepare(encoder(batch)), tokens).scores
    for row, (length, steps) in enumerate(zip(batch.lengths, tokens.lengths)):
        one = slice(row, row + 1)
        memory = decoder.prepare(encoder(Padded(batch.values[one, :length], batch.lengths[one])))
        alone = decoder(memory, Padded(tokens.values[one, :steps], tokens.lengths[one])).scores
        torch.testing.assert_close(alone[0], scores[row, :steps])


@pytest.mark.parametrize("layers", [0, -1])
@pytest.mark.parametrize("part", [Encoder, Decoder])
def test_a_stack_without_layers_is_refused(part, layers):
    with pytest.raises(ValueError, match=f"layers = {layers} must be 1 or more"):
        build(part, layers=layers)


def test_an_interface_without_width_is_refused():
    with pytest.raises(ValueError, match="interface_size = 0 must be 1 or more"):
        build(Encoder, interface_size=0)
