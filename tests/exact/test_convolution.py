"""ConvS2S and ByteNet against naive restatements; causality, receptive fields, unfolding."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d, glu, layer_norm

from seqloom.nn.decoders.byte_net import ByteNet as ByteNetDecoder
from seqloom.nn.decoders.conv_s2s import ConvS2S as ConvS2SDecoder
from seqloom.nn.encoders.byte_net import ByteNet
from seqloom.nn.encoders.conv_s2s import ConvS2S
from seqloom.nn.layers.byte_net import ByteNetStack
from seqloom.nn.layers.convolution import Convolution
from seqloom.types import Memory, Padded
from tests.building import build, memory_for, source

HALF = math.sqrt(0.5)


def as_conv1d(part: Convolution, values: Tensor, before: int, after: int) -> Tensor:
    """The same convolution by torch, of one sequence.  (T, D) -> (T, O)"""
    weight = part.weight
    if part.gain is not None:
        weight = part.gain * weight / weight.pow(2).sum(1, keepdim=True).sqrt()
    kernel = weight.view(len(weight), part.kernel, part.input_size).transpose(1, 2)  # (O, D, kernel)
    padded = torch.nn.functional.pad(values.T[None], (before, after))
    return conv1d(padded, kernel, part.bias, dilation=part.dilation)[0].T


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (2, 3), (3, 1), (3, 4), (5, 2)])
def test_a_convolution_is_torchs(kernel: int, dilation: int, normed: bool) -> None:
    values = torch.randn(2, 7, 4, dtype=torch.float64)
    for causal in (True, False) if kernel % 2 else (True,):
        part = build(
            Convolution, input_size=4, output_size=6, kernel=kernel, dilation=dilation, causal=causal, normed=normed
        )
        before = part.context if causal else part.context // 2
        expected = [as_conv1d(part, row, before, part.context - before) for row in values]
        assert torch.allclose(part(values), torch.stack(expected), atol=1e-12)


def test_weights_that_are_normed_keep_what_they_were_given() -> None:
    part = Convolution(input_size=4, output_size=6, normed=True)
    plain = Convolution(input_size=4, output_size=6)
    plain.load_state_dict({name: value for name, value in part.state_dict().items() if name != "gain"})
    values = torch.randn(1, 5, 4)
    assert torch.allclose(part(values), plain(values), atol=1e-6)


def test_frozen_normed_weights_follow_a_change() -> None:
    part = build(Convolution, input_size=4, output_size=6, normed=True).requires_grad_(False)
    values = torch.randn(1, 5, 4, dtype=torch.float64)
    with torch.no_grad():
        before = part(values)
        part.gain.mul_(2)
        after = part(values)
    assert torch.allclose((after - part.bias), 2 * (before - part.bias), atol=1e-12)


def test_an_even_kernel_is_refused_where_both_sides_are_seen() -> None:
    with pytest.raises(ValueError, match="kernel = 4 must be odd"):
        build(ConvS2S, kernel=4)


def test_embeddings_of_another_size_than_the_states_are_refused() -> None:
    """Queries, which are as wide as embeddings, are compared with states."""
    with pytest.raises(ValueError, match="embedding_size = 6 must be 8, the size of the encoder's states"):
        build(ConvS2SDecoder, embedding_size=6, memory_size=8)
    assert not build(ConvS2SDecoder, embedding_size=6, memory_size=0).attends
    assert build(ConvS2SDecoder, embedding_size=1, memory_size=1).attends


def test_the_encoder_of_conv_s2s_is_its_equations() -> None:
    encoder = build(ConvS2S, size=6, layers=3)
    tokens = source((5, 3, 1))
    memory = encoder(tokens)
    for row, length in enumerate((5, 3, 1)):
        embedded = encoder.embedding(tokens.values[row, :length]) + encoder.positions.table.weight[:length]
        values = embedded @ encoder.enter.weight.T + encoder.enter.bias
        for convolution in encoder.convolutions:
            values = (glu(as_conv1d(convolution, values, 1, 1), -1) + values) * HALF
        states = values @ encoder.leave.weight.T + encoder.leave.bias
        assert torch.allclose(memory.states[row, :length], states, atol=1e-12)
        assert torch.allclose(memory.extra["embedded"][row, :length], embedded, atol=1e-12)


def test_the_decoder_of_conv_s2s_is_its_equations() -> None:
    decoder = build(ConvS2SDecoder, size=6, layers=3)
    states = torch.randn(1, 4, 8, dtype=torch.float64)
    embedded_source = torch.randn(1, 4, 8, dtype=torch.float64)
    memory = Memory(states, torch.tensor([4]), {"summary": states[:, 0]}, {"embedded": embedded_source})
    inputs = source((5,), seed=3)
    output = decoder(decoder.prepare(memory), inputs, attention=True)

    g = decoder.embedding(inputs.values[0]) + decoder.positions.table.weight[:5]
    h = g @ decoder.enter.weight.T + decoder.enter.bias
    for number, layer in enumerate(decoder.layers):
        conv = glu(as_conv1d(layer.convolution, h, 2, 0), -1)
        d = (conv @ layer.query.weight.T + layer.query.bias + g) * HALF
        a = torch.softmax(d @ states[0].T, -1)
        c = math.sqrt(4) * a @ ((states[0] + embedded_source[0]) * HALF)
        h = ((conv + c @ layer.context.weight.T + layer.context.bias) * HALF + h) * HALF
        assert torch.allclose(output.attention["source"][0, number, 0], a, atol=1e-12)
    hidden = h @ decoder.leave.weight.T + decoder.leave.bias
    assert torch.allclose(output.scores[0], hidden @ decoder.embedding.weight.T, atol=1e-12)


def test_values_are_the_states_alone_if_no_embeddings_were_left() -> None:
    decoder = build(ConvS2SDecoder)
    memory = memory_for(decoder)
    assert torch.equal(memory.extra["values"], memory.states)


@pytest.mark.parametrize("kind", [ConvS2SDecoder, ByteNetDecoder])
def test_the_jacobian_is_causal_and_ends_with_the_receptive_field(kind: type) -> None:
    decoder = build(kind, layers=2, kernel=2, size=32)
    memory, width = memory_for(decoder, (12,)), 9
    tokens = torch.nn.functional.one_hot(source((width,), seed=3).values, 9).double()  # mixtures can be differentiated

    def scores(values: Tensor) -> Tensor:
        scored: Tensor = decoder(memory, Padded(values, torch.tensor([width]))).scores[0]
        return scored

    jacobian = torch.autograd.functional.jacobian(scores, tokens)[:, :, 0].abs().sum((1, 3))  # (out, in)
    field = 1 + 2 if kind is ConvS2SDecoder else decoder.stack.receptive_field
    for output in range(width):
        for read in range(width):
            assert (jacobian[output, read] > 0) == (0 <= output - read < field), (output, read)


def test_the_receptive_field_of_byte_net_is_its_formula() -> None:
    stack = build(ByteNetStack, size=8, layers=5, kernel=3, dilations=(1, 2, 4), causal=True)
    assert stack.receptive_field == 1 + 2 * (1 + 2 + 4 + 1 + 2)


def test_a_block_of_byte_net_is_its_figure() -> None:
    stack = build(ByteNetStack, size=8, layers=2, kernel=3, dilations=(1, 2), causal=False)
    values = torch.randn(1, 7, 8, dtype=torch.float64)
    x = values[0]
    for block in stack.blocks:

        def normed(at: int, inputs: Tensor, block=block) -> Tensor:
            norm = block.norms[at]
            return layer_norm(inputs, inputs.shape[-1:], norm.weight, norm.bias).clamp(min=0)

        reach = block.convolution.dilation
        inner = normed(1, normed(0, x) @ block.narrow.weight.T + block.narrow.bias)
        inner = normed(2, as_conv1d(block.convolution, inner, reach, reach))
        x = x + inner @ block.widen.weight.T + block.widen.bias
    expected = layer_norm(x, (8,), stack.norm.weight, stack.norm.bias).clamp(min=0)
    assert torch.allclose(stack(values, torch.ones(1, 7, 1, dtype=torch.bool))[0], expected, atol=1e-12)


def test_the_memory_of_byte_net_is_drawn_out_to_the_unfolded_length() -> None:
    encoder = build(ByteNet, unfold_ratio=1.5, unfold_offset=2)
    memory = encoder(source((5, 3, 1)))
    assert memory.lengths.tolist() == [10, 7, 4]
    assert memory.states.shape[1] == 10
    assert not encoder.one_state_per_token
    assert (memory.states[0, 8:].diff(dim=0).abs().sum(-1) > 0).all()  # the source is seen beyond its own end


def test_output_i_of_byte_net_sees_state_i_and_beyond_the_last_none() -> None:
    decoder = build(ByteNetDecoder, layers=1, kernel=1, size=32)
    memory, inputs = memory_for(decoder, (4,)), source((6,), seed=3)
    scores = decoder(memory, inputs).scores[0]
    for place in range(4):
        changed = memory.extra["columns"].clone()
        changed[:, place] += torch.randn(32, dtype=torch.float64)  # layer normalisation removes a constant
        other = decoder(memory.with_extra(columns=changed), inputs).scores[0]
        moved = (scores - other).abs().sum(-1) > 1e-9
        assert moved.tolist() == [at == place for at in range(6)]
    alone = decoder(memory.with_extra(columns=torch.zeros_like(memory.extra["columns"])), inputs).scores[0]
    assert torch.allclose(scores[4:], alone[4:], atol=1e-12)
