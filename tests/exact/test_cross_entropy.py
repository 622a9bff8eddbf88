"""Cross-entropy against torch's own and against its definition."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from seqloom.nn.ops.linear import Projection
from seqloom.objectives import cross_entropy as ours_module
from seqloom.objectives.cross_entropy import projected_cross_entropy, smoothed_cross_entropy


@pytest.fixture
def scores():
    return torch.randn(6, 5, dtype=torch.float64, requires_grad=True)


targets = torch.tensor([0, 4, 2, 2, 1, 3])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_loss_and_gradient_are_those_of_torch(scores, smoothing):
    ours, nll, correct = smoothed_cross_entropy(scores, targets, smoothing)
    assert correct == (scores.argmax(-1) == targets).sum()
    theirs = cross_entropy(scores, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(nll, cross_entropy(scores, targets, reduction="sum"))
    torch.testing.assert_close(torch.autograd.grad(3 * ours, scores), torch.autograd.grad(3 * theirs, scores))
    assert torch.autograd.gradcheck(lambda values: smoothed_cross_entropy(values, targets, smoothing)[0], scores)


def test_the_gradient_at_the_logits_is_probability_minus_gold(scores):
    loss, _, _ = smoothed_cross_entropy(scores, targets, 0.0)
    gold = torch.nn.functional.one_hot(targets, 5)
    torch.testing.assert_close(torch.autograd.grad(loss, scores)[0], torch.softmax(scores, -1) - gold)


def test_smoothing_spreads_over_tokens_that_can_occur(scores):
    impossible = torch.zeros(6, 5, dtype=torch.bool)
    impossible[0, 3] = impossible[1, 0] = impossible[1, 1] = True

    def ours(values):
        return smoothed_cross_entropy(values.masked_fill(impossible, float("-inf")), targets, 0.2)[0]

    expected = 0.0
    for row, target in enumerate(targets):
        log_probs = torch.log_softmax(scores[row].masked_fill(impossible[row], float("-inf")), -1)
        possible = [token for token in range(5) if not impossible[row, token]]
        expected = (
            expected - 0.8 * log_probs[target] - 0.2 * sum(log_probs[token] for token in possible) / len(possible)
        )
    torch.testing.assert_close(ours(scores), expected)
    gradient = torch.autograd.grad(ours(scores), scores)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, scores)[0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [True, False])
def test_scores_of_a_few_rows_at_a_time_are_those_of_all(monkeypatch, smoothing, biased):
    monkeypatch.setattr(ours_module, "ROWS", 4)
    hidden, weight, bias = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 3), (5, 3), (5,))
    )
    inputs = [hidden, weight, bias] if biased else [hidden, weight]

    def ours(hidden, weight, bias=None):
        return projected_cross_entropy(hidden, Projection(weight, bias), targets, smoothing)

    sums = ours(*inputs)
    expected = smoothed_cross_entropy(Projection(*inputs[1:])(hidden), targets, smoothing)
    for one, other in zip(sums, expected):
        torch.testing.assert_close(one, other, check_dtype=False)
    gradients = torch.autograd.grad(3 * sums[0], inputs)
    torch.testing.assert_close(gradients, torch.autograd.grad(3 * expected[0], inputs))
    assert torch.autograd.gradcheck(lambda *given: ours(*given)[0], inputs)
    with torch.no_grad():
        torch.testing.assert_close(ours(*inputs), sums)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_weighted_loss_is_the_weighted_sum_of_the_losses_of_rows(monkeypatch, scores, smoothing):
    monkeypatch.setattr(ours_module, "ROWS", 4)
    weights = torch.tensor([0.5, 0.0, 2.0, 1.0, 0.25, 3.0], dtype=torch.float64)
    alone = [smoothed_cross_entropy(scores[row : row + 1], targets[row : row + 1], smoothing) for row in range(6)]
    expected = [sum(weight * sums[which] for weight, sums in zip(weights, alone)) for which in range(3)]
    found = smoothed_cross_entropy(scores, targets, smoothing, weights)
    torch.testing.assert_close(found, tuple(expected))
    torch.testing.assert_close(torch.autograd.grad(3 * found[0], scores), torch.autograd.grad(3 * expected[0], scores))
    assert torch.autograd.gradcheck(
        lambda values: smoothed_cross_entropy(values, targets, smoothing, weights)[0], scores
    )

    weight, bias = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((7, 5), (7,)))
    projection = Projection(weight, bias)
    whole = smoothed_cross_entropy(projection(scores), targets, smoothing, weights)
    parts = projected_cross_entropy(scores, projection, targets, smoothing, weights)
    torch.testing.assert_close(parts, whole)
    inputs = (scores, weight, bias)
    torch.testing.assert_close(torch.autograd.grad(2 * parts[0], inputs), torch.autograd.grad(2 * whole[0], inputs))


def test_weighted_smoothing_leaves_out_tokens_that_cannot_occur(scores):
    impossible = torch.zeros(6, 5, dtype=torch.bool)
    impossible[0, 3] = impossible[1, 0] = True
    weights = torch.tensor([0.5, 4.0, 2.0, 1.0, 0.25, 3.0], dtype=torch.float64)

    def loss(rows, *weights):
        masked = scores.masked_fill(impossible, float("-inf"))
        return smoothed_cross_entropy(masked[rows], targets[rows], 0.2, *weights)[0]

    expected = sum(weight * loss(slice(row, row + 1)) for row, weight in enumerate(weights))
    found = loss(slice(None), weights)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores))


def test_weights_of_one_change_nothing_and_without_weights_nothing_is_multiplied(scores, monkeypatch):
    plain = smoothed_cross_entropy(scores, targets, 0.1)
    weighted = smoothed_cross_entropy(scores, targets, 0.1, torch.ones(6))
    for one, other in zip(plain, weighted):
        assert torch.equal(one, other.to(one.dtype))
    assert torch.equal(*(torch.autograd.grad(sums[0], scores)[0] for sums in (plain, weighted)))

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(torch.Tensor, "mul_", refuse)
    smoothed_cross_entropy(scores, targets, 0.1)
    with pytest.raises(AssertionError):
        smoothed_cross_entropy(scores, targets, 0.1, torch.ones(6))
