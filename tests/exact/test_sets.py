"""Sets: encoders that ignore order, and targets that may be written in any order."""

from itertools import permutations

import numpy as np
import pytest
import torch

from seqloom.metrics.set_match import set_match
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.encoders.set import Set
from seqloom.nn.model import Model
from seqloom.objectives import any_order
from seqloom.objectives.any_order import AnyOrder, reorder
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Padded
from tests.building import BOS, EOS, FEATURES, VOCABULARY, build

POINTS = Padded(
    torch.randn(2, 5, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), torch.tensor([5, 4])
)
ORDER = torch.tensor([[3, 0, 4, 1, 2], [2, 1, 3, 0, 4]])  # the last of the second row is padding


def pointer_model(steps=3, glimpses=1):
    encoder = build(Set, vocabulary=None, features=FEATURES, steps=steps)
    vectors = {"source_vocabulary": None, "source_features": FEATURES}
    return Model(encoder, build(Pointer, **vectors, glimpses=glimpses))


def test_a_summary_does_not_depend_on_the_order():
    encoder = pointer_model().encoder
    other = Padded(POINTS.values.gather(1, ORDER[:, :, None].expand_as(POINTS.values)), POINTS.lengths)
    one, two = encoder(POINTS), encoder(other)
    torch.testing.assert_close(one.final["summary"], two.final["summary"], rtol=0, atol=1e-12)
    torch.testing.assert_close(one.states.gather(1, ORDER[:, :, None].expand_as(one.states)), two.states)
    nothing = pointer_model(steps=0).encoder(POINTS).final["summary"]
    assert not nothing.any()
    assert one.final["summary"].abs().min() > 0


@pytest.mark.parametrize("glimpses", [0, 2])
def test_a_pointer_points_at_the_same_elements_in_any_order(glimpses):
    model = pointer_model(glimpses=glimpses)
    other = Padded(POINTS.values.gather(1, ORDER[:, :, None].expand_as(POINTS.values)), POINTS.lengths)
    positions = torch.tensor([[4, 1, 2], [0, 3, 3]])
    begin = torch.full((2, 1), BOS)
    lengths = torch.tensor([4, 4])
    moved = ORDER.argsort(1).gather(1, positions)  # the new position of each element
    one = model.decoder(model.encode(POINTS), Padded(torch.cat([begin, VOCABULARY + positions], 1), lengths)).scores
    two = model.decoder(model.encode(other), Padded(torch.cat([begin, VOCABULARY + moved], 1), lengths)).scores
    torch.testing.assert_close(one[:, :, :VOCABULARY], two[:, :, :VOCABULARY])
    elements = one[:, :, VOCABULARY:].gather(2, ORDER[:, None].expand(-1, 4, -1))
    torch.testing.assert_close(elements, two[:, :, VOCABULARY:])


def test_processing_follows_the_equations_of_the_paper():
    encoder = build(Set, steps=2)
    source = Padded(torch.tensor([[4, 7, 5]]), torch.tensor([3]))
    memory = encoder.element(encoder.embedding(source.values))[0]  # (T, D)
    size = encoder.output_size
    query, state = torch.zeros(1, 2 * size, dtype=torch.float64), encoder.process.start(1)
    state = {name: value.double() for name, value in state.items()}
    for _ in range(2):
        hidden, state = encoder.process(encoder.process.project(query), state)
        shares = (memory @ hidden[0]).softmax(0)
        query = torch.cat([hidden, (shares @ memory)[None]], 1)
    torch.testing.assert_close(encoder(source).final["summary"], encoder.summary(query))


def sets():
    """A batch of two sets, with three and with two tokens."""
    targets = Padded(torch.tensor([[5, 8, 4, EOS], [7, 6, EOS, 0]]), torch.tensor([4, 3]))
    inputs = Padded(torch.tensor([[BOS, 5, 8, 4], [BOS, 7, 6, 0]]), targets.lengths)
    source = Padded(torch.tensor([[4, 5], [6, 0]]), torch.tensor([2, 1]))
    return Batch(source, inputs, targets)


def text_model():
    return Model(build(Set), build(Recurrent))


def likelihoods(model, batch, entry):
    """log p of every order of one target, by the chain rule."""
    length = int(batch.targets.lengths[entry])
    body = batch.targets.values[entry, : length - 1].tolist()
    memory = model.encode(batch.source).select(torch.tensor([entry]))
    found = {}
    for order in permutations(body):
        state, token, total = model.decoder.start(memory), BOS, 0.0
        for target in [*order, EOS]:
            scores, state = model.decoder.step(torch.tensor([token]), state, memory)
            total, token = total + scores.log_softmax(-1)[0, target].item(), target
        found[order] = total
    return found


def test_the_most_probable_of_all_orders_is_learned():
    model, batch = text_model(), sets()
    objective = AnyOrder(orders=200, uniform=0.0).train()
    loss = objective(model, objective.prepare(batch, np.random.default_rng(1)), 0.5)
    best = sum(max(likelihoods(model, batch, entry).values()) for entry in range(2))
    torch.testing.assert_close(loss.total, torch.tensor(-best, dtype=torch.float64))
    assert loss.count == 7
    loss.total.backward()
    assert all(value.grad is not None for value in model.parameters())


def test_orders_are_sampled_in_proportion_to_their_probability(monkeypatch):
    """In thousands of copies of one example, orders are as frequent as they are probable."""
    model, batch = text_model(), sets()
    for parameter in model.parameters():
        parameter.data *= 3  # so that probabilities differ
    likely = likelihoods(model, batch, 0)
    every = torch.tensor([[*order, 3] for order in permutations(range(3))])
    first = torch.zeros(4000, dtype=torch.long)
    source, inputs, targets = (
        Padded(each.values[first], each.lengths[first]) for each in (batch.source, batch.inputs, batch.targets)
    )
    many = Batch(source, inputs, targets, extra={"orders": every.expand(len(first), -1, -1)})
    seen = []
    monkeypatch.setattr(any_order, "reorder", lambda rows, orders: seen.append(orders) or reorder(rows, orders))
    torch.manual_seed(3)
    AnyOrder(orders=6, choose="sample", uniform=0.0).train()(model, many, 0.5)
    _, chosen = seen  # the orders that were scored, and those that were learned
    found = (chosen[:, None] == every).all(-1).double().mean(0)
    expected = torch.tensor(list(likely.values()), dtype=torch.float64).softmax(0)
    assert (found - expected).abs().max() < 0.03
    assert expected.max() - expected.min() > 0.2


def test_in_the_uniform_phase_orders_are_random_and_eos_stays_last():
    model, batch = text_model(), sets()
    objective = AnyOrder(orders=3, uniform=0.5).train()
    drawn = objective.prepare(batch, np.random.default_rng(2))
    orders = drawn.extra["orders"]
    assert orders.shape == (2, 3, 4)
    assert (orders[0, :, 3] == 3).all()
    assert (orders[1, :, 2:] == torch.tensor([2, 3])).all()
    assert {tuple(order) for order in orders.sort(-1).values.flatten(0, 1).tolist()} == {(0, 1, 2, 3)}
    first = reorder(batch, orders[:, 0])
    assert first.inputs.values[:, 1:].tolist() == first.targets.values[:, :-1].tolist()
    torch.testing.assert_close(objective(model, drawn, 0.2).total, CrossEntropy()(model, first, 0.2).total)
    objective.eval()
    torch.testing.assert_close(objective(model, drawn, 0.9).total, CrossEntropy()(model, batch, 0.9).total)


def test_sets_match_in_any_order_with_equal_counts():
    found = set_match(["a b a", "c d", ""], [["a a b"], ["c e", "c"], ["x"]])
    assert found == pytest.approx({"set_match": 100 / 3, "set_f1": 100 * (1 + 2 / 3 + 0) / 3})
    assert set_match([[3, 1]], [[[1, 3]]])["set_match"] == 100
