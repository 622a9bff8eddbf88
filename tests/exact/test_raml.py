"""Reward-augmented maximum likelihood: what is drawn against full enumeration, and the loss against its definition."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import comb, exp, log, sqrt

import numpy as np
import pytest
import torch
from rapidfuzz.distance import Levenshtein

from seqloom.data.codecs.text import Text as TextCodec
from seqloom.metrics import bleu
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.transformer import Transformer as TransformerDecoder
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.edits import FIRST, Edit, Hamming
from seqloom.objectives.raml import RewardAugmented
from seqloom.search.beam import BeamSearch
from seqloom.tasks.pairs import Pairs, inputs_and_targets
from seqloom.tasks.text import RunningText
from seqloom.types import Batch, Padded
from tests.building import BOS, EOS, VOCABULARY, build, source

DRAWS = 100_000


def padded(*sequences):
    return Padded.stack([np.array(sequence, dtype=np.int64) for sequence in sequences])


def repeated(sequence, rows):
    return Padded(np.tile(np.array(sequence, dtype=np.int64), (rows, 1)), np.full(rows, len(sequence)))


def outputs(drawn):
    return [tuple(row[:length].tolist()) for row, length in zip(drawn.values, drawn.lengths)]


def chi_square(found, expected):
    """How far counts are from what is expected, in standard deviations. Rare outputs count as one."""
    total = sum(found.values())
    assert set(found) <= set(expected)
    common = {key for key, share in expected.items() if share * total >= 5}
    cells = [(found[key], expected[key] * total) for key in common]
    rest = total * sum(share for key, share in expected.items() if key not in common)
    if rest >= 5:
        cells.append((total - sum(number for number, _ in cells), rest))
    statistic = sum((number - wanted) ** 2 / wanted for number, wanted in cells)
    freedom = len(cells) - 1
    return (statistic - freedom) / sqrt(2 * freedom)


def normalised(weights):
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def hamming_ball(target, symbols, temperature, calibrated):
    """Every output of the length, with its weight."""
    weights = {}
    for output in product(range(FIRST, FIRST + symbols), repeat=len(target)):
        edits = sum(one != other for one, other in zip(output, target))
        weights[output] = exp(-edits / temperature) * ((symbols - 1) ** (-edits / temperature) if calibrated else 1)
    return normalised(weights)


def scripts(target, symbols, most=None):
    """Every script of at most 2 m edits, or fewer, as (edits, output), by the words of its definition."""
    letters = range(FIRST, FIRST + symbols)
    length = len(target)
    for substituted in range(length + 1):
        for inserted in range((2 * length if most is None else most) - substituted + 1):
            for places in combinations(range(length), substituted):
                for gaps in combinations_with_replacement(range(length - substituted + 1), inserted):
                    for new in product(letters, repeat=substituted + inserted):
                        yield substituted + inserted, written(target, places, gaps, new)


def written(target, places, gaps, new):
    symbols, stayed, output = iter(new), 0, []
    for place in range(len(target) + 1):
        if place in places:
            output.append(next(symbols))
            continue
        output.extend(next(symbols) for gap in gaps if gap == stayed)
        if place < len(target):
            output.append(target[place])
            stayed += 1
    return tuple(output)


def script_ball(target, symbols, temperature, calibrated):
    weights = Counter()
    for edits, output in scripts(target, symbols):
        weights[output] += exp(-edits / temperature) * (symbols ** (-edits / temperature) if calibrated else 1)
    return normalised(weights)


@pytest.mark.parametrize(("calibrated", "temperature"), [(True, 0.85), (True, 2.0), (False, 0.85), (False, 0.4)])
def test_hamming_draws_are_those_of_full_enumeration(calibrated, temperature):
    target = (FIRST, FIRST + 3, FIRST + 1, FIRST + 3)
    expected = hamming_ball(target, 4, temperature, calibrated)
    near = Hamming(4, temperature, calibrated)
    drawn = near.draw(repeated(target, DRAWS), np.random.default_rng(1))
    found = Counter(outputs(drawn))
    assert abs(chi_square(found, expected)) < 4
    assert chi_square(found, hamming_ball(target, 4, temperature, not calibrated)) > 100
    assert chi_square(found, hamming_ball(target, 4, 1.1 * temperature, calibrated)) > 20
    every = padded(*expected)
    log_probs = near.log_probs(repeated(target, len(expected)), every)
    np.testing.assert_allclose(log_probs, np.log(list(expected.values())), rtol=1e-12)


@pytest.mark.parametrize(("calibrated", "temperature"), [(True, 0.9), (False, 0.9), (False, 0.4)])
@pytest.mark.parametrize("target", [(FIRST, FIRST + 1), (FIRST + 1, FIRST + 1)])
def test_edit_draws_are_those_of_all_scripts(target, calibrated, temperature):
    expected = script_ball(target, 2, temperature, calibrated)
    near = Edit(2, temperature, calibrated)
    drawn = near.draw(repeated(target, DRAWS), np.random.default_rng(2))
    found = Counter(outputs(drawn))
    assert abs(chi_square(found, expected)) < 4
    assert chi_square(found, script_ball(target, 2, temperature, not calibrated)) > 100
    every = padded(*expected)
    log_probs = near.log_probs(repeated(target, len(expected)), every)
    np.testing.assert_allclose(log_probs, np.log(list(expected.values())), rtol=1e-10)


def test_the_probability_of_an_edited_output_counts_every_script_once():
    target = (FIRST, FIRST + 1, FIRST)
    expected = script_ball(target, 2, 1.2, True)
    near = Edit(2, 1.2, True)
    log_probs = near.log_probs(repeated(target, len(expected)), padded(*expected))
    np.testing.assert_allclose(log_probs, np.log(list(expected.values())), rtol=1e-10)
    assert np.exp(log_probs).sum() == pytest.approx(1)
    counts = Counter(edits for edits, _ in scripts(target, 2))
    for edits in range(7):
        published = sum(comb(3, n) * comb(3 + edits - 2 * n, edits - n) for n in range(min(3, edits) + 1))
        assert counts[edits] == published * 2**edits


def test_the_published_count_exceeds_the_true_number_of_neighbours():
    for symbols, target in ((2, (4, 5, 4)), (3, (4, 5, 6)), (3, (4, 4, 4))):
        letters = range(FIRST, FIRST + symbols)
        true, length = Counter(), len(target)
        for size in range(length + 4):
            true.update(Levenshtein.distance(output, target) for output in product(letters, repeat=size))
        counts = Counter(edits for edits, _ in scripts(target, symbols, most=3))
        assert counts[0] == true[0] == 1
        for edits in (1, 2, 3):
            assert counts[edits] > true[edits]
        # of one edit: m V substitutions and (m + 1) V insertions against m (V - 1), (m + 1)(V - 1) + 1, and deletions
        runs = 1 + sum(one != other for one, other in pairwise(target))
        assert counts[1] == (2 * length + 1) * symbols
        assert true[1] == (2 * length + 1) * (symbols - 1) + 1 + runs


def test_the_published_sampler_is_not_the_exact_one_by_levenshtein():
    # The exact distribution, q(y) ~ exp(-distance), over all outputs of at most 3 m tokens, deletions included.
    target, temperature = (FIRST, FIRST + 1), 0.4
    exact = {}
    for size in range(3 * len(target) + 1):
        for output in product(range(FIRST, FIRST + 2), repeat=size):
            exact[output] = exp(-Levenshtein.distance(output, target) / temperature)
    exact = normalised(exact)
    published = script_ball(target, 2, temperature, False)
    assert published[target] < exact[target]  # far outputs are over-counted
    assert exact[(FIRST,)] > 0.02
    assert (FIRST,) not in published


def test_numbers_of_edits_are_the_figures_known():
    chances = Edit(61, 0.9).chances(20)
    assert chances[5:10].round(3).tolist() == [0.106, 0.137, 0.149, 0.141, 0.118]
    assert chances @ np.arange(41) == pytest.approx(7.6, abs=0.05)
    assert Edit(61, 0.9, calibrated=False).chances(20) @ np.arange(41) == pytest.approx(39.96, abs=0.005)
    chances = Hamming(10_000, 0.85).chances(10)
    assert chances[0] == pytest.approx(0.555, abs=5e-4)
    assert chances @ np.arange(11) == pytest.approx(0.57, abs=5e-3)
    assert Hamming(10_000, 0.6).chances(10)[0] == pytest.approx(0.996, abs=5e-4)


def test_chances_by_logarithms_are_those_of_plain_arithmetic():
    for symbols, temperature, length in ((7, 0.9, 5), (30, 1.4, 8)):
        weights = [comb(length, e) * (symbols - 1) ** e * exp(-e / temperature) for e in range(length + 1)]
        np.testing.assert_allclose(
            Hamming(symbols, temperature, False).chances(length), np.divide(weights, sum(weights))
        )
        weights = [
            sum(comb(length, n) * comb(length + e - 2 * n, e - n) for n in range(min(length, e) + 1))
            * symbols ** (e - e / temperature)
            * exp(-e / temperature)
            for e in range(2 * length + 1)
        ]
        np.testing.assert_allclose(Edit(symbols, temperature).chances(length), np.divide(weights, sum(weights)))
    for near in (Hamming(50_000, 0.85, False), Edit(50_000, 0.85, False), Hamming(50_000, 0.05), Edit(50_000, 0.05)):
        assert near.chances(300).sum() == pytest.approx(1)


@pytest.mark.parametrize("near", [Hamming(5, 2.0, False), Edit(5, 2.0, False)])
def test_rows_of_all_lengths_are_drawn_with_real_symbols_only(near):
    targets = padded([4, 5, 6, 7, 8], [], [1, 1, 1], [8])  # nothing; unknown tokens
    rows = np.repeat(np.arange(4), 2000)
    targets = Padded(targets.values[rows], targets.lengths[rows])
    drawn = near.draw(targets, np.random.default_rng(3))
    changed = [set(output) - {1} for output in outputs(drawn)]
    assert set.union(*changed) == {4, 5, 6, 7, 8}
    assert not drawn.values[~drawn.mask].any()
    assert set(outputs(drawn)[2000:4000]) == {()}
    unknown = set().union(*outputs(drawn)[4000:6000])
    assert unknown == {1, 4, 5, 6, 7, 8}
    assert (near.log_probs(targets, drawn) <= 1e-12).all()
    if isinstance(near, Hamming):
        assert (drawn.lengths == targets.lengths).all()
    else:
        assert (drawn.lengths <= 3 * targets.lengths).all()
        assert (drawn.lengths > targets.lengths).any()


def test_the_probability_of_a_changed_unknown_symbol_is_exact():
    target = (1, 5)
    near = Hamming(3, 1.5, True)
    every = [(one, other) for one in (1, 4, 5, 6) for other in (4, 5, 6)]
    shares = np.exp(near.log_probs(repeated(target, len(every)), padded(*every)))
    assert shares.sum() == pytest.approx(1)
    drawn = near.draw(repeated(target, DRAWS), np.random.default_rng(4))
    assert abs(chi_square(Counter(outputs(drawn)), dict(zip(every, shares)))) < 4


def language_model(part=RecurrentDecoder):
    return Model(None, build(part, memory_size=0))


def translator():
    encoder = build(RecurrentEncoder)
    return Model(encoder, build(TransformerDecoder, memory_size=encoder.output_size))


def batch_of(*targets, reads=None):
    inputs, wanted = zip(*(inputs_and_targets(np.array(target, dtype=np.int64)) for target in targets))
    return Batch(reads, Padded.stack(inputs), Padded.stack(wanted), tuple(range(len(targets)))).to("cpu")


TARGETS = ([4, 5, 6, 4], [7, 8], [5])


def objective(**settings):
    return RewardAugmented(**{"vocabulary": VOCABULARY, "decode": None, **settings}).train()


def loss_and_gradients(loss, model):
    return loss.total, torch.autograd.grad(loss.total, [*model.parameters()])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_temperature_zero_is_cross_entropy_bit_for_bit(smoothing):
    model, batch = translator(), batch_of(*TARGETS, reads=source())
    ours = objective(temperature=0.0, label_smoothing=smoothing, samples=3)
    prepared = ours.prepare(batch, np.random.default_rng(0))
    found = ours(model, prepared, 0.0)
    expected = CrossEntropy(label_smoothing=smoothing).train()(model, batch, 0.0)
    assert (found.count, found.logs) == (expected.count, expected.logs)
    (one, ones), (other, others) = loss_and_gradients(found, model), loss_and_gradients(expected, model)
    assert torch.equal(one, other)
    assert all(map(torch.equal, ones, others))


@pytest.mark.parametrize("distance", ["hamming", "edit"])
def test_near_temperature_zero_it_is_cross_entropy(distance):
    model, batch = translator(), batch_of(*TARGETS, reads=source())
    ours = objective(temperature=0.01, distance=distance)
    prepared = ours.prepare(batch, np.random.default_rng(0))
    for one, other in ((prepared.inputs, batch.inputs), (prepared.targets, batch.targets)):
        assert torch.equal(one.values, other.values)
        assert torch.equal(one.lengths, other.lengths)
    assert "weights" not in prepared.extra
    found, expected = ours(model, prepared, 0.0), CrossEntropy()(model, batch, 0.0)
    assert torch.equal(found.total, expected.total)


def test_outside_training_it_is_cross_entropy_without_smoothing():
    model, batch = translator(), batch_of(*TARGETS, reads=source())
    found = objective(label_smoothing=0.3).eval()(model, batch, 0.0)
    expected = CrossEntropy().eval()(model, batch, 0.0)
    assert torch.equal(found.total, expected.total)
    assert found.logs == expected.logs


@pytest.mark.parametrize("distance", ["hamming", "edit"])
@pytest.mark.parametrize("reads", [True, False])
def test_the_loss_is_the_mean_over_what_was_drawn_for_each_target(distance, reads):
    model = translator() if reads else language_model()
    batch = batch_of(*TARGETS, reads=source() if reads else None)
    ours = objective(distance=distance, samples=4, temperature=3.0, label_smoothing=0.1)
    prepared = ours.prepare(batch, np.random.default_rng(5))
    assert prepared.source is batch.source or prepared.source.values.shape == batch.source.values.shape
    found = ours(model, prepared, 0.0)
    total, count, nll = 0.0, 0.0, 0.0
    plain = CrossEntropy(label_smoothing=0.1).train()
    different = set()
    for row in range(12):
        length = int(prepared.targets.lengths[row])
        given, wanted = prepared.inputs.values[row, :length].tolist(), prepared.targets.values[row, :length].tolist()
        assert given[0] == BOS
        assert wanted[-1] == EOS
        assert given[1:] == wanted[:-1]
        different.add(tuple(wanted))
        entry = row // 4
        read = reads and Padded(batch.source.values[entry : entry + 1], batch.source.lengths[entry : entry + 1])
        alone = plain(model, batch_of(wanted[:-1], reads=read or None), 0.0)
        total, count, nll = total + alone.total / 4, count + length / 4, nll + alone.logs["nll"] / 4
    assert len(different) > 6
    torch.testing.assert_close(found.total, total)
    assert found.count.item() == pytest.approx(count)
    assert found.logs["nll"].item() == pytest.approx(nll.item())
    ones, others = (torch.autograd.grad(each, [*model.parameters()]) for each in (found.total, total))
    torch.testing.assert_close(ones, others)


def test_the_loss_is_least_where_the_model_is_q():
    """Cross-entropy of all outputs weighted by q is KL(q || p) + H(q), and draws have its gradient on average."""
    model, target, temperature = language_model(), (4, 6), 1.5
    shares = hamming_ball(target, VOCABULARY - FIRST, temperature, True)
    weights = torch.tensor(list(shares.values()), dtype=torch.float64)
    every = batch_of(*shares)
    every = replace(every, extra={"weights": weights})
    ours = objective(temperature=temperature, samples=20_000)
    loss = ours(model, every, 0.0)
    output = model(every)
    steps = torch.log_softmax(output.scores, -1).gather(2, every.targets.values[:, :, None])[:, :, 0]
    log_probs = steps.sum(1)  # (V^m,): all outputs are of one length
    divergence = (weights * (weights.log() - log_probs)).sum()
    entropy = -(weights * weights.log()).sum()
    torch.testing.assert_close(loss.total, divergence + entropy)
    assert divergence > 0.1

    exact = torch.autograd.grad(loss.total, [*model.parameters()])
    drawn = ours.prepare(batch_of(target), np.random.default_rng(6))
    estimate = torch.autograd.grad(ours(model, drawn, 0.0).total, [*model.parameters()])
    plain = torch.autograd.grad(CrossEntropy()(model, batch_of(target), 0.0).total, [*model.parameters()])
    one, other, third = (torch.cat([part.flatten() for part in each]) for each in (exact, estimate, plain))
    assert (one - other).norm() < 0.02 * one.norm()
    assert (one - third).norm() > 0.2 * one.norm()


@pytest.mark.parametrize("distance", ["hamming", "edit"])
def test_weights_of_a_reward_are_reward_over_proposal(distance):
    ours = objective(distance=distance, samples=6, temperature=2.0, reward="bleu", reward_temperature=0.3)
    prepared = ours.prepare(batch_of(*TARGETS), np.random.default_rng(7))
    drawn = [row[: length - 1].tolist() for row, length in zip(prepared.targets.values, prepared.targets.lengths)]
    ball = hamming_ball if distance == "hamming" else script_ball
    weights = prepared.extra["weights"].view(3, 6)
    for entry, target in enumerate(TARGETS[1:], start=1):
        shares = ball(tuple(target), VOCABULARY - FIRST, 2.0, True)
        mine = drawn[6 * entry : 6 * entry + 6]
        plain = [exp(bleu.rewards([each], [target])[0] / 0.3) / shares[tuple(each)] for each in mine]
        assert len({*map(tuple, mine)}) > 2
        np.testing.assert_allclose(weights[entry], np.divide(plain, sum(plain)), rtol=1e-5)


def test_many_weighted_draws_become_the_distribution_of_the_reward():
    target, temperature = (4, 5, 4), 0.4
    ours = objective(
        vocabulary=FIRST + 2, samples=DRAWS, reward="bleu", reward_temperature=temperature, temperature=2.0
    )
    prepared = ours.prepare(batch_of(target), np.random.default_rng(8))
    weights = Counter()
    for row, weight in zip(prepared.targets.values[:, :-1].tolist(), prepared.extra["weights"].tolist()):
        weights[tuple(row)] += weight
    every = list(product((4, 5), repeat=3))
    rewards = bleu.rewards(every, [target] * len(every))
    expected = normalised({each: exp(reward / temperature) for each, reward in zip(every, rewards)})
    assert weights == pytest.approx(expected, rel=0.05)


def test_a_reward_may_be_of_words():
    def decode(symbols):
        return " ".join("even" if symbol % 2 else "odd" for symbol in symbols)

    settings = {"samples": 40, "temperature": 3.0, "reward": "exact", "reward_temperature": 0.05}
    ours = objective(**settings, decode=decode, reward_of="words")
    prepared = ours.prepare(batch_of([4, 5]), np.random.default_rng(9))
    weights = prepared.extra["weights"]
    right = torch.tensor([row[0] % 2 == 0 and row[1] % 2 == 1 for row in prepared.targets.values.tolist()])
    assert 1 < right.sum() < 30
    assert weights[right].sum() > 0.999


def test_what_is_drawn_follows_the_generator():
    ours, batch = objective(samples=5, temperature=2.0), batch_of(*TARGETS)
    first, again, other = (ours.prepare(batch, np.random.default_rng(seed)).targets.values for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_running_text_is_refused():
    codec, decoder = TextCodec(units="char"), build(RecurrentDecoder)
    for carry in (True, False):
        with pytest.raises(ValueError, match="running text has no"):
            objective().suit(RunningText(target=codec, carry=carry), decoder, BeamSearch())
    objective().suit(Pairs(target=codec), decoder, BeamSearch())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"distance": "euclid"}, 'distance = "euclid" must be'),
        ({"temperature": -1.0}, "temperature = -1.0 must be 0 or more"),
        ({"reward_temperature": 0.0}, "reward_temperature = 0.0 above 0"),
        ({"samples": 0}, "samples = 0 must"),
        ({"reward": "bleu"}, "samples = 1 must be 1 or more, and 2 or more with a reward"),
        ({"reward": "blue", "samples": 2}, "did you mean"),
        ({"reward": "bleu", "samples": 2, "temperature": 0.0}, "temperature = 0 draws nothing"),
        ({"vocabulary": 5}, "a vocabulary of 1 real tokens"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(settings, words):
    with pytest.raises(ValueError, match=words) as caught:
        objective(**settings)
    assert "\n" not in str(caught.value)


def test_one_edit_costs_what_the_calibration_says():
    assert Hamming(10, 0.5, True).cost == pytest.approx((1 + log(9)) / 0.5)
    assert Hamming(10, 0.5, False).cost == Edit(10, 0.5, False).cost == 2
    assert Edit(10, 0.5, True).cost == pytest.approx((1 + log(10)) / 0.5)
