"""Beam-search optimisation against a plain re-statement: tuples, one source at a time, every prefix from scratch."""

import itertools
import random
from collections import Counter

import pytest
import torch
from torch import nn

from seqloom.contracts import Decoder, Stepper
from seqloom.errors import SeqloomError
from seqloom.metrics import bleu
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders import recurrent as recurrent_decoder
from seqloom.nn.decoders import transformer as transformer_decoder
from seqloom.nn.encoders import recurrent as recurrent_encoder
from seqloom.nn.encoders import transformer as transformer_encoder
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import Dropout, without_dropout
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.margin import BeamSearchOptimisation
from seqloom.search.constraints.bag import Bag
from seqloom.types import Batch, Memory, Padded
from tests.building import build

BOS, EOS, VOCABULARY, WORDS = 2, 3, 7, (0, 4, 5, 6)
SIZES = (2, 3, 4)


# -- the re-statement


def scores_after(model, memory, prefix):
    """f of every token after a prefix.  (V,)"""
    state, scores = model.decoder.start(memory), None
    for token in (BOS, *prefix):
        scores, state = model.decoder.step(torch.tensor([token]), state, memory)
    return scores[0]


def plain(model, source, target, size, cost="one", allowed=None):
    """The loss of one source, and its violations: (time, wrong prefix)."""
    gold, beam, total, found = tuple(target), [()], torch.zeros(()), []
    memory = model.encode(source, 1)
    for time in range(1, len(gold) + 1):
        right = gold[:time]
        successors = [(*prefix, symbol) for prefix in beam if EOS not in prefix for symbol in range(VOCABULARY)]
        if allowed:
            successors = [each for each in successors if each == right or allowed(each)]
        last = time == len(gold)
        if last:
            successors = [each for each in successors if each != right]
        after = {prefix: scores_after(model, memory, prefix) for prefix in {each[:-1] for each in (*successors, right)}}
        worth = {each: after[each[:-1]][each[-1]] for each in (*successors, right)}
        ranked = sorted(successors, key=lambda each: -worth[each].item())
        rank = 1 if last else size
        if len(ranked) >= rank:
            wrong = ranked[rank - 1]
            margin = 1 - worth[right] + worth[wrong]
            if margin > 0:
                delta = 1 if cost == "one" else 1 - float(bleu.rewards([wrong], [right])[0])
                total = total + delta * margin
                found.append((time, wrong))
                beam = [right]
                continue
        beam = ranked[:size]
    return total, found


def in_the_bag(source):
    """Whether a prefix is the beginning of an order of the source, or one with its end."""
    bag = Counter(source)

    def allowed(prefix):
        *before, symbol = prefix
        if symbol == EOS:
            return Counter(before) == bag
        return Counter(prefix) <= bag

    return allowed


# -- small models with something to learn


ARCHITECTURES = {
    "recurrent": (recurrent_encoder.Recurrent, {}, recurrent_decoder.Recurrent, {"attention": Additive}),
    "input feeding": (
        recurrent_encoder.Recurrent,
        {"reverse": True},
        recurrent_decoder.Recurrent,
        {"attention": Additive, "input_feeding": True},
    ),
    "transformer": (transformer_encoder.Transformer, {}, transformer_decoder.Transformer, {}),
}


def model_of(architecture, seed=0):
    encoder, reading, decoder, writing = ARCHITECTURES[architecture]
    size = {"vocabulary": VOCABULARY}
    made = Model(build(encoder, **size, **reading), build(decoder, **size, bos=BOS, eos=EOS, **writing)).train()
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9, generator=generator)
    return made


def batch_of(model, seed, bag=False):
    """Sources and targets of different lengths; a target is mostly what the model would say, so that it often stays."""
    chance = random.Random(seed)
    sources = [[chance.choice(WORDS) for _ in range(length)] for length in (4, 2, 3)]
    targets = []
    for source, length in zip(sources, (4, 2, 5)):
        target, left, memory = [], list(source), model.encode(padded([source]))
        for _ in range(len(source) if bag else length):
            choices = sorted(set(left)) if bag else WORDS
            with torch.no_grad():
                worth = scores_after(model, memory, target).tolist()
            best = max(choices, key=worth.__getitem__)
            target.append(best if chance.random() < 0.7 else chance.choice(choices))
            if bag:
                left.remove(target[-1])
        targets.append(target)
    return sources, targets


def padded(rows):
    return Padded.stack([torch.tensor(row) for row in rows])


def as_batch(sources, targets):
    inputs, outputs = ([[BOS, *each] for each in targets], [[*each, EOS] for each in targets])
    return Batch(padded(sources) if sources else None, padded(inputs), padded(outputs))


def objective(size, **settings):
    return BeamSearchOptimisation(**{"constraints": None, "beam_size": size, "first_beam_size": size, **settings})


def bags(source):
    return [Bag(source, EOS)]


def gradients(model, total):
    found = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    return [torch.zeros_like(one) if each is None else each for one, each in zip(model.parameters(), found)]


CASES = [
    (architecture, seed, size, cost, constrained)
    for architecture in ARCHITECTURES
    for seed, cost in ((0, "one"), (1, "bleu"), (2, "one"))
    for size in SIZES
    for constrained in (False, True)
]


@pytest.mark.parametrize(("architecture", "seed", "size", "cost", "constrained"), CASES)
def test_violations_loss_and_gradient_are_those_of_the_plain_restatement(architecture, seed, size, cost, constrained):
    model = model_of(architecture, seed)
    sources, targets = batch_of(model, seed, constrained)
    batch, ours = as_batch(sources, targets), objective(size, cost=cost, constrained=constrained, constraints=bags)
    loss = ours(model, batch, 0.0)
    expected, count = torch.zeros(()), 0
    found = ours.violations(model.decoder, model.encode(batch.source), batch, size)
    for row, (source, target) in enumerate(zip(sources, targets)):
        allowed = in_the_bag(source) if constrained else None
        total, violations = plain(model, padded([source]), (*target, EOS), size, cost, allowed)
        expected, count = expected + total, count + len(violations)
        assert seen(found, row) == violations
    assert loss.total.item() == pytest.approx(expected.item(), abs=1e-9)
    assert int(loss.count) == 3
    assert int(loss.logs["violations"]) == count
    assert int(loss.logs["beam_size"]) == 3 * size
    for one, other in zip(gradients(model, loss.total), gradients(model, expected + nothing(model))):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def seen(found, row):
    """The violations of one source as the re-statement lists them."""
    times = found.found[row].nonzero()[:, 0].tolist()
    return [(time + 1, (*found.prefixes[row, time, :time].tolist(), int(found.tokens[row, time]))) for time in times]


def nothing(model):
    """0 with a gradient, where there may be no violation."""
    return 0 * sum(parameter.sum() for parameter in model.parameters())


def test_the_cases_above_hold_all_there_is_to_see():
    """Steps with and without a violation, wrong prefixes that left the target before, targets that are the K-th."""
    kinds = Counter()
    for architecture, seed, size, _, constrained in CASES:
        model = model_of(architecture, seed)
        sources, targets = batch_of(model, seed, constrained)
        batch = as_batch(sources, targets)
        ours = objective(size, constrained=constrained, constraints=bags)
        found = ours.violations(model.decoder, model.encode(batch.source), batch, size)
        itself = found.on_gold & (found.tokens == batch.targets.values)
        ended = torch.arange(batch.targets.values.shape[1]) == batch.targets.lengths[:, None] - 1
        kinds += Counter(
            {
                ("kept", constrained): int((~found.found & batch.targets.mask).sum()),
                ("on gold", constrained): int((found.found & found.on_gold & ~itself).sum()),
                ("apart", constrained): int((found.found & ~found.on_gold).sum()),
                ("itself", constrained): int((found.found & itself).sum()),
                ("at the end", constrained): int((found.found & ended).sum()),
                ("ended before", constrained): int((found.found & (found.tokens == EOS)).sum()),
            }
        )
    expected = itertools.product(("kept", "on gold", "apart", "itself", "at the end", "ended before"), (False, True))
    assert {kind for kind in expected if kinds[kind] < 5} == set(), kinds


# -- by hand


class Table(Decoder):
    """f(w, v): a number for each token w after each token v."""

    bos, eos = 0, 1

    def __init__(self, numbers):
        super().__init__()
        self.table = nn.Parameter(torch.tensor(numbers, dtype=torch.float64))

    def prepare(self, memory):
        return memory

    def start(self, memory):
        return {"nothing": torch.zeros(memory.rows)}

    def step(self, token, state, memory):
        return self.table[token], state

    def forward(self, memory, inputs, state=None, attention=False):
        return Stepper.__call__(self, memory, inputs, state)


A, B = 2, 3
BY_HAND = [  # of BOS, EOS, a, b
    [-5.0, 0.0, 2.0, 1.5],  # after BOS
    [0.0, 0.0, 0.0, 0.0],  # after EOS
    [-5.0, 0.0, 1.0, 3.0],  # after a
    [-5.0, 2.0, 1.0, -1.0],  # after b
]


def table_batch(*targets):
    inputs, outputs = [[0, *each] for each in targets], [[*each, 1] for each in targets]
    return Batch(None, padded(inputs), padded(outputs))


def test_a_case_worked_by_hand():
    """V = 4, K = 2, the target is a b EOS.

    1. a 2, b 1.5, ...: the second is b, and 1 - 2 + 1.5 = 0.5. A violation; the beam starts anew from a.
    2. ab 3, aa 1, ...: the second is aa, and 1 - 3 + 1 < 0. The beam is ab, aa.
    3. aab 3, ab EOS 2 (the target), aba 1, ...: the best other is aab, and 1 - 2 + 3 = 2. A violation.
    """
    model = Model(None, Table(BY_HAND)).train()
    batch = table_batch([A, B])
    loss = objective(2)(model, batch, 0.0)
    found = objective(2).violations(model.decoder, Memory.empty(1), batch, 2)
    assert seen(found, 0) == [(1, (B,)), (3, (A, A, B))]
    assert loss.total.item() == 0.5 + 2
    loss.total.backward()
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected[0, A], expected[0, B] = -1, 1
    expected[B, 1], expected[A, B] = -1, 1
    assert torch.equal(model.decoder.table.grad, expected)


def test_a_target_that_is_the_last_in_the_beam_costs_and_teaches_nothing():
    """b EOS: b is the second of two, a loss of 1; then b EOS 2 is 1 above ba, which is enough."""
    model = Model(None, Table(BY_HAND)).train()
    batch = table_batch([B])
    loss = objective(2)(model, batch, 0.0)
    assert seen(objective(2).violations(model.decoder, Memory.empty(1), batch, 2), 0) == [(1, (B,))]
    assert loss.total.item() == 1
    loss.total.backward()
    assert not model.decoder.table.grad.any()


def test_without_violations_there_is_neither_loss_nor_gradient():
    model = Model(None, Table([[0, 1, 4, 0], [9] * 4, [0, 1, 0, 4], [0, 4, 0, 0]])).train()
    loss = objective(2)(model, table_batch([A, B]), 0.0)
    assert (loss.total.item(), int(loss.logs["violations"]), int(loss.count)) == (0, 0, 1)
    loss.total.backward()
    assert not model.decoder.table.grad.any()


def test_scores_that_are_not_numbers_give_a_loss_that_is_none():
    model = Model(None, Table([[float("nan")] * 4] * 4)).train()
    assert objective(2)(model, table_batch([A, B]), 0.0).total.isnan()


# -- the rest


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_loss_of_a_batch_is_the_sum_of_its_sources(architecture):
    model = model_of(architecture)
    sources, targets = batch_of(model, 3)
    together = objective(3, cost="bleu")(model, as_batch(sources, targets), 0.0)
    alone = [objective(3, cost="bleu")(model, as_batch([one], [two]), 0.0) for one, two in zip(sources, targets)]
    assert together.total.item() == pytest.approx(sum(each.total.item() for each in alone), abs=1e-9)
    assert int(together.logs["violations"]) == sum(int(each.logs["violations"]) for each in alone)


def test_the_beam_grows_evenly():
    ours = BeamSearchOptimisation(constraints=None)
    table = {0.0: 2, 0.19: 2, 0.2: 3, 0.39: 3, 0.4: 4, 0.59: 4, 0.61: 5, 0.79: 5, 0.8: 6, 0.99: 6, 1.0: 6}
    assert {progress: ours.width(progress) for progress in table} == table
    assert {objective(4).width(progress) for progress in (0.0, 0.5, 1.0)} == {4}
    model = Model(None, Table(BY_HAND)).train()
    assert int(ours(model, table_batch([A, B]), 0.5).logs["beam_size"]) == 4


def test_beams_that_make_no_sense_are_refused():
    for settings in ({"first_beam_size": 7}, {"first_beam_size": 1}):
        with pytest.raises(ValueError, match="first_beam_size"):
            BeamSearchOptimisation(constraints=None, **settings)


def test_constrained_needs_a_task_that_constrains():
    model = model_of("recurrent")
    batch = as_batch(*batch_of(model, 0))
    for constraints in (None, lambda source: []):
        with pytest.raises(SeqloomError, match="constrained"):
            objective(2, constrained=True, constraints=constraints)(model, batch, 0.0)


def test_a_target_outside_the_constraints_is_still_one():
    """A bag that has not the target's tokens: wherever the target goes, it goes alone."""
    model = model_of("recurrent")
    batch = as_batch([[4, 5]], [[6, 6]])
    loss = objective(2, constrained=True, constraints=bags)(model, batch, 0.0)
    total, violations = plain(model, padded([[4, 5]]), (6, 6, EOS), 2, allowed=in_the_bag([4, 5]))
    assert loss.total.item() == pytest.approx(total.item(), abs=1e-9)
    assert int(loss.logs["violations"]) == len(violations)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_validation_is_cross_entropy(architecture):
    model = model_of(architecture).eval()
    batch = as_batch(*batch_of(model, 0))
    ours, theirs = objective(2).eval()(model, batch, 0.5), CrossEntropy().eval()(model, batch, 0.5)
    assert torch.equal(ours.total, theirs.total)
    assert torch.equal(ours.count, theirs.count)
    assert ours.logs.keys() == theirs.logs.keys()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_is_dropped(architecture):
    model = model_of(architecture)
    batch = as_batch(*batch_of(model, 0))
    before = objective(3)(model, batch, 0.0).total
    layers = [each for each in model.modules() if isinstance(each, Dropout)]
    for layer in layers:
        layer.p = 0.5
    assert torch.equal(objective(3)(model, batch, 0.0).total, before)
    assert layers
    assert all(layer.p == 0.5 for layer in layers)


def test_drop_out_comes_back_after_an_error():
    layer = Dropout(0.3)

    def fail():
        with without_dropout(nn.Sequential(layer)):
            raise RuntimeError(f"p is {layer.p}")

    with pytest.raises(RuntimeError, match="p is 0"):
        fail()
    assert layer.p == 0.3
