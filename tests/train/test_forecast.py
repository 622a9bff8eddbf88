"""What is announced before the first update: a sentence, and warnings where something will spoil the result."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from seqloom.config.budget import Speed
from seqloom.config.settings import Settings
from seqloom.data.batching import plan
from seqloom.data.special_tokens import UNK
from seqloom.train import forecast
from seqloom.train.forecast import (
    Forecast,
    measure_update,
    minutes_in_words,
    round_rate,
    spread,
    unknown_share,
    van_der_corput,
    warnings,
)

WELL = Forecast(1000, 2048, Speed(0.5, 12_345.0, 1.0), 1000, 600.0, 30, 40)


class Words:
    """A corpus whose sources and targets have these lengths, all of known tokens."""

    def __init__(self, *lengths: tuple[int, int], unknown: tuple[int, int] = (0, 0)) -> None:
        self.lengths, self.unknown = np.array(lengths), unknown

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The first so many tokens of the first example are unknown."""
        sides = [np.full(length, UNK + 4) for length in self.lengths[row]]
        for side, count in zip(sides, self.unknown):
            side[: count if row == 0 else 0] = UNK
        return sides[0], sides[1]


PLAIN: Any = Words(*[(10, 10)] * 5)


def warned(forecast: Forecast = WELL, train: Any = PLAIN, valid: Any = PLAIN, **settings: Any) -> list[str]:
    return warnings(forecast, Settings(**settings), train, valid)


def test_the_sentence_has_time_updates_speed_and_lengths() -> None:
    line = "About 10 minutes: 1,000 updates of 2,048 tokens at 12,000 tokens/s; "
    line += "longest source 30, longest target 40 tokens."
    assert WELL.line() == line
    unmeasured = Forecast(1, 10, None, 1, None, 0, 1500)
    assert unmeasured.line() == "1 update of 10 tokens; longest target 1,500 tokens."
    assert replace(unmeasured, longest_target=0).line() == "1 update of 10 tokens."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 seconds"),
        (89.0, "89 seconds"),
        (90.0, "2 minutes"),
        (7199.0, "120 minutes"),
        (7200.0, "2.0 hours"),
        (9000.0, "2.5 hours"),
    ],
)
def test_times_are_in_words(seconds: float, words: str) -> None:
    assert minutes_in_words(seconds) == words


def test_rates_have_two_digits() -> None:
    assert [round_rate(rate) for rate in (12_345.0, 987.0, 4.4)] == ["12,000", "990", "4"]


def test_a_training_that_is_well_is_not_warned_of() -> None:
    assert warned(warmup=100) == []


@pytest.mark.parametrize(("updates", "warmup", "said"), [(1000, 101, 0), (1000, 102, 1), (50, 21, 0), (50, 22, 1)])
def test_a_warm_up_of_more_than_a_tenth_is_warned_of_unless_it_is_short(updates: int, warmup: int, said: int) -> None:
    found = warned(replace(WELL, updates=updates), warmup=warmup)
    assert len(found) == said
    if found:
        expected = f"over {warmup} of {updates:,} updates: set train.warmup={updates // 10}, or train longer"
        assert expected in found[0]


def test_too_few_minutes_are_warned_of_with_those_that_would_do() -> None:
    few = replace(WELL, updates=400)
    assert warned(replace(WELL, updates=500), minutes=4, warmup=0) == []
    assert warned(few, warmup=0) == []  # nobody asked for minutes
    (line,) = warned(few, minutes=4, warmup=0)
    assert line.startswith("Warning: 400 updates are few: this recipe needs about 1,000 on this data; ")
    assert "--minutes 10," in line


def test_hours_are_announced_with_a_way_to_shorten_them() -> None:
    long = replace(WELL, seconds=7300.0)
    assert warned(long) == ["Warning: this will take 2.0 hours: limit it with --minutes 60."]
    assert warned(replace(WELL, seconds=7200.0)) == []
    assert warned(long, minutes=200) == []


@pytest.mark.parametrize(("side", "other"), [(0, 1), (1, 0)])
def test_an_example_far_longer_than_the_median_is_warned_of(side: int, other: int) -> None:
    name = ("source", "target")[side]
    lengths = [(10, 10)] * 4

    def corpus(longest: int, rest: list[tuple[int, int]] = lengths) -> Any:
        last = [10, 10]
        last[side] = longest
        return Words(*rest, (last[0], last[1]))

    assert warned(train=corpus(1000)) == []
    (line,) = warned(train=corpus(1001))
    assert line.startswith(f"Warning: the longest {name} has 1,001 tokens, 100 times the median")
    assert warned(train=corpus(1001, [(60, 60)] * 4)) == []  # not twenty times as long
    assert warned(train=corpus(5000, [])) == []  # alone


def test_unknown_tokens_are_counted_on_each_side_and_warned_of_above_a_fifth() -> None:
    few: Any = Words((10, 10), (10, 10), unknown=(4, 4))
    assert [unknown_share(few, side) for side in (0, 1)] == [0.2, 0.2]
    assert warned(valid=few) == []
    (line,) = warned(valid=Words((10, 10), (10, 10), unknown=(4, 5)))
    assert line.startswith("Warning: 25 % of the target tokens of the validation data are not in the vocabulary")
    (line,) = warned(valid=Words((10, 10), (10, 10), unknown=(5, 0)))
    assert "task.source.size" in line


def test_vectors_have_no_unknown_tokens_and_500_examples_are_enough() -> None:
    vectors: Any = [(np.ones((3, 2)), None)] * 4
    assert unknown_share(vectors, 0) == unknown_share(vectors, 1) == 0.0
    late: Any = [(np.full(1, 5), np.full(1, UNK if row >= 500 else 5)) for row in range(600)]
    assert unknown_share(late, 1) == 0.0


def test_batches_to_measure_are_spread_evenly_from_short_to_long() -> None:
    assert [van_der_corput(number) for number in range(1, 8)] == [0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]
    lengths = np.array([[0, length] for length in range(1, 33)])
    made = plan(lengths, 33, 1, 0)  # few examples a batch
    corpus: Any = SimpleNamespace(lengths=lengths)
    order = list(spread(made, corpus))
    widths = [int(lengths[made[number]].max()) for number in order]
    ranks = np.argsort(np.argsort(widths[1:])) / len(made)
    assert sorted(order[1:]) == list(range(len(made)))  # each once, after one to warm up
    assert len(made) > 8
    assert abs(ranks[0] - 0.5) < 0.1
    assert abs(ranks[1] - 0.25) < 0.1
    assert abs(ranks[2] - 0.75) < 0.1


class Steps:
    """A training, its batches and its optimiser, which count how often they are asked."""

    device, corpus = "cpu", PLAIN

    def __init__(self, count: int) -> None:
        self.made: list[int] = []
        self.plan = type("Windows", (), {"rows": np.zeros((count, 1)), "__len__": lambda plan: count})()

    def make(self, epoch: int, number: int) -> Any:
        self.made.append(number)
        batch = SimpleNamespace(targets=SimpleNamespace(lengths=np.array([3, 4])))
        batch.to = lambda device: batch
        return batch

    def __call__(self, *given: Any) -> Any:
        return SimpleNamespace(total=torch.zeros((), requires_grad=True))

    def nothing(self, *given: Any) -> None:
        pass

    start = train = seed_random_numbers = scale_and_clip = step = clear_gradients = nothing


@pytest.mark.parametrize(("seconds", "most", "made"), [(0.0, 1000, 3), (60.0, 1000, 9), (60.0, 4, 5), (60.0, 1, 3)])
def test_speed_is_measured_on_two_batches_at_least_after_one_that_does_not_count(
    monkeypatch: pytest.MonkeyPatch, seconds: float, most: int, made: int
) -> None:
    steps: Any = Steps(9)
    monkeypatch.setattr(forecast, "NamedOptimiser", lambda training, settings: steps)
    measure_update(steps, steps, Settings(), seconds, most)
    assert len(steps.made) == made
