"""The Transformer against torch's layers, and the properties of its masks, caches and positions."""

import math

import pytest
import torch
from torch import nn

from seqloom.data.special_tokens import EOS
from seqloom.nn.attention.multihead import mask_bias
from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.transformer import Transformer as Encoder
from seqloom.nn.layers.embedding import AddPositions
from seqloom.nn.layers.kv_cache import KVCache
from seqloom.nn.layers.positions import Learned, Sinusoidal
from seqloom.nn.layers.transformer import TransformerLayer
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory, Padded, positions_below
from tests.building import BOS, VOCABULARY, build, memory_for, source

SIZE, HEADS, HIDDEN = 8, 2, 16
TARGETS, SOURCES = torch.tensor([5, 2, 4]), torch.tensor([4, 6, 1])
NORMS = pytest.mark.parametrize("norm", ["pre", "post"])


def values(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(lengths), int(lengths.max()), SIZE, generator=generator, dtype=torch.float64)


# -- torch's layers


def weights_of(layer):
    """Our weights under the names of nn.TransformerEncoderLayer, or of the decoder layer where there is a memory."""
    attentions = {"self_attn": layer.self_attention}
    parts = {
        "linear1": layer.feed_forward.inner,
        "linear2": layer.feed_forward.outer,
        "norm1": layer.self_residual.norm,
    }
    if hasattr(layer, "cross_attention"):
        attentions["multihead_attn"] = layer.cross_attention
        parts |= {"norm2": layer.cross_residual.norm, "norm3": layer.feed_residual.norm}
    else:
        parts |= {"norm2": layer.feed_residual.norm}
    found = {f"{name}.{kind}": value for name, part in parts.items() for kind, value in part.named_parameters()}
    for name, attention in attentions.items():
        for kind in ("weight", "bias"):
            ours = [getattr(part, kind) for part in (attention.query, attention.key_value)]
            found[f"{name}.in_proj_{kind}"] = torch.cat(ours)
            found[f"{name}.out_proj.{kind}"] = getattr(attention.output, kind)
    return found


def torchs(kind, layer, norm, activation="relu"):
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre", "activation": activation}
    reference = kind(SIZE, HEADS, HIDDEN, **options).double()
    reference.load_state_dict(weights_of(layer))
    return reference


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@NORMS
def test_an_encoder_layer_equals_torchs(norm, activation):
    layer = build(TransformerLayer, memory_size=0, norm=norm, activation=activation)
    given, mask = values(SOURCES, 1), positions_below(SOURCES, 6)
    packing = Packing(mask)
    ours, _, _ = layer.encode(packing.pack(given), packing, mask_bias(mask))
    theirs = torchs(nn.TransformerEncoderLayer, layer, norm, activation)(given, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours, theirs[mask])


def test_the_encoder_of_bert_reads_normalised_sums_of_tokens_positions_and_segments():
    settings = {"norm": "post", "activation": "gelu", "positions": "learned", "normalised": True, "segments": 2}
    encoder = build(Encoder, **settings)
    batch = source((6, 4, 1))
    batch.values[0, [2, 4]], batch.values[1, 1] = EOS, EOS
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0], [0] * 6])  # a separator belongs to what it ends
    given = encoder.embedding(batch.values) + encoder.positioned.positions(torch.arange(6)) + encoder.segments(segments)
    expected = encoder.positioned.norm(given)
    for layer in encoder.layers:
        expected = torchs(nn.TransformerEncoderLayer, layer, "post", "gelu")(expected, src_key_padding_mask=~batch.mask)
    torch.testing.assert_close(encoder(batch).states[batch.mask], expected[batch.mask])


@pytest.mark.parametrize(
    "settings",
    [{"segments": 1}, {"segments": 2, "vocabulary": None, "features": 3}, {"adaptive": True, "normalised": True},
     {"experts": 2, "activation": "gelu"}],
)  # fmt: skip
def test_settings_of_an_encoder_that_do_not_fit_are_refused(settings):
    with pytest.raises(ValueError, match=r"segments|normalised|activation"):
        build(Encoder, **settings)


@NORMS
def test_a_decoder_layer_equals_torchs(norm):
    layer = build(TransformerLayer, memory_size=SIZE, norm=norm)
    given, mask = values(TARGETS, 1), positions_below(TARGETS, 5)
    memory = Memory(values(SOURCES, 2), SOURCES)
    packing, prepared = Packing(mask), layer.cross_attention.prepare(memory)
    ours, _, _, _ = layer.decode(
        packing.pack(given), packing, prepared, KVCache.empty(3, mask.device).grow(mask, False), 0
    )
    theirs = torchs(nn.TransformerDecoderLayer, layer, norm)(
        given,
        memory.states,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~mask,
        memory_key_padding_mask=~memory.mask,
    )
    torch.testing.assert_close(ours, theirs[mask])


@NORMS
def test_encoder_and_decoder_equal_torchs_layers_on_scaled_embeddings_with_positions(norm):
    encoder, decoder = build(Encoder, norm=norm), build(Decoder, norm=norm, tied=False)
    batch, inputs = source((4, 6, 1)), source((5, 2, 4), seed=1)
    positions = Sinusoidal(size=SIZE).double()

    expected = encoder.embedding(batch.values) * math.sqrt(SIZE) + positions(torch.arange(6))
    for layer in encoder.layers:
        expected = torchs(nn.TransformerEncoderLayer, layer, norm)(expected, src_key_padding_mask=~batch.mask)
    expected = encoder.norm(expected)
    memory = encoder(batch)
    torch.testing.assert_close(memory.states[batch.mask], expected[batch.mask])

    hidden = decoder.embedding(inputs.values) * math.sqrt(SIZE) + positions(torch.arange(5))
    for layer in decoder.layers:
        hidden = torchs(nn.TransformerDecoderLayer, layer, norm)(
            hidden,
            memory.states,
            tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
            memory_key_padding_mask=~memory.mask,
        )
    scores = decoder(decoder.prepare(memory), inputs).scores
    torch.testing.assert_close(scores[inputs.mask], decoder.output(decoder.norm(hidden))[inputs.mask])


# -- masks and caches


@NORMS
def test_no_output_depends_on_a_later_input(norm):
    decoder = build(Decoder, norm=norm)
    memory = memory_for(decoder, (4,))
    state = decoder.start(memory)
    mixtures = torch.rand(5, VOCABULARY, dtype=torch.float64)  # of tokens, so that there is something to differentiate

    def hidden(inputs):
        return decoder(memory, Padded(inputs[None], torch.tensor([5])), state).hidden[0]

    jacobian = torch.autograd.functional.jacobian(hidden, mixtures)  # (5, size, 5, V)
    influence = jacobian.abs().amax((1, 3))
    assert not influence.triu(1).any()
    assert (influence[torch.ones(5, 5).tril().bool()] > 1e-6).all()


@NORMS
def test_padding_of_the_source_has_no_influence_and_everything_real_has(norm):
    encoder = build(Encoder, norm=norm)
    encoder.embedding = nn.Identity()

    def states(inputs):
        return encoder(Padded(inputs[None], torch.tensor([3]))).states[0, :3]

    jacobian = torch.autograd.functional.jacobian(states, values(torch.tensor([5]), 1)[0])  # (3, size, 5, size)
    influence = jacobian.abs().amax((1, 3))
    assert not influence[:, 3:].any()
    assert (influence[:, :3] > 1e-6).all()


CHUNKS = pytest.mark.parametrize("chunks", [(1,) * 7, (4, 1, 2), (6, 1), (1, 6)])


@CHUNKS
@NORMS
@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@torch.no_grad()
def test_decoding_with_a_cache_equals_the_full_forward(chunks, norm, kind, tolerance):
    decoder = build(Decoder, norm=norm).to(kind)
    memory = memory_for(build(Decoder), (5, 3, 1))
    memory = decoder.prepare(Memory(memory.states.to(kind), memory.lengths))
    inputs = source((7, 7, 7), seed=2).values
    state, parts = decoder.start(memory), []
    for chunk in inputs.split(chunks, dim=1):
        output = decoder(memory, Padded(chunk, torch.full((3,), chunk.shape[1])), state)
        state = output.state
        parts.append(output.scores)
    full = decoder(memory, Padded(inputs, torch.full((3,), 7))).scores
    torch.testing.assert_close(torch.cat(parts, dim=1), full, atol=tolerance, rtol=tolerance)


@torch.no_grad()
def test_a_cache_after_prefixes_of_different_lengths_ignores_their_padding():
    decoder = build(Decoder)
    memory = memory_for(decoder, (5, 3, 1))
    prefix, rest = source((4, 1, 2), seed=2), source((3, 3, 3), seed=3).values
    state = decoder(memory, prefix).state
    parts = []
    for token in rest.unbind(1):
        logits, state = decoder.step(token, state, memory)
        parts.append(logits)
    for row, length in enumerate(prefix.lengths):
        whole = torch.cat([prefix.values[row, :length], rest[row]])[None]
        alone = decoder(memory.select(torch.tensor([row])), Padded(whole, torch.tensor([whole.shape[1]])))
        torch.testing.assert_close(torch.stack([part[row] for part in parts]), alone.scores[0, length:])


# -- positions


@NORMS
@torch.no_grad()
def test_without_positions_the_encoder_permutes_with_its_source(norm):
    encoder = build(Encoder, norm=norm, positions="learned")
    batch, order = source((5, 5)), torch.tensor([3, 0, 4, 1, 2])

    def both():
        return encoder(Padded(batch.values[:, order], batch.lengths)), encoder(batch)

    moved, plain = both()
    assert (moved.states - plain.states[:, order]).abs().max() > 1e-3
    encoder.positioned.positions.table.weight.zero_()
    moved, plain = both()
    torch.testing.assert_close(moved.states, plain.states[:, order])
    torch.testing.assert_close(moved.final["summary"], plain.final["summary"])


def test_sinusoidal_positions_follow_the_formula():
    encoded = Sinusoidal(size=SIZE)(torch.arange(20))
    for position in range(20):
        for pair in range(SIZE // 2):
            angle = position / 10000 ** (2 * pair / SIZE)
            assert encoded[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-5)
            assert encoded[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-5)


def test_dot_products_of_sinusoidal_positions_depend_on_the_offset_only():
    encoded = Sinusoidal(size=64).double()(torch.arange(200))
    products = encoded @ encoded.T
    for offset in range(-199, 200):
        along = products.diagonal(offset)
        torch.testing.assert_close(along, along[:1].expand_as(along))
    assert products[0].unique().numel() == 200  # and distinguish offsets


def test_appending_a_one_hot_position_before_a_projection_is_adding_a_learned_one():
    words, longest = 6, 10
    projection = nn.Linear(words + longest, SIZE, bias=False).double()
    content = torch.randn(3, 7, words, dtype=torch.float64)
    one_hot = torch.eye(longest, dtype=torch.float64)[:7].expand(3, 7, longest)
    appended = projection(torch.cat([content, one_hot], dim=-1))

    positioned = AddPositions(size=SIZE, positions="learned", longest=longest).double()
    assert isinstance(positioned.positions, Learned)
    positioned.positions.table.load_state_dict({"weight": projection.weight[:, words:].T})
    embedded = nn.functional.linear(content, projection.weight[:, :words])
    torch.testing.assert_close(positioned(embedded / math.sqrt(SIZE), torch.arange(embedded.shape[1])), appended)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@torch.no_grad()
def test_the_order_of_earlier_words_matters_to_the_decoder(positions):
    decoder = build(Decoder, positions=positions)
    memory = memory_for(decoder, (4,))
    one, other = ([BOS, 4, 5, 6], [BOS, 5, 4, 6])
    scores = [decoder(memory, Padded(torch.tensor([each]), torch.tensor([4]))).scores[0, -1] for each in (one, other)]
    assert scores[0].shape == (VOCABULARY,)
    assert (scores[0] - scores[1]).abs().max() > 1e-3


@torch.no_grad()
def test_a_decoder_alone_is_an_encoder_under_a_causal_mask():
    """GPT is a Transformer decoder without cross-attention: self-attention under a causal mask, and nothing else."""
    alone = build(Decoder, memory_size=0)
    words = source((5, 5, 5))
    hidden = alone.positioned(alone.embedding(words.values), torch.arange(words.values.shape[1]))
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    for layer in alone.layers:
        hidden = torchs(nn.TransformerEncoderLayer, layer, "pre")(hidden, src_mask=mask)
    expected = alone.norm(hidden) @ alone.embedding.weight.T
    torch.testing.assert_close(alone(Memory.empty(3), words).scores, expected)
