"""Attentions against plain loops, against each other, and against torch's own."""

import math

import pytest
import torch
from torch import nn

from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.attention.projected import Projected
from seqloom.nn.ops import energies
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory
from tests.building import build

SIZE, QUERIES, TIME, HEADS = 8, 3, 5, 2
LENGTHS = (5, 2, 4)


@pytest.fixture
def memory():
    torch.manual_seed(4)
    return Memory(torch.randn(3, TIME, SIZE, dtype=torch.float64), torch.tensor(LENGTHS))


@pytest.fixture
def query():
    torch.manual_seed(3)
    return torch.randn(3, QUERIES, SIZE, dtype=torch.float64)


def attend(attention, query, memory):
    context, _, weights = attention(query, attention.prepare(memory), {}, weights=True)
    return context, weights


def dot(one, other):
    return sum(float(a) * float(b) for a, b in zip(one, other, strict=True))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def additive_score(attention, query, key):
    query, key = times(attention.query.weight, query), times(attention.key.weight, key)
    bent = [math.tanh(a + b + float(c)) for a, b, c in zip(query, key, attention.key.bias)]
    return dot(attention.energy.weight[0], bent)


def projected_score(attention, query, key):
    query, key = times(attention.query.weight, query), times(attention.key.weight, key)
    return dot(query, key) / math.sqrt(SIZE)


def sigmoid_score(attention, query, key):
    def sigmoid(value):
        return 1 / (1 + math.exp(-value))

    query, key = times(attention.query.weight, query), times(attention.key.weight, key)
    return dot(map(sigmoid, query), map(sigmoid, key))


def deep_score(attention, query, key):
    """f(W3 f(W2 f(W1 x))) on either side."""

    def through(layers, vector):
        for layer in layers:
            vector = [math.tanh(value) for value in times(layer.weight, vector)]
        return vector

    query = through([attention.query, *attention.further_query_layers], query)
    key = through([attention.key, *attention.further_key_layers], key)
    return dot(query, key) / math.sqrt(SIZE)


SCORES = {
    "dot": (Dot, {}, lambda attention, query, key: dot(query, key)),
    "scaled dot": (Dot, {"scaled": True}, lambda attention, query, key: dot(query, key) / math.sqrt(SIZE)),
    "bilinear": (Bilinear, {}, lambda attention, query, key: dot(query, times(attention.key.weight, key))),
    "projected": (Projected, {"layers": 1}, projected_score),
    "through a sigmoid": (Projected, {"layers": 1, "activation": "sigmoid", "scaled": False}, sigmoid_score),
    "through three layers": (Projected, {"layers": 3, "activation": "tanh"}, deep_score),
    "additive": (Additive, {}, additive_score),
}


@pytest.mark.parametrize("name", SCORES)
@torch.no_grad()
def test_weights_and_contexts_equal_those_of_a_loop(name, query, memory):
    part, settings, score = SCORES[name]
    attention = build(part, **settings)
    context, weights = attend(attention, query, memory)
    for row, length in enumerate(LENGTHS):
        for index in range(QUERIES):
            scores = [score(attention, query[row, index], memory.states[row, time]) for time in range(length)]
            expected = softmax(scores)
            assert weights[row, 0, index].tolist() == pytest.approx([*expected, *[0.0] * (TIME - length)])
            mean = times(memory.states[row, :length].T, expected)
            assert context[row, index].tolist() == pytest.approx(mean)


@torch.no_grad()
def test_projected_attention_of_one_layer_is_that_of_before(query, memory):
    torch.manual_seed(7)
    queries, keys = (nn.Linear(SIZE, 4, bias=False).double() for _ in range(2))
    torch.manual_seed(7)
    attention = Projected(query_size=SIZE, memory_size=SIZE, size=4, activation="tanh").double()
    assert list(attention.state_dict()) == ["query.weight", "key.weight"]  # the names of stored checkpoints
    scores = attention.score(query, attention.keys(memory.states))
    wanted = 4**-0.5 * torch.matmul(torch.tanh(queries(query)), torch.tanh(keys(memory.states)).transpose(1, 2))
    assert torch.equal(scores, wanted)


@pytest.mark.parametrize("layers", [0, -1])
def test_projected_attention_needs_a_layer(layers):
    with pytest.raises(ValueError, match=f"layers = {layers} must be 1 or more"):
        Projected(query_size=SIZE, memory_size=SIZE, layers=layers)


@torch.no_grad()
def test_the_additive_score_equals_the_concatenated_form(query, memory):
    attention = build(Additive)
    scores = attention.score(query, attention.keys(memory.states))
    joint = torch.cat([attention.key.weight, attention.query.weight], dim=1)  # W = [U W], of [k; q]
    for row in range(3):
        for index in range(QUERIES):
            for time in range(TIME):
                both = torch.cat([memory.states[row, time], query[row, index]])
                expected = attention.energy.weight[0] @ torch.tanh(joint @ both + attention.key.bias)
                torch.testing.assert_close(scores[row, index, time], expected)


@pytest.mark.parametrize("name", SCORES)
@torch.no_grad()
def test_a_context_lies_in_the_convex_hull_of_the_real_states(name, query, memory):
    part, settings, _ = SCORES[name]
    context, weights = attend(build(part, **settings), query, memory)
    assert (weights >= 0).all()
    for row, length in enumerate(LENGTHS):
        real, own = memory.states[row, :length], weights[row, 0, :, :length]
        torch.testing.assert_close(own.sum(-1), torch.ones(QUERIES, dtype=torch.float64))  # padding has weight 0
        torch.testing.assert_close(context[row], own @ real)
        assert (context[row] <= real.max(0).values + 1e-12).all()
        assert (context[row] >= real.min(0).values - 1e-12).all()


@torch.no_grad()
def test_weights_under_the_lectures_mask_are_its_corrected_softmax():
    """Lecture 003 prints these scores, and a softmax of them that is wrong."""
    scores = torch.tensor(
        [[0.11, 0.00, 0.81, 0.79], [0.19, 0.50, 0.30, 0.48], [0.53, 0.98, 0.95, 0.14], [0.81, 0.86, 0.38, 0.90]],
        dtype=torch.float64,
    )
    expected = [[1, 0, 0, 0], [0.423, 0.577, 0, 0], [0.244, 0.383, 0.372, 0], [0.263, 0.277, 0.171, 0.288]]
    printed = [[1, 0, 0, 0], [0.48, 0.52, 0, 0], [0.31, 0.35, 0.34, 0], [0.25, 0.26, 0.23, 0.26]]

    # Keys are unit vectors, so that a query's score with key t is its own entry t; the mask is one of lengths.
    lengths = torch.tensor([1, 2, 3, 4])
    units = Memory(torch.eye(4, dtype=torch.float64).expand(4, 4, 4), lengths)
    _, by_length = attend(Dot(query_size=4, memory_size=4), scores[:, None], units)

    # The same as a causal mask, which is how the lecture draws it.
    heads = MultiHead(query_size=4, memory_size=4, heads=1).double()
    keys = torch.eye(4, dtype=torch.float64)[None, None]
    _, causal = heads.attend(2 * scores[None, None], keys, keys, causal=True, weights=True)  # undoes 1 / sqrt(4)

    for weights in (by_length[:, 0, 0], causal[0, 0]):
        torch.testing.assert_close(weights, torch.tensor(expected, dtype=torch.float64), atol=6e-4, rtol=0)
        assert (weights - torch.tensor(printed)).abs().max() > 0.05


# -- multi-head attention


def torchs(attention):
    """nn.MultiheadAttention with copied weights: its in_proj stacks query, key and value."""
    reference = nn.MultiheadAttention(SIZE, HEADS, batch_first=True).double()
    reference.load_state_dict(
        {
            "in_proj_weight": torch.cat([attention.query.weight, attention.key_value.weight]),
            "in_proj_bias": torch.cat([attention.query.bias, attention.key_value.bias]),
            "out_proj.weight": attention.output.weight,
            "out_proj.bias": attention.output.bias,
        }
    )
    return reference


@torch.no_grad()
def test_multi_head_attention_to_a_padded_memory_equals_torchs(query, memory):
    attention = build(MultiHead)
    context, weights = attend(attention, query, memory)
    expected, expected_weights = torchs(attention)(
        query,
        memory.states,
        memory.states,
        key_padding_mask=~memory.mask,  # there True means padding, with us True means real
        average_attn_weights=False,
    )
    torch.testing.assert_close(context, expected)
    torch.testing.assert_close(weights, expected_weights)
    fused, _, _ = attention(query, attention.prepare(memory), {})
    torch.testing.assert_close(fused, expected)


def attended(attention, query, states, weights, **mask):
    """All positions real: (B, Q, size), (B, T, size) -> (B, Q, size)"""
    packing, key_packing = (Packing.unpadded(*values.shape[:2], device=values.device) for values in (query, states))
    keys, values = attention.keys_values(states.flatten(0, 1), key_packing)
    queries = attention.queries(query.flatten(0, 1), packing)
    context, _ = attention.attend(queries, keys, values, weights=weights, **mask)
    return packing.unpack(attention.output(packing.pack_heads(context)))


@pytest.mark.parametrize("weights", [True, False])
@torch.no_grad()
def test_multi_head_attention_under_a_mask_equals_torchs(query, memory, weights):
    attention = build(MultiHead)
    allowed = torch.rand(QUERIES, TIME) > 0.5
    allowed[:, 0] = True  # each query sees something
    bias = torch.zeros(QUERIES, TIME).masked_fill(~allowed, float("-inf"))
    context = attended(attention, query, memory.states, weights, bias=bias)
    expected, _ = torchs(attention)(query, memory.states, memory.states, attn_mask=~allowed)
    torch.testing.assert_close(context, expected)


@pytest.mark.parametrize("weights", [True, False])
@torch.no_grad()
def test_the_causal_flag_equals_torchs_causal_mask(memory, weights):
    attention = build(MultiHead)
    context = attended(attention, memory.states, memory.states, weights, causal=True)
    blocked = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)
    expected, _ = torchs(attention)(memory.states, memory.states, memory.states, attn_mask=blocked)
    torch.testing.assert_close(context, expected)


@torch.no_grad()
def test_one_head_without_projections_is_scaled_dot_product_attention(query, memory):
    heads = MultiHead(query_size=SIZE, memory_size=SIZE, heads=1).double()
    identity, nothing = torch.eye(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)
    for linear in (heads.query, heads.output):
        linear.load_state_dict({"weight": identity, "bias": nothing})
    heads.key_value.load_state_dict({"weight": identity.repeat(2, 1), "bias": nothing.repeat(2)})
    for ours, expected in zip(attend(heads, query, memory), attend(build(Dot, scaled=True), query, memory)):
        torch.testing.assert_close(ours, expected)


def test_gradients_of_keys_and_queries_equal_those_of_the_lecture_by_hand():
    """Lecture 004's backward pass, with k[t] where it prints q[t]."""
    attention = build(Projected, layers=1, activation="sigmoid", scaled=False)
    torch.manual_seed(5)
    states = torch.randn(1, TIME, SIZE, dtype=torch.float64, requires_grad=True)
    query = torch.randn(1, 1, SIZE, dtype=torch.float64, requires_grad=True)
    memory = attention.prepare(Memory(states, torch.tensor([TIME])))
    context, _, weights = attention(query, memory, {}, weights=True)
    upstream = torch.randn(SIZE, dtype=torch.float64)
    context[0, 0].backward(upstream)

    with torch.no_grad():
        h, s, alpha = states[0], query[0, 0], weights[0, 0, 0]
        k, q = torch.sigmoid(h @ attention.key.weight.T), torch.sigmoid(attention.query.weight @ s)
        of_alpha = h @ upstream
        of_score = alpha * (of_alpha - (alpha * of_alpha).sum())  # back through the softmax
        of_k = torch.outer(of_score, q) * k * (1 - k)
        of_q = (of_score @ k) * q * (1 - q)
        torch.testing.assert_close(states.grad[0], torch.outer(alpha, upstream) + of_k @ attention.key.weight)
        torch.testing.assert_close(query.grad[0, 0], of_q @ attention.query.weight)
        torch.testing.assert_close(attention.key.weight.grad, of_k.T @ h)
        torch.testing.assert_close(attention.query.weight.grad, torch.outer(of_q, s))


@pytest.mark.parametrize("far", [1.0, 30.0])
def test_energies_of_all_pairs_equal_those_of_each_pair(far, monkeypatch):
    generator = torch.Generator().manual_seed(2)
    shapes = [(4, 3, 5), (4, 6, 5), (5,)]
    values = [torch.randn(shape, generator=generator, dtype=torch.float64) * far for shape in shapes]
    query, keys, weight = (each.requires_grad_() for each in values)
    wanted = torch.tanh(query[:, :, None] + keys[:, None]) @ weight
    for pairs in (1, 200, 1 << 17):  # one row at a time, two, all
        monkeypatch.setattr(energies, "PAIRS", pairs)
        found = energies.energies(query, keys, weight)
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)
        shares = torch.randn(found.shape, generator=generator, dtype=torch.float64)
        ours, theirs = (
            torch.autograd.grad(each, (query, keys, weight), shares, retain_graph=True) for each in (found, wanted)
        )
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_energies_far_from_zero_are_finite():
    query = torch.tensor([[[90.0, -90.0, 50.0], [0.5, -0.5, 0.0]]], requires_grad=True)
    keys = torch.tensor([[[-30.0, -90.0, -49.0], [0.0, 45.0, 90.0]]], requires_grad=True)
    found = energies.energies(query, keys, torch.tensor([1.0, 1.0, 1.0]))
    assert found.isfinite().all()
    found.sum().backward()
    assert query.grad.isfinite().all()
    assert keys.grad.isfinite().all()
    torch.testing.assert_close(found[0, 1], torch.tanh(query[0, 1] + keys[0]).sum(-1).detach())
