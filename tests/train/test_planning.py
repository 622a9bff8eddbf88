"""Which keys of a recipe are changed for the data, and which are left alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seqloom.config.budget import Speed
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.train.planning import Planning, announcement, dotted, needed_updates
from seqloom.train.state import Budget

PAIRS = [(f"a {number}", f"b {number}") for number in range(4000)]
NAME = "multi30k-transformer"


def sizes(settings: list[str] | dict[str, Any] = (), recipe: Any = NAME, **given: Any) -> tuple[int, int]:  # type: ignore[assignment]
    full = complete(read_recipe(NAME), NAME)
    fitted = Planning(recipe, read_recipe(NAME), settings, **given).fit_vocabulary(full, PAIRS)
    return fitted["task"]["source"]["size"], fitted["task"]["target"]["size"]


def test_a_vocabulary_of_pieces_is_fitted_to_the_number_of_examples() -> None:
    before = complete(read_recipe(NAME), NAME)["task"]
    assert min(before["source"]["size"], before["target"]["size"]) > 1000
    assert sizes() == (1000, 1000)


def test_what_was_set_by_hand_or_is_ones_own_or_is_to_stay_as_written_stays() -> None:
    task = complete(read_recipe(NAME), NAME)["task"]
    assert sizes(["task.source.size=3000"]) == (task["source"]["size"], 1000)  # the recipe has the value already
    written = (task["source"]["size"], task["target"]["size"])
    assert sizes(as_written=True) == written
    assert sizes(["init=runs/other"]) == written
    assert sizes(recipe=read_recipe(NAME)) == written
    assert sizes(recipe="mine.toml") == written


@pytest.mark.parametrize(
    ("train", "updates"),
    [
        ({}, 200),
        ({"epochs": 1.5}, 15),
        ({"steps": 7}, 7),
        ({"steps": 70, "epochs": 2}, 20),
        ({"steps": 7, "epochs": 2}, 7),
        ({"epochs": 0.001}, 1),
    ],
)
def test_the_limits_say_how_many_updates_are_needed(train: dict[str, Any], updates: int) -> None:
    assert needed_updates({"tokens": 64, **train}, lambda tokens: 640 // tokens) == updates


def test_keys_are_dotted() -> None:
    assert [*dotted({"a": 1, "b": {"c": 2, "d": {"e": 3}}})] == ["a", "b.c", "b.d.e", "b.d", "b"]


def test_a_training_that_needs_less_than_its_minutes_says_so() -> None:
    recipe = override(complete(read_recipe("dates"), "dates"), ["train.minutes=10", "train.steps=100"])
    data = SimpleNamespace(train=SimpleNamespace(lengths=np.array([[5, 6], [7, 8]])), valid=[])
    plan = Budget(minutes=10, preparation=1, validation=0, longest=100)
    ready: Any = SimpleNamespace(
        recipe=recipe, budget=plan, data=data, task=SimpleNamespace(source=object(), running=False)
    )

    def said(budget: Budget, seconds: float) -> bool:
        ready.budget = budget
        lines = announcement(ready, Speed(update=seconds, validation=0.0, tokens=1.0), 100, lambda tokens: 10**6)
        assert "100 updates" in lines[0]
        assert "longest source 7, longest target 8 tokens." in lines[0]
        return "The data needs no more than that of the 10 minutes: set train.epochs for more." in lines

    assert said(plan, seconds=1.0)
    assert not said(plan, seconds=5.9)
    assert not said(replace(plan, longest=101), seconds=1.0)
