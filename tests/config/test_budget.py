"""A recipe fitted to data and time: arithmetic over a grid of sizes and minutes."""

import math

import pytest

from seqloom.config import budget
from seqloom.config.budget import Speed, fit_to_data, fit_to_time, fit_vocabulary
from seqloom.config.recipes import override

SIZES = [10**power for power in range(2, 8)]
MADE_FOR = 29_000
LENGTH = 15  # tokens of an example


def recipe(**train):
    train = {"tokens": 2048, "warmup": 1000, "validate_every": 0, "made_for": MADE_FOR, "average": 5, **train}
    part = {"type": "transformer", "size": 256, "hidden": 1024, "dropout": 0.1}
    codec = {"type": "text", "units": "bpe", "size": 8000}
    return {"train": train, "encoder": part, "decoder": dict(part), "task": {"source": codec, "target": dict(codec)}}


def per_epoch(size):
    return lambda tokens: max(math.ceil(size * LENGTH / tokens), 1)


def fitted(size, by_hand=(), **train):
    written = recipe(**train)
    return override(written, fit_to_data(written, size, per_epoch(size), by_hand))


@pytest.mark.parametrize("size", SIZES)
def test_every_size_of_data_gets_a_sensible_training(size):
    found = fitted(size, epochs=16)
    train = found["train"]
    steps, epochs = train["steps"], train["steps"] / per_epoch(size)(train["tokens"])
    assert "epochs" not in train
    assert epochs <= budget.MOST_EPOCHS + 1
    assert steps >= budget.UPDATES or train["tokens"] == budget.FEWEST_TOKENS
    assert 256 <= train["tokens"] <= 2048
    assert train["warmup"] <= math.ceil(steps / 10)
    assert 0.1 <= found["encoder"]["dropout"] <= 0.5
    validations = steps / (train["validate_every"] or per_epoch(size)(train["tokens"]))
    assert 2 <= validations <= 21


def test_more_data_never_means_less_training():
    steps = [fitted(size, epochs=16)["train"]["steps"] * fitted(size, epochs=16)["train"]["tokens"] for size in SIZES]
    assert steps == sorted(steps)


def test_four_times_the_data_gets_twice_the_updates():
    own = 16 * per_epoch(MADE_FOR)(2048)
    assert fitted(4 * MADE_FOR, epochs=16)["train"]["steps"] == pytest.approx(2 * own, rel=0.01)


@pytest.mark.parametrize("size", [24_000, 29_000, 36_000])
def test_data_of_the_size_it_was_written_for_changes_nothing(size):
    assert fit_to_data(recipe(epochs=16), size, per_epoch(size), ()) == {}


def test_a_recipe_for_any_number_of_examples_changes_nothing():
    assert fit_to_data(recipe(epochs=16, made_for=0), 100, per_epoch(100), ()) == {}


@pytest.mark.parametrize(("written", "found"), [(0.0, 0.0), (0.1, 0.2), (0.45, 0.5), (0.6, 0.6)])
def test_less_data_gets_more_dropout_where_there_is_any(written, found):
    changes = budget.regularise({"dropout": written}, "encoder", 0.3)
    assert changes.get("encoder.dropout", written) == found


def test_keys_that_were_set_by_hand_stay():
    by_hand = {"train.epochs", "train.tokens", "encoder.dropout"}
    found = fitted(2_000, by_hand, epochs=3)
    assert found["train"]["epochs"] == 3
    assert found["train"]["tokens"] == 2048
    assert "steps" not in found["train"]
    assert found["train"]["warmup"] == math.ceil(0.1 * 3 * per_epoch(2_000)(2048))
    assert found["encoder"]["dropout"] == 0.1
    assert found["decoder"]["dropout"] > 0.1


@pytest.mark.parametrize("size", [100, MADE_FOR])
def test_steps_set_by_hand_are_not_ended_by_the_epochs_of_the_recipe(size):
    changes = fit_to_data(recipe(epochs=16, steps=9_000), size, per_epoch(size), {"train.steps"})
    assert changes["train.epochs"] is None
    assert "train.steps" not in changes


def test_steps_of_a_recipe_scale_like_epochs():
    own = 16 * per_epoch(MADE_FOR)(2048)
    assert fitted(10**6, steps=own)["train"]["steps"] == pytest.approx(
        fitted(10**6, epochs=16)["train"]["steps"], rel=0.01
    )


def test_batches_whose_size_the_task_fixes_are_not_halved():
    written = recipe(epochs=2)
    changes = fit_to_data(written, 1_000, lambda tokens: 8, ())
    assert "train.tokens" not in changes
    assert changes["train.steps"] <= 300 * 8


def test_very_little_data_gets_half_of_the_width():
    assert fitted(400, epochs=16)["encoder"]["size"] == 128
    assert fitted(400, epochs=16)["decoder"]["hidden"] == 512
    assert fitted(4_000, epochs=16)["encoder"]["size"] == 256


def test_pieces_of_words_are_a_quarter_of_the_examples():
    assert fit_vocabulary(recipe(), 8_000) == {"task.source.size": 2_000, "task.target.size": 2_000}
    assert fit_vocabulary(recipe(), 10)["task.source.size"] == 500
    assert fit_vocabulary(recipe(), 10**6) == {}


@pytest.mark.parametrize("minutes", [1, 2, 4, 10, 60, 600])
@pytest.mark.parametrize("update", [0.003, 0.05, 1.5])
@pytest.mark.parametrize("validation", [0.0, 0.4, 6.0])
def test_updates_and_validations_fill_the_minutes_and_no_more(minutes, update, validation):
    train = recipe(epochs=16)["train"]
    changes = fit_to_time(train, 10**9, Speed(update, 1.0, validation), 60 * minutes)
    steps = changes["train.steps"]
    validations = math.floor(steps / changes["train.validate_every"]) + 1
    spent = steps * update + (validations + 1) * validation  # the average is validated, too
    assert spent <= 60 * minutes + max(2 * validation, update)
    assert spent >= 0.8 * 60 * minutes or steps == 1
    assert changes["train.warmup"] <= math.ceil(steps / 10)
    assert changes["train.validate_every"] <= steps


def test_more_time_than_the_data_needs_is_not_used():
    assert fit_to_time(recipe()["train"], 5_000, Speed(0.01, 1.0, 0.1), 36_000)["train.steps"] == 5_000


@pytest.mark.parametrize(("seconds", "expected"), [(10_000, 2048), (100, 1024), (60, 512), (1, 512)])
def test_a_short_time_gets_smaller_batches(seconds, expected):
    assert budget.smaller_batch(recipe()["train"], Speed(0.08, 1.0, 0.1), seconds, 2_000) == expected
