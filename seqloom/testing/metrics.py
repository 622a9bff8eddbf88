"""What holds for every metric, on pairs of a source and a target."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from seqloom.errors import SeqloomError
from seqloom.testing.claims import NotAsked, require

Pairs = Sequence[tuple[Any, Any]]
TEXTS: Pairs = [
    ("a b c", "the old loom"),
    ("d e f", "a quick shuttle"),
    ("g h i", "warp and weft"),
    ("j k l", "cloth of wool"),
]
VECTORS: Pairs = [([0.0], [[0.5, 1.0]]), ([1.0], [[0.0, -1.0]]), ([2.0], [[2.0, 0.25]]), ([3.0], [[1.0, 1.0]])]


class Metric:
    """A function (predictions, references), perhaps with sources, and what its file says of it."""

    def __init__(self, function: Callable[..., dict[str, float]]):
        self.function, self.name = function, function.__name__
        home = sys.modules[function.__module__]
        if not hasattr(home, "HIGHER_IS_BETTER"):
            raise SeqloomError(f"{self.name}: the file of a metric sets HIGHER_IS_BETTER = True or False")
        self.sign = 1 if home.HIGHER_IS_BETTER else -1
        self.rewards = getattr(home, "rewards", None)
        self.examples: Pairs = VECTORS if getattr(home, "COMPARES", "symbols") == "vectors" else TEXTS

    def __call__(
        self, predictions: Sequence[Any], references: Sequence[Any], sources: Sequence[Any]
    ) -> dict[str, float]:
        given = {"sources": list(sources)} if "sources" in signature(self.function).parameters else {}
        return self.function(list(predictions), [list(choices) for choices in references], **given)

    def worth(self, predictions: Sequence[Any], references: Sequence[Any], sources: Sequence[Any]) -> float:
        """The figure of its name, turned so that more is better."""
        return self.sign * self(predictions, references, sources)[self.name]


def it_returns_finite_numbers_and_one_under_its_own_name(metric: Metric, pairs: Pairs) -> None:
    found = metric(_wrong(pairs), _references(pairs), _sources(pairs))
    require(
        isinstance(found, dict) and metric.name in found, f'it returns {found!r}, not a dictionary with "{metric.name}"'
    )
    numbers = all(isinstance(value, (int, float)) and math.isfinite(value) for value in found.values())
    require(numbers, f"some figures are not finite numbers: {found}")


def nothing_is_better_than_a_perfect_prediction(metric: Metric, pairs: Pairs) -> None:
    perfect, wrong = (
        metric.worth(each, _references(pairs), _sources(pairs)) for each in (_right(pairs), _wrong(pairs))
    )
    said = f"HIGHER_IS_BETTER = {metric.sign > 0}, but right outputs measure {metric.sign * perfect:g}"
    require(perfect >= wrong - 1e-9, f"{said} and wrong ones {metric.sign * wrong:g}")


def the_order_of_examples_does_not_matter(metric: Metric, pairs: Pairs) -> None:
    order = list(reversed(range(len(pairs))))
    given = (_half(pairs), _references(pairs), _sources(pairs))
    found, turned = metric.worth(*given), metric.worth(*([each[place] for place in order] for each in given))
    require(
        math.isclose(found, turned, rel_tol=1e-9, abs_tol=1e-9), f"other order, other figure: {found:g} and {turned:g}"
    )


def a_further_reference_that_fits_makes_nothing_worse(metric: Metric, pairs: Pairs) -> None:
    outputs, more = _wrong(pairs), [[*each, output] for each, output in zip(_references(pairs), _wrong(pairs))]
    one, several = (metric.worth(outputs, each, _sources(pairs)) for each in (_references(pairs), more))
    said = f"outputs that equal one of two references measure {metric.sign * several:g}, with the other one alone"
    require(several >= one - 1e-9, f"{said} {metric.sign * one:g}: the best reference must count")


def nothing_it_was_given_is_changed(metric: Metric, pairs: Pairs) -> None:
    given = (_half(pairs), _references(pairs), _sources(pairs))
    before = copy.deepcopy(given)
    metric(*given)
    require(repr(before) == repr(given), "predictions or references are changed")


def rewards_are_one_number_per_output_and_highest_where_it_is_right(metric: Metric, pairs: Pairs) -> None:
    if metric.rewards is None:
        raise NotAsked("its file has no function rewards")
    right, wrong = [str(target).split() for target in _right(pairs)], [str(target).split() for target in _wrong(pairs)]
    best, other = (np.asarray(metric.rewards(each, right)) for each in (right, wrong))
    require(best.shape == (len(pairs),), f"rewards have shape {best.shape}, not (N,) {(len(pairs),)}")
    require((best >= other).all(), "a wrong output has a higher reward than a right one")


def _right(pairs: Pairs) -> list[Any]:
    return [target for _, target in pairs]


def _wrong(pairs: Pairs) -> list[Any]:
    """Each source gets the target of the next."""
    return [*_right(pairs)[1:], _right(pairs)[0]]


def _half(pairs: Pairs) -> list[Any]:
    return [*_right(pairs)[:2], *_wrong(pairs)[2:]]


def _references(pairs: Pairs) -> list[list[Any]]:
    return [[target] for _, target in pairs]


def _sources(pairs: Pairs) -> list[Any]:
    return [source for source, _ in pairs]
