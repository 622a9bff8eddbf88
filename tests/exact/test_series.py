"""Distributions of vectors, and language models of them: sums over all outcomes, integrals, torch.distributions."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import distributions

from seqloom.contracts import Search
from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.piano_roll import PianoRoll
from seqloom.errors import SeqloomError
from seqloom.inference.series import generate_series
from seqloom.inference.system import System
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.vectors import Vectors
from seqloom.nn.layers.densities import Bernoulli, Gaussians
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.likelihood import Likelihood
from seqloom.objectives.squared_error import SquaredError
from seqloom.tasks.pairs import Pairs
from seqloom.tasks.series import Series
from seqloom.types import Batch, Memory, Padded
from tests.building import build

CHORDS = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)), dtype=torch.float64)  # (8, 3)


def decoder(**settings) -> Vectors:
    return build(Vectors, **{"memory_size": 0, **settings})


def numbers_of_mixture(density: Gaussians, seed: int = 1) -> torch.Tensor:
    return torch.randn(density.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# -- distributions


def test_the_probabilities_of_all_chords_sum_to_one_and_are_those_of_torch():
    logits = torch.randn(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = Bernoulli(3).log_prob(logits.expand(8, 3), CHORDS)
    torch.testing.assert_close(ours, distributions.Bernoulli(logits=logits).log_prob(CHORDS).sum(-1))
    assert ours.exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_a_key_that_is_certain_costs_nothing_and_its_opposite_is_finite():
    ours = Bernoulli(1).log_prob(torch.tensor([[800.0], [800.0]]), torch.tensor([[1.0], [0.0]]))
    assert ours.tolist() == [0.0, -800.0]


@pytest.mark.parametrize("features", [1, 2])
def test_a_mixture_of_gaussians_integrates_to_one(features):
    density = Gaussians(features, components=3)
    numbers = numbers_of_mixture(density)
    axis = torch.linspace(-12, 12, 481, dtype=torch.float64)
    points = torch.cartesian_prod(*[axis] * features).reshape(-1, features)
    total = density.log_prob(numbers.expand(len(points), -1), points).exp().sum() * 0.05**features
    assert total.item() == pytest.approx(1, abs=1e-6)


def test_a_mixture_of_gaussians_is_that_of_torch():
    density = Gaussians(4, components=3)
    numbers = numbers_of_mixture(density)
    values = torch.randn(7, 4, dtype=torch.float64)
    theirs = distributions.MixtureSameFamily(
        distributions.Categorical(logits=numbers[:3]),
        distributions.Independent(distributions.Normal(numbers[3:15].view(3, 4), numbers[15:].view(3, 4).exp()), 1),
    )
    torch.testing.assert_close(density.log_prob(numbers.expand(7, -1), values), theirs.log_prob(values))


def test_drawn_chords_are_as_frequent_as_they_are_probable():
    logits = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    drawn = Bernoulli(3).sample(logits.expand(40_000, 3), generator)
    counts = torch.stack([(drawn == chord).all(-1).sum() for chord in CHORDS])
    expected = 40_000 * Bernoulli(3).log_prob(logits.expand(8, 3), CHORDS).exp()
    assert ((counts - expected).square() / expected).sum().item() < 24.3  # chi-square, 7 degrees, one in a thousand


def test_drawn_vectors_have_the_moments_of_the_mixture_and_a_low_temperature_gives_its_likeliest_mean():
    density = Gaussians(2, components=2)
    numbers = torch.tensor([1.0, 0.0, -2.0, 1.0, 3.0, 0.5, 0.2, -0.5, 0.1, 0.3], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    drawn = density.sample(numbers.expand(100_000, -1), generator)
    shares, means, scales = density.parts(numbers)
    shares = shares.exp()[:, None]
    mean = (shares * means).sum(0)
    variance = (shares * (scales.exp().square() + means.square())).sum(0) - mean.square()
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.05, rtol=0)
    torch.testing.assert_close(drawn.var(0), variance, rtol=0.05, atol=0)
    cold = density.sample(numbers.expand(50, -1), generator, temperature=1e-3)
    torch.testing.assert_close(cold, means[:1].expand(50, -1), atol=0.3, rtol=0)


# -- decoders of vectors


@pytest.mark.parametrize("inner", [Recurrent])
def test_the_probabilities_of_all_pieces_of_two_steps_sum_to_one(inner):
    model = decoder(features=3, decoder=inner)
    pieces = torch.stack([torch.stack(each) for each in itertools.product(CHORDS, repeat=2)])  # (64, 2, 3)
    inputs = torch.cat([torch.zeros(64, 1, 3).double(), pieces[:, :1]], dim=1)
    lengths = torch.full((64,), 2)
    found = model.log_prob(Memory.empty(64), Padded(inputs, lengths), Padded(pieces, lengths))
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert found.exp().std() > 1e-4


def batch(features: int = 4) -> Batch:
    torch.manual_seed(2)
    return Series(target=Numbers()).batch(
        None, [np.round(np.random.default_rng(n).random((n, features))) for n in (3, 1, 2)]
    )


@pytest.mark.parametrize("settings", [{}, {"density": "gaussians", "components": 2}])
def test_the_loss_is_the_sum_of_what_each_step_costs_and_counts_steps(settings):
    model, given = Model(None, decoder(**settings)), batch()
    loss = Likelihood()(model, given, 0.0)
    by_hand, memory = 0.0, Memory.empty(1)
    for row, length in enumerate(given.targets.lengths.tolist()):
        state, vector = model.decoder.start(memory), torch.zeros(1, 4).double()
        for target in given.targets.values[row, :length]:
            numbers, state = model.decoder.step(vector, state, memory)
            vector = target[None]
            by_hand -= model.decoder.density.log_prob(numbers, vector).item()
    assert loss.total.item() == pytest.approx(by_hand, rel=1e-12)
    assert loss.count.item() == 6
    scores = model.decoder.log_prob(Memory.empty(3), given.inputs, given.targets)
    assert -scores.sum().item() == pytest.approx(by_hand, rel=1e-12)


def test_the_first_input_is_zeros_and_each_further_one_the_target_before():
    given = batch()
    assert not given.inputs.values[:, 0].any()
    assert torch.equal(given.inputs.values[0, 1:], given.targets.values[0, :-1])


def system(**settings) -> System:
    made = decoder(features=88, length_offset=5, **settings).float()
    return System(Model(None, made).freeze(), Series(target=PianoRoll()), {"data": {}, "search": {"type": "beam"}})


def test_a_series_goes_on_from_its_prefix_as_if_it_had_written_it():
    ours = system()
    (whole,) = generate_series(ours, 1, None, None, {"seed": 3, "maximum_length": 1})
    prefix = [[60, 64], [62], []]
    (found,) = generate_series(ours, 1, prefix, None, {"seed": 3, "maximum_length": 4})
    assert len(whole) == 1
    assert found[:3] == prefix
    model, roll = ours.model.decoder, torch.from_numpy(PianoRoll().encode(prefix))
    state, memory, vector = model.start(Memory.empty(1)), Memory.empty(1), model.first_input(1)
    for step in roll:
        _, state = model.step(vector, state, memory)
        vector = step[None]
    numbers, _ = model.step(vector, state, memory)
    drawn = model.density.sample(numbers, torch.Generator().manual_seed(3))
    assert PianoRoll().decode(drawn) == found[3:]


def test_a_seed_repeats_a_series_and_its_rows_differ():
    ours = system()
    first, second = (generate_series(ours, 2, None, None, {"seed": 1}) for _ in range(2))
    assert first == second
    assert first[0] != first[1]
    assert [len(each) for each in first] == [5, 5]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"top_k": 3}, "top_k: a series of vectors has no such setting"),
        ({"maximum_length": 0}, "maximum_length = 0: expected a number from 1"),
        ({"temperature": 0.0}, "temperature = 0.0: expected a number from"),
        ({"seed": -1}, "seed = -1: expected a number from 0"),
        ({"maximum_length": "long"}, "maximum_length"),
    ],
)
def test_settings_that_a_series_cannot_have_are_one_line(settings, problem):
    with pytest.raises(SeqloomError, match=problem):
        generate_series(system(), 1, None, None, settings)


def test_a_series_is_drawn_and_not_searched_for():
    search: Search = SimpleNamespace()  # type: ignore[assignment]
    with pytest.raises(SeqloomError, match="drawn, not searched for"):
        generate_series(system(), 1, None, search, {})


def test_vectors_and_tokens_are_not_mixed_up():
    vectors, task = decoder(), Series(target=PianoRoll())
    search: Search = SimpleNamespace(rank_by="sum")  # type: ignore[assignment]
    vectors.suit(task, None)
    Likelihood().suit(task, vectors, search)
    with pytest.raises(ValueError, match='take "squared_error" or "likelihood"'):
        CrossEntropy().suit(task, vectors, search)
    with pytest.raises(ValueError, match=r'take objective\.type = "likelihood"'):
        SquaredError().suit(task, vectors, search)
    with pytest.raises(ValueError, match=r'take decoder\.type = "vectors"'):
        Likelihood().suit(task, build(Recurrent, memory_size=0), search)
    with pytest.raises(ValueError, match=r'task\.type = "series"'):
        vectors.suit(Pairs(target=PianoRoll()), None)
    with pytest.raises(ValueError, match="target must have no end of its own"):
        Series(target=SimpleNamespace(is_vectors=False, endless=False))  # type: ignore[arg-type]
