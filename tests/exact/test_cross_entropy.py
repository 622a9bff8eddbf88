"""Cross-entropy against torch's own and against its definition."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from seqloom.objectives.cross_entropy import smoothed_cross_entropy


@pytest.fixture
def scores():
    return torch.randn(6, 5, dtype=torch.float64, requires_grad=True)


targets = torch.tensor([0, 4, 2, 2, 1, 3])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_loss_and_gradient_are_those_of_torch(scores, smoothing):
    ours, nll = smoothed_cross_entropy(scores, targets, smoothing)
    theirs = cross_entropy(scores, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(nll, cross_entropy(scores, targets, reduction="sum"))
    torch.testing.assert_close(torch.autograd.grad(3 * ours, scores), torch.autograd.grad(3 * theirs, scores))
    assert torch.autograd.gradcheck(lambda values: smoothed_cross_entropy(values, targets, smoothing)[0], scores)


def test_the_gradient_at_the_logits_is_probability_minus_gold(scores):
    loss, _ = smoothed_cross_entropy(scores, targets, 0.0)
    gold = torch.nn.functional.one_hot(targets, 5)
    torch.testing.assert_close(torch.autograd.grad(loss, scores)[0], torch.softmax(scores, -1) - gold)


def test_smoothing_spreads_over_symbols_that_can_occur(scores):
    impossible = torch.zeros(6, 5, dtype=torch.bool)
    impossible[0, 3] = impossible[1, 0] = impossible[1, 1] = True

    def ours(values):
        return smoothed_cross_entropy(values.masked_fill(impossible, float("-inf")), targets, 0.2)[0]

    expected = 0.0
    for row, target in enumerate(targets):
        log_probs = torch.log_softmax(scores[row].masked_fill(impossible[row], float("-inf")), -1)
        possible = [symbol for symbol in range(5) if not impossible[row, symbol]]
        expected = (
            expected - 0.8 * log_probs[target] - 0.2 * sum(log_probs[symbol] for symbol in possible) / len(possible)
        )
    torch.testing.assert_close(ours(scores), expected)
    gradient = torch.autograd.grad(ours(scores), scores)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, scores)[0])
