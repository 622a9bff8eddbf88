"""Estimates of the gradient of an expected reward: their expectation, by listing all outputs, is that gradient."""

from itertools import product

import pytest
import torch

from seqloom.nn.ops.dropout import Dropout
from seqloom.objectives import expected_reward, minimum_risk, mixer
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.expected_reward import ExpectedReward
from seqloom.objectives.minimum_risk import MinimumRisk
from seqloom.objectives.mixer import Mixer
from seqloom.objectives.paths import Paths, follow_paths, log_probs, sample_paths, token_lists
from seqloom.types import Padded
from tests.exact import toy
from tests.exact.test_rewards import slow_gleu
from tests.exact.toy import BOS, EOS, gradients, kinds, outputs, probabilities

LONGEST = 3
TARGET = (4, 5)
SETTINGS = {"hidden_size": 4, "decode": None, "reward": "edit_rate"}


def edits(found: list[int], wanted: list[int]) -> float:
    """The edit distance, written down recursively."""
    if not found or not wanted:
        return len(found) + len(wanted)
    same = found[-1] == wanted[-1]
    return min(
        edits(found[:-1], wanted[:-1]) + (not same), edits(found[:-1], wanted) + 1, edits(found, wanted[:-1]) + 1
    )


def reward(output: list[int], target: tuple[int, ...] = TARGET) -> float:
    return -edits(output[:-1], list(target)) / len(target)


def paths(*chosen: list[int], given: int = 0, longest: int = LONGEST) -> Paths:
    """Outputs as if they had been sampled; an EOS forced by the limit is not free."""
    tokens = Padded.stack([torch.tensor(each) for each in chosen])
    places = torch.arange(tokens.values.shape[1])
    return Paths(tokens, tokens.mask & (places >= given) & (places < longest - 1))


def expectation(model, one, objective, module, monkeypatch, samples=1, begun=(), progress=0.5, longest=LONGEST):
    """The objective's gradient for each outcome of a draw, weighted by its probability."""
    chances = probabilities(model, one, longest, begun).detach()
    likeliest = sample_paths(model.decoder, model.encode(one.source), 1, longest, likeliest=True)
    total = [torch.zeros_like(parameter) for parameter in model.parameters()]
    for outcome in product(range(len(chances)), repeat=samples):
        weight = chances[list(outcome)].prod()
        if weight == 0:
            continue
        chosen = paths(*(outputs(longest)[number] for number in outcome), given=len(begun), longest=longest)
        monkeypatch.setattr(module, "sample_paths", lambda *_, likeliest=False, **__: greedy if likeliest else chosen)  # noqa: B023
        greedy = likeliest
        found = gradients(objective(model, one, progress).total, model)
        total = [sum_so_far + weight * each for sum_so_far, each in zip(total, found)]
    monkeypatch.undo()
    return total


def true_gradient(model, one, begun=(), longest=LONGEST):
    """Of minus the expected reward, by listing all outputs."""
    chances = probabilities(model, one, longest, begun)
    values = torch.tensor([reward(output) for output in outputs(longest)], dtype=torch.float64)
    return gradients(-(chances * values).sum(), model)


def close(ours, theirs):
    assert max(each.abs().max() for each in theirs) > 1e-3
    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@kinds
def test_all_probabilities_sum_to_one(kind):
    assert probabilities(toy.model(kind), toy.batch((TARGET,)), LONGEST).sum().item() == pytest.approx(1)


@kinds
@pytest.mark.parametrize("baseline", ["none", "learned", "greedy"])
def test_the_expected_estimate_is_the_gradient_of_the_expected_reward(kind, baseline, monkeypatch):
    model, one = toy.model(kind), toy.batch((TARGET,))
    objective = ExpectedReward(samples=1, baseline=baseline, **SETTINGS).double()
    ours = expectation(model, one, objective, expected_reward, monkeypatch)
    close(ours, true_gradient(model, one))


@pytest.mark.parametrize("baseline", ["others", "learned"])
def test_so_is_the_estimate_from_several_outputs_per_source(baseline, monkeypatch):
    model, one = toy.model("recurrent"), toy.batch((TARGET,))
    objective = ExpectedReward(samples=2, baseline=baseline, **SETTINGS).double()
    ours = expectation(model, one, objective, expected_reward, monkeypatch, samples=2, longest=2)
    close(ours, true_gradient(model, one, longest=2))


def test_a_share_of_likelihood_is_added():
    model, batch = toy.model("recurrent"), toy.batch()
    without, with_it = (ExpectedReward(baseline="none", likelihood=share, **SETTINGS).double() for share in (0.0, 0.25))
    torch.manual_seed(1)
    first = without(model, batch, 0.5)
    torch.manual_seed(1)
    second = with_it(model, batch, 0.5)
    torch.testing.assert_close(second.total, first.total + 0.25 * CrossEntropy()(model, batch, 0.5).total)


def test_a_learned_baseline_learns_the_reward_and_leaves_the_model_alone():
    model, batch = toy.model("recurrent"), toy.batch()
    objective = ExpectedReward(baseline="learned", samples=3, **SETTINGS).double()
    torch.manual_seed(2)
    loss = objective(model, batch, 0.5)
    found = torch.autograd.grad(loss.total, objective.judge.bias)[0]
    torch.manual_seed(2)
    memory = model.encode(batch.source)
    chosen = sample_paths(model.decoder, memory, 3, 4)
    hidden = follow_paths(model.decoder, memory, chosen.tokens).hidden.detach()
    wanted = 0.0
    for row, output in enumerate(token_lists(chosen.tokens, EOS)):
        target = (TARGET, (5,))[row // 3]
        expected = hidden[row] @ objective.judge.weight[0] + objective.judge.bias
        for place in chosen.free[row].nonzero()[:, 0]:
            wanted = wanted + (reward([*output, EOS], target) - expected[place]) ** 2 / 3
    torch.testing.assert_close(found, torch.autograd.grad(wanted, objective.judge.bias)[0])


# -- drawing


@kinds
def test_outputs_are_drawn_as_often_as_they_are_likely(kind):
    model, one = toy.model(kind), toy.batch((TARGET,))
    chances = probabilities(model, one, LONGEST).detach()
    torch.manual_seed(1)
    sources, each = 400, 50
    count = sources * each
    memory = model.encode(one.source).select(torch.zeros(sources, dtype=torch.long))
    chosen = sample_paths(model.decoder, memory, each, LONGEST)
    names = {tuple(output[:-1]): number for number, output in enumerate(outputs(LONGEST))}
    found = torch.bincount(
        torch.tensor([names[tuple(each)] for each in token_lists(chosen.tokens, EOS)]), minlength=len(names)
    )
    chi_square = ((found - count * chances).square() / (count * chances)).sum().item()
    freedom = len(chances) - 1
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5
    lengths = chosen.tokens.lengths
    assert torch.equal(chosen.free.sum(dim=1), lengths.clamp(max=LONGEST - 1))  # what the limit forces is not free
    assert (chosen.tokens.values[~chosen.tokens.mask] == 0).all()


def test_a_prefix_is_given_and_not_drawn():
    model, batch = toy.model("transformer"), toy.batch(((4, 5), (5, 5)))
    prefix = Padded(torch.tensor([[4], [5]]), torch.tensor([1, 1]))
    chosen = sample_paths(model.decoder, model.encode(batch.source), 2, 4, prefix=prefix)
    assert chosen.tokens.values[:, 0].tolist() == [4, 4, 5, 5]
    assert not chosen.free[:, 0].any()
    assert (chosen.tokens.lengths >= 2).all()


@kinds
def test_following_paths_scores_each_token_after_those_before_it(kind):
    model, one = toy.model(kind), toy.batch((TARGET,))
    chances = probabilities(model, one, LONGEST, forced=False).detach()
    every = paths(*outputs(LONGEST)).tokens
    found = log_probs(follow_paths(model.decoder, model.encode(one.source), every), every).sum(dim=1).exp()
    torch.testing.assert_close(found, chances, rtol=1e-10, atol=0)


# -- MIXER


def dropping(module):
    return any(isinstance(each, Dropout) and each.active for each in module.modules())


def given_at(given: int) -> dict:
    """Settings with which so many tokens of outputs of LONGEST are given at progress 0."""
    return {"delta": LONGEST - given, "longest": LONGEST} if given < LONGEST else {"wait": 0.9, "longest": LONGEST}


@kinds
def test_with_all_tokens_given_mixer_is_cross_entropy_with_its_drop_out(kind):
    model, batch = toy.model(kind), toy.batch()
    objective = Mixer(**SETTINGS, **given_at(LONGEST)).double()
    ours, theirs = objective(model, batch, 0.0), CrossEntropy()(model, batch, 0.0)
    assert ours.count == theirs.count
    model.decoder.register_forward_pre_hook(lambda decoder, _: seen.append(dropping(decoder)))
    for progress in (0.0, 1.0):  # nothing is drawn yet, then everything is
        seen = []
        for module in model.modules():
            if isinstance(module, Dropout):
                module.p = 0.5
        objective(model, batch, progress)
        assert any(seen) == (progress == 0.0)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    torch.testing.assert_close(ours.total, theirs.total, rtol=1e-12, atol=0)
    close(gradients(ours.total, model), gradients(theirs.total, model))


@kinds
@pytest.mark.parametrize("given", [0, 1])
def test_mixers_expected_gradient_is_that_of_both_parts(kind, given, monkeypatch):
    model, one = toy.model(kind), toy.batch((TARGET,))
    objective = Mixer(**SETTINGS, **given_at(given)).double()
    ours = expectation(model, one, objective, mixer, monkeypatch, begun=TARGET[:given], progress=0.0)
    rewarded = true_gradient(model, one, TARGET[:given])
    scores = torch.log_softmax(model(one).scores, dim=-1)[0]
    taught = -sum((scores[place, TARGET[place]] for place in range(given)), start=scores.new_zeros(()))
    if given:
        rewarded = [one + other for one, other in zip(rewarded, gradients(taught, model))]
    close(ours, rewarded)


def test_of_a_batch_only_outputs_that_go_on_are_drawn(monkeypatch):
    model, batch = toy.model("recurrent"), toy.batch(((4, 5, 4), (5,)))
    calls = []

    def watched(decoder, memory, count, longest, prefix):
        calls.append((memory.rows, prefix.values.tolist()))
        return sample_paths(decoder, memory, count, longest, prefix=prefix)

    monkeypatch.setattr(mixer, "sample_paths", watched)
    objective = Mixer(delta=2, longest=4, **SETTINGS).double()
    loss = objective(model, batch, 0.0)
    assert calls == [(1, [[4, 5]])]
    assert loss.logs["given"] == 2 * loss.count
    found = objective.paths(model.decoder, model.encode(batch.source), batch.targets, 2)
    assert found.tokens.values[1, :2].tolist() == [5, EOS]
    assert not found.free[1].any()
    assert found.tokens.lengths[1] == 2


def test_the_baseline_of_mixer_learns_the_reward_and_gives_the_model_no_gradient():
    model, batch = toy.model("recurrent"), toy.batch()
    objective = Mixer(delta=3, longest=3, **SETTINGS).double()
    torch.manual_seed(1)
    loss = objective(model, batch, 0.0)
    torch.manual_seed(1)
    chosen = objective.paths(model.decoder, model.encode(batch.source), batch.targets, 0)
    output = follow_paths(model.decoder, model.encode(batch.source), chosen.tokens)
    squares, estimate = 0.0, 0.0
    scores = torch.log_softmax(output.scores, dim=-1)
    for row, body in enumerate(token_lists(chosen.tokens, EOS)):
        value = reward([*body, EOS], (TARGET, (5,))[row])
        for place in chosen.free[row].nonzero()[:, 0]:
            surprise = value - objective.judge(output.hidden[row, place].detach())[0]
            squares = squares + surprise**2
            estimate = estimate - surprise.item() * scores[row, place, chosen.tokens.values[row, place]]
    wanted = torch.autograd.grad(squares, objective.judge.weight)[0]
    torch.testing.assert_close(torch.autograd.grad(loss.total, objective.judge.weight, retain_graph=True)[0], wanted)
    close(gradients(loss.total, model), gradients(estimate, model))


# -- minimum risk


@kinds
def test_of_all_outputs_with_sharpness_1_the_risk_is_the_expected_one(kind, monkeypatch):
    model, one = toy.model(kind), toy.batch((TARGET,))
    every = outputs(LONGEST)
    monkeypatch.setattr(minimum_risk, "sample_paths", lambda *_: paths(*every))
    settings = {"decode": None, "samples": len(every), "sharpness": 1.0, "with_target": False}
    ours = MinimumRisk(**settings)(model, one, 0.5)
    chances = probabilities(model, one, LONGEST, forced=False)
    values = torch.tensor([reward(output) for output in every], dtype=torch.float64)
    theirs = -(chances * values).sum() / chances.sum()
    torch.testing.assert_close(ours.total, theirs, rtol=1e-10, atol=0)
    close(gradients(ours.total, model), gradients(theirs, model))


@kinds
def test_the_risk_is_that_of_the_target_and_of_each_output_once(kind, monkeypatch):
    model, one = toy.model(kind), toy.batch((TARGET,))
    chosen = [[4, EOS], [4, 5, EOS], [4, EOS], [5, 4, 4, EOS]]
    monkeypatch.setattr(minimum_risk, "sample_paths", lambda *_: paths(*chosen))
    ours = MinimumRisk(decode=None, samples=4, sharpness=0.3)(model, one, 0.5)
    unique = [[4, EOS], [4, 5, EOS], [5, 4, 4, EOS]]
    memory, scores = model.encode(one.source), []
    for output in unique:
        inputs = Padded(torch.tensor([[BOS, *output[:-1]]]), torch.tensor([len(output)]))
        steps = torch.log_softmax(model.decoder(memory, inputs).scores[0], dim=-1)
        scores.append(sum(steps[place, token] for place, token in enumerate(output)))
    shares = torch.softmax(0.3 * torch.stack(scores), dim=0)
    theirs = -sum(share * reward(output) for share, output in zip(shares, unique))
    torch.testing.assert_close(ours.total, theirs, rtol=1e-10, atol=0)
    close(gradients(ours.total, model), gradients(theirs, model))


@pytest.mark.parametrize(
    "objective",
    [ExpectedReward(samples=2, **SETTINGS), MinimumRisk(decode=None, samples=2), Mixer(**SETTINGS)],
    ids=lambda objective: type(objective).__name__,
)
def test_drop_out_is_off_where_outputs_are_drawn_and_back_after(objective):
    model, batch = toy.model("transformer"), toy.batch()
    for module in model.modules():
        if hasattr(module, "p"):
            module.p = 0.5
    objective = objective.double()

    def total(progress=1.0):
        torch.manual_seed(1)
        return objective(model, batch, progress).total.item()

    with_drop_out = total()
    for module in model.modules():
        if hasattr(module, "p"):
            assert module.p == 0.5
            module.p = 0.0
    assert total() == with_drop_out
    assert objective.eval()(model, batch, 1.0).total == CrossEntropy()(model, batch, 1.0).total


def test_invalid_settings_are_refused():
    with pytest.raises(ValueError, match="samples"):
        ExpectedReward(samples=1, **SETTINGS)
    with pytest.raises(ValueError, match="sharpness"):
        MinimumRisk(decode=None, sharpness=0.0)
    with pytest.raises(ValueError, match="reward"):
        Mixer(hidden_size=4, decode=None, reward="edit-rate?")


# -- GNMT's refinement


@pytest.mark.parametrize(("baseline", "samples", "longest"), [("none", 1, 3), ("others", 2, 2)])
def test_gnmts_objective_is_expected_gleu_and_a_little_likelihood(baseline, samples, longest, monkeypatch):
    """-(E GLEU + 0.017 log p(target)), eq. 9, by listing all outputs."""
    model, one = toy.model("recurrent"), toy.batch((TARGET,))
    settings = {**SETTINGS, "reward": "gleu", "baseline": baseline, "samples": samples, "likelihood": 0.017}
    ours = expectation(
        model, one, ExpectedReward(**settings).double(), expected_reward, monkeypatch, samples, longest=longest
    )
    values = torch.tensor([slow_gleu(output[:-1], list(TARGET)) for output in outputs(longest)], dtype=torch.float64)
    expected = (probabilities(model, one, longest) * values).sum()
    close(ours, gradients(0.017 * CrossEntropy()(model, one, 0.5).total - expected, model))
