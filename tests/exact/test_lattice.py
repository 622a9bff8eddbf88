"""Sums over the paths of a lattice against enumeration, and their closed form for equal probabilities."""

import math
from itertools import combinations

import pytest
import torch

from seqloom.nn.ops.lattice import NEVER, all_paths, best_path, factored_token_log_probs, token_log_probs

SHAPES = [(1, 0), (1, 3), (4, 0), (2, 1), (3, 3), (5, 2), (2, 4)]  # inputs, labels


def lattice(frames, labels, seed=0, dtype=torch.float64):
    """Random transitions; padding has values that would be noticed."""
    generator = torch.Generator().manual_seed(seed)
    rows, inputs, width = len(frames), max(frames), max(labels)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()

    steps = draw(rows, inputs, width + 1), draw(rows, inputs, width), draw(rows)
    return *steps, torch.tensor(frames), torch.tensor(labels)


def paths(inputs, labels):
    """Which of the T - 1 + U transitions write a label."""
    return combinations(range(inputs - 1 + labels), labels)


def worth(writes, advance, emit, final):
    """The log-probability of one path, and the frame at which it writes each label."""
    input, written, total, frames_written = 0, 0, final, []
    for step in range(advance.shape[0] - 1 + emit.shape[1]):
        if step in writes:
            total = total + emit[input, written]
            frames_written.append(input)
            written += 1
        else:
            total = total + advance[input, written]
            input += 1
    return total, frames_written


def one_by_one(advance, emit, final, frames, labels):
    """Log-probabilities and frames of all paths of each row."""
    found = []
    for row, (inputs, width) in enumerate(zip(frames.tolist(), labels.tolist())):
        steps = advance[row, :inputs, : width + 1], emit[row, :inputs, :width], final[row]
        found.append([worth(writes, *steps) for writes in paths(inputs, width)])
    return found


@pytest.mark.parametrize(("inputs", "labels"), SHAPES)
def test_all_paths_is_the_sum_over_each_path(inputs, labels):
    given = lattice([inputs], [labels])
    (each,) = one_by_one(*given)
    assert len(each) == math.comb(inputs - 1 + labels, labels)
    torch.testing.assert_close(all_paths(*given)[0], torch.stack([total for total, _ in each]).logsumexp(0))


def test_rows_of_different_lengths_have_their_own_sums_and_gradients_and_padding_has_none():
    frames, labels = zip(*SHAPES)
    given = lattice(frames, labels)
    weights = torch.randn(len(SHAPES), dtype=torch.float64)
    ours = all_paths(*given)
    theirs = torch.stack([torch.stack([total for total, _ in each]).logsumexp(0) for each in one_by_one(*given)])
    torch.testing.assert_close(ours, theirs)
    found, expected = (torch.autograd.grad((total * weights).sum(), given[:3]) for total in (ours, theirs))
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)
        assert torch.equal(one == 0, other == 0)  # exactly 0 where no path goes


def test_the_values_of_padding_change_nothing():
    advance, emit, final, frames, labels = lattice((3, 2), (2, 1))
    wide_advance, wide_emit = torch.full((2, 6, 5), math.nan).double(), torch.full((2, 6, 4), math.inf).double()
    for row, (inputs, width) in enumerate(zip((3, 2), (2, 1))):
        wide_advance[row, :inputs, : width + 1] = advance[row, :inputs, : width + 1]
        wide_emit[row, :inputs, :width] = emit[row, :inputs, :width]
    wide_advance.requires_grad_()
    wide = all_paths(wide_advance, wide_emit, final, frames, labels)
    torch.testing.assert_close(wide, all_paths(advance, emit, final, frames, labels))
    (gradient,) = torch.autograd.grad(wide.sum(), wide_advance)
    (expected,) = torch.autograd.grad(all_paths(advance, emit, final, frames, labels).sum(), advance)
    torch.testing.assert_close(gradient[:, :3, :3], expected)
    assert gradient[:, 3:].abs().sum() == gradient[:, :, 3:].abs().sum() == 0


def test_gradients_equal_finite_differences():
    *steps, frames, labels = lattice((4, 1, 3), (2, 3, 0))
    assert torch.autograd.gradcheck(lambda *given: all_paths(*given, frames, labels), steps)


def test_a_row_without_a_path_has_no_probability_and_no_gradient():
    advance, emit, final, frames, labels = lattice((3, 3, 3), (2, 2, 2))
    with torch.no_grad():
        emit[1, :, 1] = NEVER  # the second label cannot be written
        advance[2, 0, 1] = NEVER  # some paths remain
    total = all_paths(advance, emit, final, frames, labels)
    assert (total == NEVER).tolist() == [False, True, False]
    for gradient in torch.autograd.grad(total.masked_fill(total == NEVER, 0).sum(), (advance, emit, final)):
        assert gradient.isfinite().all()
        assert not gradient[1].any()
        assert gradient[2].any()


def test_without_frames_the_empty_output_has_probability_1():
    advance, emit, final, _, labels = lattice((2, 2, 2), (0, 1, 0))
    total = all_paths(advance, emit, final, torch.tensor([0, 0, 2]), labels)
    assert total[:2].tolist() == [0, NEVER]
    gradients = torch.autograd.grad(total[[0, 2]].sum(), (advance, emit, final))
    assert not any(gradient[:2].any() for gradient in gradients)
    nothing = torch.zeros(1, 0, 2), torch.zeros(1, 0, 1), torch.zeros(1), torch.tensor([0])
    assert all_paths(*nothing, torch.tensor([0])).tolist() == [0]


def test_a_thousand_frames_are_accurate_in_float32():
    generator = torch.Generator().manual_seed(1)
    advance, emit = (-20 * torch.rand(2, 1000, width, generator=generator) for width in (201, 200))
    given = advance, emit, advance[:, -1, -1]
    lengths = torch.tensor([1000, 700]), torch.tensor([200, 150])
    found = []
    for dtype in (torch.float32, torch.float64):
        steps = [each.to(dtype).detach().requires_grad_() for each in given]
        total = all_paths(*steps, *lengths)
        found.append([total, *torch.autograd.grad(total.sum(), steps)])
    assert found[0][0].min() < -1000
    for low, high in zip(*found):
        torch.testing.assert_close(low, high.to(torch.float32), rtol=1e-5, atol=1e-7)
    # Each frame but the last is left once, each label written once.
    _, advanced, written, _ = found[1]
    torch.testing.assert_close(advanced.sum(2)[0, :-1], torch.ones(999, dtype=torch.float64))
    torch.testing.assert_close(written.sum(1)[0], torch.ones(200, dtype=torch.float64))


@pytest.mark.parametrize(("inputs", "labels"), [*SHAPES, (40, 15)])
@pytest.mark.parametrize("added", [False, True])
def test_with_equal_probabilities_it_counts_the_paths(inputs, labels, added):
    """log P = log C(T + U - 1, U) - (T + U) log V"""
    vocabulary = 7
    tokens = torch.stack([torch.zeros(1, labels + 1, dtype=torch.long), torch.full((1, labels + 1), 4)])
    if added:
        levels = torch.randn(2, 1, 1).double().expand(2, 1, vocabulary)  # any level will do
        log_probs = factored_token_log_probs(
            levels[:1].expand(1, inputs, -1), levels[1:].expand(1, labels + 1, -1), tokens
        )
    else:
        log_probs = token_log_probs(torch.full((1, inputs, labels + 1, vocabulary), 3.0).double(), tokens)
    advance, emit = log_probs
    total = all_paths(advance, emit[:, :, :-1], advance[:, -1, -1], torch.tensor([inputs]), torch.tensor([labels]))
    count = math.comb(inputs + labels - 1, labels)
    assert total.item() == pytest.approx(math.log(count) - (inputs + labels) * math.log(vocabulary), abs=1e-9)


def test_the_best_path_is_the_best_of_all_paths():
    for seed in range(5):
        frames, labels = zip(*SHAPES)
        given = lattice(frames, labels, seed)
        found = best_path(*given)
        assert found.shape == (len(SHAPES), max(labels))
        for row, each in enumerate(one_by_one(*given)):
            _, frames_written = max(each, key=lambda one: one[0].item())
            assert found[row].tolist() == frames_written + [-1] * (max(labels) - len(frames_written))


# -- log-probabilities of a few tokens


def few(dtype=torch.float64, scale=1.0):
    """inputs (B, T, V), outputs (B, W, V), tokens (few, B, W)"""
    generator = torch.Generator().manual_seed(2)
    inputs, outputs = (scale * torch.randn(2, size, 9, generator=generator, dtype=dtype) for size in (5, 4))
    tokens = torch.randint(4, 9, (3, 2, 4), generator=generator)
    tokens[0] = 0
    tokens[2, 1, 3] = 2  # one of those left out
    return inputs.requires_grad_(), outputs.requires_grad_(), tokens


def plain(logits, tokens, left_out=()):
    keep = [token not in left_out for token in range(logits.shape[-1])]
    log_probs = logits.masked_fill(~torch.tensor(keep), NEVER).log_softmax(-1)
    return torch.stack(
        [log_probs.gather(3, each[:, None, :, None].expand(-1, logits.shape[1], -1, 1)).squeeze(3) for each in tokens]
    )


@pytest.mark.parametrize("left_out", [(), (2, 3)])
@pytest.mark.parametrize("rows", [3, 2048])  # slices with a remainder, and all at once
def test_log_probabilities_and_gradients_equal_those_of_a_softmax(left_out, rows, monkeypatch):
    monkeypatch.setattr("seqloom.nn.ops.lattice.ROWS", rows)
    inputs, outputs, tokens = few()
    logits = (inputs[:, :, None] + outputs[:, None]).detach().requires_grad_()
    weights = torch.randn(3, 2, 5, 4, dtype=torch.float64)

    def compared(found):
        finite = found.isfinite()
        assert finite.all() == (not left_out)
        return (torch.where(finite, found, 0) * weights).sum()

    expected = plain(logits, tokens, left_out)
    found = token_log_probs(logits, tokens, left_out)
    torch.testing.assert_close(found, expected)
    by_hand, recorded = (torch.autograd.grad(compared(each), logits)[0] for each in (found, expected))
    torch.testing.assert_close(by_hand, recorded)
    assert not by_hand[..., list(left_out)].any()
    with torch.no_grad():
        assert torch.equal(token_log_probs(logits, tokens, left_out), found)
    added = factored_token_log_probs(inputs, outputs, tokens, left_out)
    torch.testing.assert_close(added, expected)
    summed = torch.autograd.grad(
        compared(plain(inputs[:, :, None] + outputs[:, None], tokens, left_out)), [inputs, outputs]
    )
    for one, other in zip(torch.autograd.grad(compared(added), [inputs, outputs]), summed):
        torch.testing.assert_close(one, other)


def test_logits_far_apart_are_accurate_in_float32():
    inputs, outputs, tokens = few(torch.float32, scale=60)
    exact = plain((inputs[:, :, None] + outputs[:, None]).double(), tokens, (2, 3)).float()
    assert exact[exact.isfinite()].min() < -200
    for found in (
        token_log_probs(inputs[:, :, None] + outputs[:, None], tokens, (2, 3)),
        factored_token_log_probs(inputs, outputs, tokens, (2, 3)),
    ):
        torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-4)
        gradients = torch.autograd.grad(torch.where(found.isfinite(), found, 0).sum(), [inputs, outputs])
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_half_precision_logits_are_summed_in_float32():
    inputs, outputs, tokens = few(torch.float32)
    logits = (inputs[:, :, None] + outputs[:, None]).bfloat16().detach().requires_grad_()
    found = token_log_probs(logits, tokens)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain(logits.detach().float(), tokens))
    assert torch.autograd.grad(found.sum(), logits)[0].dtype == torch.bfloat16


def test_a_second_backward_pass_is_refused():
    inputs, outputs, tokens = few()
    found = token_log_probs(inputs[:, :, None] + outputs[:, None], tokens).sum()
    torch.autograd.grad(found, inputs, retain_graph=True)
    with pytest.raises(RuntimeError, match="backward ran twice"):
        torch.autograd.grad(found, inputs)
