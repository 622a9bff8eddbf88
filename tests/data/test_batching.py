"""Batching: every example once, within the budget, with little padding, the same plan for the same arguments."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.batching import in_order, plan
from seqloom.data.codecs.text import Text
from seqloom.errors import SeqloomError
from seqloom.tasks.pairs import Pairs


def sentences(count):
    """Lengths as translation corpora have them: log-normal, the two sides alike."""
    generator = np.random.default_rng(0)
    source = np.clip(np.exp(generator.normal(3.1, 0.6, count)), 1, 250)
    target = np.clip(source * np.exp(generator.normal(0, 0.2, count)), 1, 250)
    return np.stack([source, target], axis=1).astype(np.int32)


def width(lengths):
    return np.maximum(lengths[:, 0], lengths[:, 1] + 1)


def batches_of(kind, lengths, tokens):
    return plan(lengths, tokens, 1, 0) if kind == "plan" else in_order(lengths, tokens)


def batches_list(of):
    return [of[index].tolist() for index in range(len(of))]


@pytest.mark.parametrize("kind", ["plan", "in_order"])
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60), st.integers(1, 100))
def test_every_example_comes_once_and_within_the_budget(kind, pairs, tokens):
    lengths = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    batches = batches_list(batches_of(kind, lengths, tokens))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * width(lengths[batch]).max() <= tokens


def test_a_batch_takes_as_many_rows_as_fit():
    lengths = np.full((100, 2), 9, dtype=np.int32)  # ten columns each
    assert sorted(len(batch) for batch in batches_list(plan(lengths, 100, 0, 0))) == [10] * 10
    first, last, *others = sorted(len(batch) for batch in batches_list(plan(lengths, 99, 0, 0)))
    assert first + last == 10  # the first takes a part of what it could, the last what is left
    assert others == [9] * 10


def test_an_example_beyond_the_budget_is_a_batch_alone():
    lengths = np.array([[3, 3], [500, 2], [3, 3]], dtype=np.int32)
    assert sorted(map(sorted, batches_list(plan(lengths, 100, 0, 0)))) == [[0, 2], [1]]


def test_the_plan_depends_on_seed_and_epoch_and_nothing_else():
    lengths = sentences(2000)
    first = batches_list(plan(lengths, 1000, 7, 3))
    np.random.seed(5)  # a plan must not read it
    assert batches_list(plan(lengths.copy(), 1000, 7, 3)) == first
    assert batches_list(plan(lengths, 1000, 8, 3)) != first
    assert batches_list(plan(lengths, 1000, 7, 4)) != first


def test_another_epoch_brings_other_examples_together():
    lengths = sentences(2000)
    first, second = ({frozenset(batch) for batch in batches_list(plan(lengths, 1000, 7, epoch))} for epoch in (0, 1))
    assert len(first & second) < len(first) / 4


def test_long_and_short_batches_come_mixed():
    lengths = sentences(20_000)
    order = [width(lengths[batch]).max() for batch in batches_list(plan(lengths, 2000, 1, 0))]
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.2


def test_validation_goes_from_short_to_long():
    lengths = sentences(2000)
    longest = [width(lengths[batch]).max() for batch in batches_list(in_order(lengths, 1000))]
    assert longest == sorted(longest)


@pytest.mark.parametrize("kind", ["plan", "in_order"])
def test_little_of_a_batch_is_padding(kind):
    lengths = sentences(50_000)
    batches = batches_list(batches_of(kind, lengths, 4096))
    real = lengths.sum() + len(lengths)
    padded = sum(len(batch) * (lengths[batch, 0].max() + lengths[batch, 1].max() + 1) for batch in batches)
    assert 1 - real / padded < 0.08


def test_a_million_examples_are_planned_in_seconds():
    lengths = sentences(1_000_000)
    begin = time.process_time()
    assert len(plan(lengths, 4096, 1, 0).rows) == 1_000_000
    assert time.process_time() - begin < 5


# -- curricula


def test_the_first_epochs_of_a_curriculum_have_short_targets_only_and_as_many_batches():
    lengths = sentences(3000)
    task = Pairs(target=Text(), curriculum=(10, 20, 0))
    whole = len(plan(lengths, 2000, 1, 0))
    for epoch, longest in enumerate((10, 20)):
        found = task.plan(lengths, 2000, 1, epoch)
        rows, counts = np.unique(found.rows, return_counts=True)
        assert len(found) == whole
        assert lengths[found.rows, 1].max() == longest
        assert set(rows) == set(np.flatnonzero(lengths[:, 1] <= longest))  # each of them
        assert counts.max() - counts.min() <= 2  # equally often, but for the last round
        for batch in batches_list(found):
            assert len(batch) * width(lengths[batch]).max() <= 2000
    for epoch in (2, 3):
        assert batches_list(task.plan(lengths, 2000, 1, epoch)) == batches_list(plan(lengths, 2000, 1, epoch))


def test_a_curriculum_shorter_than_every_target_is_refused():
    lengths = np.full((5, 2), 9, dtype=np.int32)
    with pytest.raises(SeqloomError, match=r"task.curriculum: no target has 8 tokens or fewer; the shortest has 9"):
        Pairs(target=Text(), curriculum=(8,)).plan(lengths, 100, 1, 0)
    with pytest.raises(ValueError, match=r"curriculum = \[-1\]"):
        Pairs(target=Text(), curriculum=(-1,))
