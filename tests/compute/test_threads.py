"""The number of threads: measured, unless it is given."""

import pytest
import torch

from seqloom.compute import threads


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def takes(monkeypatch, seconds):
    """Measured times of each number of threads."""
    monkeypatch.setattr(threads, "seconds_with", seconds.__getitem__)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({1: 1.0, 2: 0.6, 4: 0.4}, 4),
        ({1: 1.0, 2: 0.6, 4: 0.55}, 2),  # hardly faster than two
        ({1: 1.0, 2: 1.4, 4: 3.0}, 1),  # they wait for each other
        ({1: 1.0, 2: 0.95, 4: 0.5}, 4),
    ],
)
def test_more_are_taken_only_if_they_are_faster(monkeypatch, seconds, expected):
    takes(monkeypatch, seconds)
    assert threads.fastest_count(4) == expected
    assert threads.fastest_count(1) == 1


def test_what_is_wanted_comes_before_what_was_and_both_before_a_measurement(monkeypatch):
    takes(monkeypatch, {1: 1.0, 2: 5.0})
    monkeypatch.setattr(threads, "available_processors", lambda: 2)
    assert threads.choose_threads(wanted=2, before=1) == 2
    assert threads.choose_threads(before=2) == 2
    assert threads.choose_threads() == 1


def test_the_environment_variable_counts(monkeypatch):
    takes(monkeypatch, {})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.choose_threads() == torch.get_num_threads()


def test_the_measurement_itself_is_short():
    assert 0 < threads.seconds_with(1) < 5
    assert threads.fastest_count(2) in (1, 2)
