"""Streaming encoders against reference modules of torch.nn, and their receptive fields."""

import pytest
import torch
from torch import nn
from torch.nn.functional import glu, pad

from seqloom.nn.cells.gru import GRU
from seqloom.nn.encoders.chunked import Chunked
from seqloom.nn.encoders.convolution import Block, Convolution
from seqloom.nn.encoders.pyramidal import Pyramidal
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.transformer import Transformer
from seqloom.types import Padded
from tests.building import VECTORS, build, source
from tests.exact.test_transformer import torchs


def influences(encoder, length):
    """Which inputs each state depends on, by gradients.  (states, length)"""
    values = torch.randn(1, length, VECTORS["features"], dtype=torch.float64, requires_grad=True)
    states = encoder(Padded(values, torch.tensor([length]))).states[0].pow(2).sum(-1)
    return torch.stack([torch.autograd.grad(state, values, retain_graph=True)[0][0].any(-1) for state in states])


@pytest.mark.parametrize("activation", ["gated", "relu"])
@pytest.mark.parametrize("dilation", [1, 3])
def test_a_block_equals_torchs_convolution_padded_on_the_left(activation, dilation):
    block = build(Block, kernel=3, dilation=dilation, activation=activation)
    outputs = block.linear.out_features
    reference = nn.Conv1d(8, outputs, 3, dilation=dilation).double()
    weight = block.linear.weight.view(outputs, 3, 8).transpose(1, 2)
    reference.load_state_dict({"weight": weight, "bias": block.linear.bias})
    values = torch.randn(2, 7, 8, dtype=torch.float64)
    change = reference(pad(block.norm(values).transpose(1, 2), (block.context, 0))).transpose(1, 2)
    change = glu(change, dim=-1) if activation == "gated" else change.relu()
    ours, _ = block(values, values.new_zeros(2, block.context, 8))
    torch.testing.assert_close(ours, values + change)


def test_the_receptive_field_of_a_convolution_follows_its_dilations_and_is_causal():
    encoder = build(Convolution, layers=2, kernel=2, dilations=(1, 3), **VECTORS)
    distance = torch.arange(9)[:, None] - torch.arange(9)
    reached = torch.stack([distance == far for far in (0, 1, 3, 4)]).any(0)  # of 1 and 3 none, one, the other or both
    assert torch.equal(influences(encoder, 9), reached)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_chunked_attention_equals_torchs_encoder_under_a_mask(norm):
    encoder = build(Chunked, chunk=2, left=1, norm=norm)
    batch = source((7, 4, 1))
    ours = encoder(batch)
    chunks = torch.arange(7) // 2
    distance = chunks[:, None] - chunks
    hidden = (distance < 0) | (distance > 1)
    values = encoder.add_positions(encoder.embedding(batch.values), encoder.encodings(0, 7))
    for row, length in enumerate(batch.lengths):
        alone = values[row : row + 1, :length]
        for layer in encoder.layers:
            alone = torchs(nn.TransformerEncoderLayer, layer, norm)(alone, src_mask=hidden[:length, :length])
        torch.testing.assert_close(ours.states[row, :length], encoder.norm(alone)[0])


def test_one_chunk_for_the_whole_source_equals_the_transformer():
    encoder, reference = build(Chunked, chunk=7), build(Transformer)
    reference.load_state_dict(encoder.state_dict())
    batch = source((7, 4, 1))
    ours, theirs = encoder(batch, attention=True), reference(batch, attention=True)
    torch.testing.assert_close(ours.states, theirs.states)
    torch.testing.assert_close(ours.final, theirs.final)
    for row, length in enumerate(batch.lengths):  # here padding attends itself, and is never read
        weights = (each.extra["attention"][row, :, :, :length] for each in (ours, theirs))
        torch.testing.assert_close(*weights)


@pytest.mark.parametrize(("chunk", "left", "layers"), [(2, 1, 1), (3, 0, 2), (1, 2, 2), (2, 1, 3)])
def test_a_position_sees_its_chunk_and_left_more_per_layer(chunk, left, layers):
    encoder = build(Chunked, chunk=chunk, left=left, layers=layers, **VECTORS)
    distance = torch.arange(9)[:, None] // chunk - torch.arange(9) // chunk
    assert torch.equal(influences(encoder, 9), (distance >= 0) & (distance <= left * layers))


def test_chunks_of_padding_only_leave_gradients_finite():
    encoder = build(Chunked, chunk=2, left=1, dropout=0.5).train()  # drop-out needs explicit attention weights
    memory = encoder(source((7, 4, 1)))
    memory.states[memory.mask].pow(2).sum().backward()
    assert all(value.grad.isfinite().all() for value in encoder.parameters())


def test_positions_without_a_table_equal_those_of_the_table():
    positions = build(Chunked).positions
    numbers = torch.arange(40)
    assert torch.equal(positions.compute(numbers), positions(numbers))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_pyramid_equals_torchs_layers_on_groups(bidirectional):
    encoder = build(Pyramidal, layers=3, reduce=2, cell=GRU, bidirectional=bidirectional)
    batch = source((7, 4, 1))
    ours = encoder(batch)
    assert ours.lengths.tolist() == [2, 1, 1]
    for row, length in enumerate(batch.lengths):
        values = encoder.embedding(batch.values[row : row + 1, :length])
        for layer in range(3):
            if layer:
                filled = pad(values, (0, 0, 0, values.shape[1] % 2))
                values = torch.cat([filled[:, ::2], filled[:, 1::2]], dim=-1)
            reference = nn.GRU(values.shape[-1], 8, batch_first=True, bidirectional=bidirectional).double()
            weights = dict(encoder.forwards[layer].kernel.named_parameters())
            if bidirectional:
                back = encoder.backwards[layer].kernel.named_parameters()
                weights |= {f"{name}_reverse": value for name, value in back}
            reference.load_state_dict(weights)
            values, final = reference(values)
        torch.testing.assert_close(ours.states[row, : ours.lengths[row]], values[0])
        torch.testing.assert_close(ours.final["summary"][row], final[:, 0].flatten())


def test_every_input_of_a_pyramid_matters_and_streams_wait_for_complete_groups():
    encoder = build(Pyramidal, layers=2, reduce=3, bidirectional=False, **VECTORS)
    assert influences(encoder, 7)[-1].all()
    values = torch.randn(1, 7, VECTORS["features"], dtype=torch.float64)
    state, counts = encoder.start(1), []
    for index in range(7):
        part, state = encoder.extend(Padded(values[:, index : index + 1], torch.tensor([1])), state, index == 6)
        counts.append(part.states.shape[1])
    assert counts == [0, 0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("part", [Recurrent, Convolution, Chunked])
def test_an_empty_stream_gives_an_empty_memory(part):
    encoder = build(part)
    nothing = Padded(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, dtype=torch.long))
    memory, _ = encoder.extend(nothing, encoder.start(2), True)
    assert memory.states.shape == (2, 0, encoder.output_size)
    assert memory.closed
    assert memory.final["summary"].isfinite().all()


@pytest.mark.parametrize(
    ("part", "settings", "complaint"),
    [
        (Chunked, {"chunk": 0}, "chunk = 0 must be 1 or more"),
        (Chunked, {"left": -1}, "left = -1 must be 0 or more"),
        (Convolution, {"kernel": 0}, "kernel = 0 must be 1 or more"),
        (Convolution, {"dilations": ()}, "dilations"),
        (Pyramidal, {"reduce": 0}, "reduce = 0 must be 1 or more"),
    ],
)
def test_impossible_settings_are_refused(part, settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        build(part, **settings)
