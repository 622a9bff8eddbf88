"""How long a training lasts and what happens when: numbers that follow from its settings and its state alone."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.config.settings import Settings
from seqloom.train.schedule import TrainingSchedule
from seqloom.train.state import Budget, TrainingState


def schedule(
    batches: int = 10, so_far: float = 0.0, state: dict[str, Any] | None = None, **settings: Any
) -> TrainingSchedule:
    """Of a training with so many batches an epoch that has come so many epochs far."""
    fake: Any = SimpleNamespace(plan_of=lambda epoch: range(batches), plan=range(batches), epochs=so_far)
    return TrainingSchedule(Settings(**settings), TrainingState(**(state or {})), fake)


@pytest.mark.parametrize(
    ("settings", "updates"),
    [
        ({}, 200),  # twenty epochs
        ({"steps": 7}, 7),
        ({"epochs": 1.5}, 15),
        ({"epochs": 1.5, "accumulate": 4}, 5),  # three updates an epoch
        ({"epochs": 0.01}, 1),
        ({"epochs": 2, "steps": 12}, 12),
        ({"epochs": 2, "steps": 30}, 20),
        ({"minutes": 3}, None),
        ({"minutes": 3, "steps": 4}, 4),
    ],
)
def test_the_nearest_limit_says_how_many_updates_there_are(settings: dict[str, Any], updates: int | None) -> None:
    assert schedule(**settings).total_updates() == updates


@pytest.mark.parametrize(
    ("settings", "state", "epochs", "progress"),
    [
        ({"steps": 40}, {"step": 10}, 0.0, 0.25),
        ({"steps": 40}, {"step": 50}, 0.0, 1.0),
        ({"epochs": 4}, {}, 1.0, 0.25),
        ({}, {}, 5.0, 0.25),
        ({"steps": 40, "epochs": 4}, {"step": 10}, 3.0, 0.75),
        ({"minutes": 2}, {"seconds": 30}, 0.0, 0.25),
        ({"minutes": 2, "steps": 40}, {"seconds": 100, "step": 10}, 0.0, 0.25),  # time does not count
    ],
)
def test_progress_is_that_of_the_nearest_limit(
    settings: dict[str, Any], state: dict[str, Any], epochs: float, progress: float
) -> None:
    assert schedule(so_far=epochs, state=state, **settings).progress() == pytest.approx(progress)


@pytest.mark.parametrize(
    ("settings", "state", "epochs", "reason"),
    [
        ({"steps": 5}, {"step": 4}, 0.0, ""),
        ({"steps": 5}, {"step": 5}, 0.0, "steps"),
        ({"epochs": 2}, {"step": 99}, 1.9, ""),
        ({"epochs": 2}, {"step": 99}, 2.0, "epochs"),
        ({}, {}, 19.9, ""),
        ({}, {}, 20.0, "epochs"),
        ({"steps": 9, "patience": 3}, {"stale": 2}, 0.0, ""),
        ({"steps": 9, "patience": 3}, {"stale": 3}, 0.0, "patience"),
        ({"steps": 9}, {"stale": 30}, 0.0, ""),
        ({"minutes": 1}, {"seconds": 59}, 0.0, ""),
        ({"minutes": 1}, {"seconds": 60}, 0.0, "minutes"),
        ({"minutes": 1}, {"seconds": 49, "budget": Budget(1, 5, 5, 9)}, 0.0, ""),
        ({"minutes": 1}, {"seconds": 50, "budget": Budget(1, 5, 5, 9)}, 0.0, "minutes"),  # time for the validation
        ({"minutes": 1, "average": 2}, {"seconds": 45, "budget": Budget(1, 5, 5, 9)}, 0.0, "minutes"),  # for two
        ({"minutes": 1, "average": 2}, {"seconds": 44, "budget": Budget(1, 5, 5, 9)}, 0.0, ""),
    ],
)
def test_the_first_limit_that_is_reached_ends_it(
    settings: dict[str, Any], state: dict[str, Any], epochs: float, reason: str
) -> None:
    assert schedule(so_far=epochs, state=state, **settings).reason_to_stop() == reason


def test_validations_and_checkpoints_are_due_by_updates_or_at_the_end_of_an_epoch() -> None:
    assert [schedule(state={"step": step}, validate_every=4).validation_is_due() for step in (3, 4, 8)] == [0, 1, 1]
    assert [schedule(state={"step": 5, "batch": batch}).validation_is_due() for batch in (0, 5)] == [True, False]
    assert not schedule(state={"step": 8, "batch": 0}, validate_every=5).validation_is_due()
    assert [schedule(state={"step": step}, checkpoint_every=3).checkpoint_is_due() for step in (3, 4)] == [True, False]
    assert not schedule(state={"step": 3}).checkpoint_is_due()


def test_the_learning_rate_is_a_share_of_the_highest() -> None:
    given = {"learning_rate": 0.4, "warmup": 4}
    for name, state, progress, share in (
        ("constant", {"step": 1}, 0.0, 1 / 4),
        ("constant", {"step": 9}, 0.5, 1.0),
        ("cosine", {"step": 2}, 0.5, 1 / 4),
        ("cosine", {"step": 9}, 2 / 3, 1 / 4),
        ("rsqrt", {"step": 16}, 0.5, 1 / 2),
        ("plateau", {"step": 2, "halvings": 2}, 0.5, 1 / 8),
        ("quarters", {"step": 2}, 0.6, 1 / 8),
    ):
        assert schedule(schedule=name, state=state, **given).learning_rate(progress) == pytest.approx(0.4 * share), name


# -- keeping to minutes


def budgeted(
    step: int, seconds: float, /, *, minutes: float = 10, steps: int = 100, **changes: Any
) -> TrainingSchedule:
    """A training of ten minutes, planned as 100 updates, that validates only at its end."""
    budget = Budget(**{"minutes": 10, "preparation": 0, "validation": 0, "longest": 150, **changes})
    state = {"step": step, "seconds": seconds, "budget": budget}
    return schedule(1000, state=state, minutes=minutes, steps=steps, validate_every=1000)


@pytest.mark.parametrize(
    ("step", "seconds", "steps"),
    [
        (10, 60, 100),  # six seconds an update, as planned
        (10, 66, 89),  # 534 seconds are left, for 79 updates of 6.6 seconds
        (10, 120, 49),  # 480 seconds are left, for 39 updates of 12 seconds
        (10, 30, 150),  # 570 seconds are left, for many of 3 seconds: the most that the data needs
        (10, 45, 130),  # 555 seconds are left, for 120 of 4.5 seconds
        (11, 120, 100),  # not asked again before the next tenth
        (2, 120, 100),  # too early to know
    ],
)
def test_a_training_that_would_miss_its_minutes_gets_other_updates(step: int, seconds: float, steps: int) -> None:
    plan = budgeted(step, seconds)
    said = plan.keep_to_time()
    assert plan.steps == plan.total_updates() == steps
    assert bool(said) == (steps != 100)
    if said:
        speed = "slower" if steps < 100 else "faster"
        assert said == f"Training is {speed} than measured: {steps} updates instead of 100 in 10 minutes."


def test_small_deviations_change_nothing() -> None:
    """Within seven hundredths of the minutes, or of the updates."""
    assert not budgeted(10, 62).keep_to_time()  # ends 20 seconds late
    assert not budgeted(90, 540).keep_to_time()
    assert not budgeted(90, 580).keep_to_time()  # seven updates too many for the 20 seconds that are left
    late = budgeted(90, 590)  # nine too many
    assert late.keep_to_time().startswith("Training is slower")
    assert late.steps == 91


def test_only_updates_since_the_last_check_are_measured_without_validations() -> None:
    plan = budgeted(20, 250, step=10, seconds=100, validating=50)
    assert plan.keep_to_time()  # 200 seconds of updates, of which 100 for the last ten; 350 are left
    assert plan.steps == 20 + int(350 * 0.98 / 10)
    budget = plan.state.budget
    assert budget is not None
    assert (budget.step, budget.seconds) == (20, 200)
    assert not plan.keep_to_time()  # of this update it was asked already


def test_time_is_left_for_validations() -> None:
    state = {"step": 10, "seconds": 120, "budget": Budget(10, 30, 15, 150)}
    plan = schedule(1000, state=state, minutes=10, steps=100, validate_every=30)
    assert plan.keep_to_time()
    left = 600 - (120 + 30) - 15 - 3 * 15  # spent, for the last validation, for those after 30, 60 and 90 updates
    assert plan.steps == 10 + int(left * 0.98 / 12)


def test_other_minutes_after_a_resume_are_kept_at_once() -> None:
    plan = budgeted(15, 90, minutes=5, step=10, seconds=60)
    assert plan.keep_to_time()
    assert plan.steps == 15 + int((300 - 90) * 0.98 / 6)
    assert not budgeted(15, 90, step=10, seconds=60).keep_to_time()


def test_without_a_budget_or_minutes_or_steps_nothing_is_changed() -> None:
    late = {"step": 10, "seconds": 500.0}
    assert not schedule(state={**late, "budget": Budget(10, 0, 0, 150)}, minutes=10).keep_to_time()
    assert not schedule(state={**late, "budget": Budget(10, 0, 0, 150)}, steps=100).keep_to_time()
    assert not schedule(state=late, minutes=10, steps=100).keep_to_time()


def test_a_plan_made_instead_of_other_steps_no_longer_counts() -> None:
    changed = Budget(10, 0, 0, 150, planned=60, instead_of=100)
    assert schedule(state={"budget": changed}, minutes=10, steps=100).steps == 60
    assert schedule(state={"budget": changed}, minutes=10, steps=200).steps == 200  # resumed with others
    assert schedule(state={"budget": Budget(10, 0, 0, 150)}, minutes=10, steps=100).steps == 100


# -- the best validations


def test_the_best_validations_are_kept_and_those_without_gain_counted() -> None:
    state = TrainingState()
    gains = []
    for step, value in enumerate((3.0, 2.0, 4.0, math.nan, 4.0, 5.0), 1):
        state.step = step
        gains.append(state.add_validation({"loss": 9.0 - step}, value, sign=1.0, keep=2))
    assert gains == [True, False, True, False, True, True]  # of equals the lower loss
    assert [entry["step"] for entry in state.best] == [6, 5]
    assert (state.stale, state.halvings, state.validated) == (0, 2, 6)
    state.step = 7
    assert not state.add_validation({"loss": 0.0}, -math.inf, sign=1.0, keep=2)
    assert (state.stale, state.halvings, state.validated) == (1, 3, 7)
    assert [entry["step"] for entry in state.best] == [6, 5]


def test_lower_may_be_better_and_of_equals_the_earlier_stays() -> None:
    state = TrainingState()
    gains = []
    for step, value in enumerate((3.0, 2.0, 2.0, 4.0), 1):
        state.step = step
        gains.append(state.add_validation({"accuracy": 1.0}, value, sign=-1.0, keep=3))
    assert gains == [True, True, False, False]
    assert [entry["step"] for entry in state.best] == [2, 3, 1]
