"""The number of threads: measured, unless it is given."""

import pytest
import torch

from seqloom.compute import memory, processors, threads
from seqloom.errors import SeqloomError
from seqloom.storage.environment import stored_threads


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


def test_more_threads_than_can_be_started_are_refused_or_not_remembered(monkeypatch, tmp_path):
    monkeypatch.setattr(processors, "available_processors", lambda: 2)
    with pytest.raises(SeqloomError, match=r"threads = 100000: expected a number from 0 to 64; this machine has 2"):
        threads.choose_threads(100_000)
    for stored, expected in ((2, 2), (128, 0)):
        (tmp_path / "environment.json").write_text(f'{{"threads": {stored}}}')
        assert stored_threads(tmp_path) == expected
    for wrong in ('"many"', "100000", "-1"):
        (tmp_path / "environment.json").write_text(f'{{"threads": {wrong}}}')
        with pytest.raises(SeqloomError, match=r"environment.json: threads = .*: expected a number from 1"):
            stored_threads(tmp_path)


def test_the_memory_of_a_container_counts(monkeypatch, tmp_path):
    limit, none = tmp_path / "memory.max", tmp_path / "no file"
    monkeypatch.setattr(memory, "CGROUPS", (limit, none))
    limit.write_text("max\n")
    whole = memory.memory_limit()
    assert whole > 2**28
    limit.write_text("1000\n")
    assert memory.memory_limit() == 1000
