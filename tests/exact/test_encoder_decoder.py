"""What a recurrent encoder passes on to a recurrent decoder: bridges, attention, input feeding."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.recurrent import Recurrent as Encoder
from seqloom.types import Padded
from tests.building import BOS, build, memory_for, source

SIZE = 8
TOP = "1"  # the upper of two layers
CELLS = pytest.mark.parametrize("cell", [LSTM, GRU, partial(GRU, reset="before")], ids=["lstm", "gru", "gru-before"])
ORDERS = pytest.mark.parametrize("order", ["luong", "bahdanau"])


def inputs(seed=3):
    words = source((5, 5, 5), seed=seed)
    words.values[:, 0] = BOS
    return words


# -- the bridge


@CELLS
def test_a_copying_bridge_passes_on_the_states_at_each_sources_own_end(cell):
    encoder, decoder = build(Encoder, cell=cell), build(Decoder, cell=cell, bridge="copy")
    batch = source((5, 3, 1))
    start = decoder.start(decoder.prepare(encoder(batch)))["layers"]
    for row, length in enumerate(batch.lengths):
        values = encoder.embedding(batch.values[row : row + 1, :length])  # step by step, without padding
        for layer, part in enumerate(encoder.forwards):
            state, outputs = part.start(1), []
            for value in values.unbind(1):
                output, state = part(part.project(value), state)
                outputs.append(output)
            values = torch.stack(outputs, dim=1)
            assert start[str(layer)].keys() == state.keys()
            for name in state:
                torch.testing.assert_close(start[str(layer)][name][row], state[name][0])


def test_a_copying_bridge_passes_gradients_through_unchanged():
    encoder, decoder = build(Encoder), build(Decoder, bridge="copy")
    memory = encoder(source())
    start = decoder.start(memory)["layers"][TOP]["cell"]
    given = torch.randn_like(start)
    torch.testing.assert_close(
        torch.autograd.grad((start * given).sum(), memory.final["layers"][TOP]["cell"])[0], given
    )


def test_a_dense_bridge_is_tanh_of_a_projected_summary():
    decoder = build(Decoder, bridge="dense")
    memory = memory_for(decoder)
    expected = torch.tanh(memory.final["summary"] @ decoder.bridging.weight.T + decoder.bridging.bias)
    start = decoder.start(memory)["layers"]
    entries = [start[layer][name] for layer in ("0", TOP) for name in ("hidden", "cell")]
    torch.testing.assert_close(torch.cat(entries, dim=-1), expected)


# -- with and without attention


def without_attention(decoder):
    """A decoder with the weights of another, without those that apply to a context."""
    plain = build(Decoder)
    weights = {name: value for name, value in decoder.state_dict().items() if not name.startswith("attention.")}
    width = plain.embedding.embedding_dim
    for name, columns in (("stack.cells.0.kernel.weight_ih_l0", width), ("output.weight", SIZE)):
        weights[name] = weights[name][:, :columns]
    plain.load_state_dict(weights)
    return plain


@ORDERS
@pytest.mark.parametrize("input_feeding", [False, True])
@torch.no_grad()
def test_with_the_weights_of_the_context_zeroed_a_decoder_equals_one_without_attention(order, input_feeding):
    decoder = build(Decoder, attention=Additive, order=order, combine="add", input_feeding=input_feeding)
    memory = memory_for(decoder)
    expected = without_attention(decoder)(memory, inputs()).scores
    assert (decoder(memory, inputs()).scores - expected).abs().max() > 1e-3
    decoder.output.weight[:, SIZE:] = 0
    entering = decoder.stack.cells[0].kernel.weight_ih_l0
    entering[:, decoder.embedding.embedding_dim :] = 0
    torch.testing.assert_close(decoder(memory, inputs()).scores, expected)


def test_without_attention_gradients_enter_through_the_final_state_only():
    encoder, decoder = build(Encoder), build(Decoder)
    batch = source((5, 3, 1))
    embedded = encoder.embedding(batch.values).detach().requires_grad_()
    encoder.embedding = torch.nn.Identity()  # it reads vectors now, so that each input has a gradient
    memory = encoder(Padded(embedded, batch.lengths))
    loss = decoder(decoder.prepare(memory), inputs()).scores.pow(2).sum()
    of_states, of_summary, of_symbols = torch.autograd.grad(
        loss, (memory.states, memory.final["summary"], embedded), allow_unused=True, materialize_grads=True
    )
    last = torch.arange(5) == batch.lengths[:, None] - 1
    assert not (of_states.abs().amax(-1) > 0)[~last].any()
    assert (of_summary.abs().amax(-1) > 0).all()
    assert torch.equal(of_symbols.abs().amax(-1) > 0, batch.mask)


@ORDERS
def test_with_attention_every_real_state_gets_a_gradient(order):
    encoder, decoder = build(Encoder), build(Decoder, attention=Additive, order=order, bridge="zero")
    memory = encoder(source((5, 3, 1)))
    loss = decoder(decoder.prepare(memory), inputs()).scores.pow(2).sum()
    influence = torch.autograd.grad(loss, memory.states)[0].abs().amax(-1)  # (B, T)
    assert torch.equal(influence > 0, memory.mask)


# -- how state and context are combined


def step_by_hand(decoder, memory, token, state):
    """One step of the stack and a context, both by hand: the state before and after the step, and the context."""
    before = state["layers"][TOP]["hidden"]
    entering = [decoder.embedding(token)]
    if decoder.fed_size:
        entering.append(state["fed"])
    if decoder.order == "bahdanau":
        context = decoder.attention(before[:, None], memory, {})[0][:, 0]
        output, layers = decoder.stack.step(torch.cat([*entering, context], dim=-1), state["layers"])
    else:
        output, layers = decoder.stack.step(torch.cat(entering, dim=-1), state["layers"])
        context = decoder.attention(output[:, None], memory, {})[0][:, 0]
    return output, context, layers


@ORDERS
@pytest.mark.parametrize("input_feeding", [False, True])
@torch.no_grad()
def test_added_attention_is_two_products_in_the_logits(order, input_feeding):
    decoder = build(Decoder, attention=Bilinear, order=order, combine="add", input_feeding=input_feeding)
    memory = memory_for(decoder)
    state, tokens = decoder.start(memory), inputs()
    scores = decoder(memory, tokens).scores
    of_state, of_context = decoder.output.weight.split([SIZE, SIZE], dim=1)
    for time, token in enumerate(tokens.values.unbind(1)):
        output, context, layers = step_by_hand(decoder, memory, token, state)
        expected = output @ of_state.T + context @ of_context.T + decoder.output.bias
        torch.testing.assert_close(scores[:, time], expected)
        state = {"layers": layers, "attention": {}, "fed": context}


@ORDERS
@torch.no_grad()
def test_concatenated_attention_is_luongs_equation_and_input_feeding_feeds_it(order):
    decoder = build(Decoder, attention=Bilinear, order=order, input_feeding=True)
    memory = memory_for(decoder)
    state, tokens = decoder.start(memory), inputs()
    assert not state["fed"].any()
    scores = decoder(memory, tokens).scores
    for time, token in enumerate(tokens.values.unbind(1)):
        output, context, layers = step_by_hand(decoder, memory, token, state)
        joined = torch.tanh(torch.cat([context, output], dim=-1) @ decoder.join.weight.T + decoder.join.bias)
        torch.testing.assert_close(scores[:, time], joined @ decoder.output.weight.T + decoder.output.bias)
        state = {"layers": layers, "attention": {}, "fed": joined}


@torch.no_grad()
def test_bahdanau_queries_with_the_state_before_the_step_and_luong_with_the_one_after():
    for order in ("bahdanau", "luong"):
        decoder = build(Decoder, attention=Additive, order=order)
        memory, tokens = memory_for(decoder), inputs()
        weights = decoder(memory, tokens, attention=True).attention["source"][:, 0, 0]  # (B, U, T)
        state = decoder.start(memory)
        for time, token in enumerate(tokens.values.unbind(1)):
            after = decoder.step(token, state, memory)[1]
            queried = state if order == "bahdanau" else after
            _, _, expected = decoder.attention(queried["layers"][TOP]["hidden"][:, None], memory, {}, weights=True)
            torch.testing.assert_close(weights[:, time], expected[:, 0, 0])
            state = after

        other = tokens.values.clone()
        other[:, 2] = 4 + (other[:, 2] - 3) % 5  # a different third token
        moved = decoder(memory, Padded(other, tokens.lengths), attention=True).attention["source"][:, 0, 0]
        changed = ((moved - weights).abs().amax((0, 2)) > 1e-9).tolist()
        assert changed == [False, False, order == "luong", True, True]


@pytest.mark.parametrize("combine", ["concat", "add", "rnn"])
@torch.no_grad()
def test_the_memory_enters_the_recurrence_through_input_feeding_only(combine):
    """Luong's recurrence never sees the memory, except through input feeding, one step late."""
    for feeding in (False, True):
        decoder = build(Decoder, attention=Additive, combine=combine, input_feeding=feeding, bridge="zero")
        memory = memory_for(decoder)
        other = decoder.prepare(replace(memory, states=memory.states + 1, extra={}))
        state, changed = decoder.start(memory), decoder.start(other)
        differ = []
        for token in inputs().values.unbind(1):
            _, state = decoder.step(token, state, memory)
            _, changed = decoder.step(token, changed, other)
            differ.append(bool((state["layers"][TOP]["hidden"] != changed["layers"][TOP]["hidden"]).any()))
        assert differ == ([False] + [feeding] * 4)


# -- further variants


@pytest.mark.parametrize("deep", [False, True])
@torch.no_grad()
def test_a_fixed_context_with_weights_of_zero_equals_a_decoder_that_only_starts_from_it(deep):
    decoder = build(Decoder, feed_context=True, deep_output=deep)
    plain = build(Decoder)
    memory = memory_for(decoder)
    width = plain.embedding.embedding_dim
    entering = decoder.stack.cells[0].kernel.weight_ih_l0
    entering[:, width:] = 0
    if deep:
        decoder.output.weight[:, SIZE:] = 0
    weights = decoder.state_dict()
    weights["stack.cells.0.kernel.weight_ih_l0"] = entering[:, :width]
    if deep:
        weights["output.weight"] = weights["output.weight"][:, :SIZE]
    plain.load_state_dict(weights)
    torch.testing.assert_close(decoder(memory, inputs()).scores, plain(memory, inputs()).scores)
    entering[:, width:] = 0.5
    assert (decoder(memory, inputs()).scores - plain(memory, inputs()).scores).abs().max() > 1e-3


@torch.no_grad()
def test_a_deep_output_reads_state_context_and_the_previous_token():
    decoder = build(Decoder, deep_output=True, attention=Additive)
    memory = decoder.prepare(memory_for(decoder))
    given = inputs()
    output = decoder(memory, given, attention=True)
    context = output.attention["source"][:, 0, 0] @ memory.states
    embedded = decoder.embedding(given.values)
    torch.testing.assert_close(output.hidden[:, :, SIZE : SIZE + context.shape[-1]], context)
    torch.testing.assert_close(output.hidden[:, :, SIZE + context.shape[-1] :], embedded)


@torch.no_grad()
def test_context_as_state_steps_from_the_context():
    decoder = build(Decoder, attention=Additive, combine="state")
    memory = decoder.prepare(memory_for(decoder))
    token = torch.tensor([4, 5, 6])
    _, state = decoder.step(token, decoder.start(memory), memory)
    output = decoder(memory, Padded(token[:, None], torch.ones(3, dtype=torch.long)), attention=True)
    context = (output.attention["source"][:, 0, 0] @ memory.states)[:, 0]
    torch.testing.assert_close(state["layers"]["1"]["hidden"], context)
    torch.testing.assert_close(output.hidden[:, 0], context)


@torch.no_grad()
def test_reading_in_reverse_equals_reading_the_reversed_source():
    backward, forward = build(Encoder, reverse=True), build(Encoder)
    forward.load_state_dict(backward.state_dict())
    batch = source((5, 3, 1))
    reversed_batch = Padded(reverse(batch), batch.lengths)
    ours, theirs = backward(batch), forward(reversed_batch)
    torch.testing.assert_close(ours.final["summary"], theirs.final["summary"])
    torch.testing.assert_close(reverse(Padded(ours.states, batch.lengths))[batch.mask], theirs.states[batch.mask])
    assert torch.equal(reverse(reversed_batch), batch.values)  # reversing twice changes nothing


def reverse(batch):
    rows = [row[:length].flip(0) for row, length in zip(batch.values, batch.lengths.tolist())]
    reversed_batch = batch.values.clone()
    for row, flipped in zip(reversed_batch, rows):
        row[: len(flipped)] = flipped
    return reversed_batch


# -- the decoder of Google's translator


@torch.no_grad()
def test_gnmt_follows_its_equations_layer_by_layer():
    decoder = build(GNMT, layers=4)
    memory = decoder.prepare(memory_for(decoder))
    state = decoder.start(memory)
    token = torch.tensor([4, 5, 6])
    scores, after = decoder.step(token, state, memory)
    context, _, _ = decoder.attention(state["layers"]["0"]["hidden"][:, None], memory, {})
    values = decoder.embedding(token)
    for layer, cell in enumerate(decoder.cells):
        entering = torch.cat([values, context[:, 0]], dim=-1)
        outputs, expected = cell(cell.project(entering), state["layers"][str(layer)])
        values = outputs + values if layer >= 2 else outputs
        torch.testing.assert_close(after["layers"][str(layer)], expected)
    torch.testing.assert_close(scores, decoder.output(values))


@torch.no_grad()
def test_a_bidirectional_bottom_layer_feeds_unidirectional_ones():
    encoder = build(Encoder, bidirectional="bottom", layers=3, residual=True)
    both = build(Encoder, bidirectional=True, layers=1)
    both.load_state_dict({name: value for name, value in encoder.state_dict().items() if name in both.state_dict()})
    batch = source((5, 3, 1))
    bottom = both(batch).states
    middle, _ = encoder.forwards[1].run(Padded(bottom, batch.lengths), encoder.forwards[1].start(3))
    top, _ = encoder.forwards[2].run(Padded(middle, batch.lengths), encoder.forwards[2].start(3))
    torch.testing.assert_close(encoder(batch).states[batch.mask], (top + middle)[batch.mask])
    assert encoder.output_size == SIZE


@torch.no_grad()
def test_a_hidden_bridge_leaves_the_cell_states_zero():
    encoder, decoder = build(Encoder), build(Decoder, bridge="hidden")
    memory = encoder(source((5, 3, 1)))
    for layer, state in decoder.start(memory)["layers"].items():
        torch.testing.assert_close(state["hidden"], memory.final["layers"][layer]["hidden"])
        assert not state["cell"].any()


@pytest.mark.parametrize("layers", [0, -1])
@pytest.mark.parametrize("part", [Encoder, Decoder, GNMT])
def test_a_stack_without_layers_is_refused(part, layers):
    with pytest.raises(ValueError, match=f"layers = {layers} must be 1 or more"):
        build(part, layers=layers)


def test_states_of_different_sizes_are_not_copied():
    encoder, decoder = build(Encoder, bidirectional="bottom"), build(Decoder, bridge="copy")
    with pytest.raises(ValueError, match='bridge = "copy" needs an encoder with the same cells and layers'):
        decoder.start(encoder(source((5, 3, 1))))
