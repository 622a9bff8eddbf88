"""Latency against closed forms and hand-worked cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import SeqloomError
from seqloom.metrics.latency import average_lagging, average_proportion, consecutive_wait, latency, mean_delay

sizes = st.integers(1, 20)


def wait_k(wait: int, length: int, outputs: int) -> list[int]:
    return [min(wait + place, length) for place in range(outputs)]


@given(sizes, sizes)
def test_who_reads_all_first_has_a_proportion_of_one_and_lags_by_the_whole_source(length, outputs):
    times = [length] * outputs
    assert average_proportion(times, length) == 1
    assert average_lagging(times, length) == length
    assert consecutive_wait(times, length) == length
    assert mean_delay(times, length) == length


@given(sizes, sizes)
def test_wait_k_lags_by_k_where_lengths_are_equal(wait, length):
    wait = min(wait, length)
    times = wait_k(wait, length, length)
    assert average_lagging(times, length) == pytest.approx(wait)
    behind = length - wait  # so many outputs are followed by another input
    closed = (sum(range(wait, length)) + length * (length - behind)) / length**2
    assert average_proportion(times, length) == pytest.approx(closed)


@given(sizes, sizes, sizes)
def test_the_order_of_policies_is_that_of_their_waits(wait, length, outputs):
    less, more = (wait_k(each, length, outputs) for each in (wait, wait + 1))
    for measure in (average_proportion, average_lagging, mean_delay):
        assert measure(less, length) <= measure(more, length) + 1e-12


def test_a_hand_worked_case():
    times = [2, 2, 4]  # of four inputs: two read, two written, two read, one written
    assert average_proportion(times, 4) == pytest.approx(8 / 12)
    # r = 3/4, tau = 3: (2 - 0) + (2 - 4/3) + (4 - 8/3), a third of it
    assert average_lagging(times, 4) == pytest.approx((2 + 2 / 3 + 4 / 3) / 3)
    assert consecutive_wait(times, 4) == 2
    assert mean_delay(times, 4) == pytest.approx(8 / 3)


def test_lagging_stops_counting_once_all_is_read():
    # r = 5/2, tau = 2: what is written after the end of the source lags behind nothing
    assert average_lagging([1, 2, 2, 2, 2], 2) == pytest.approx((1 + (2 - 2 / 5)) / 2)


def test_an_output_that_ends_before_its_source_is_counted_whole():
    assert average_lagging([1, 2], 4) == pytest.approx((1 + (2 - 2)) / 2)
    assert consecutive_wait([1, 3], 4) == 1.5
    assert consecutive_wait([0, 0], 4) == 0


def test_a_corpus_has_the_mean_of_its_outputs_and_empty_ones_do_not_count():
    found = latency([[1, 2], [], [4, 4, 4]], [2, 3, 4])
    assert found == {
        "average_proportion": pytest.approx((0.75 + 1) / 2),
        "average_lagging": pytest.approx((1 + 4) / 2),
        "consecutive_wait": pytest.approx((1 + 4) / 2),
        "mean_delay": pytest.approx((1.5 + 4) / 2),
    }
    assert latency([[]], [3]) == {}


@pytest.mark.parametrize(
    ("times", "lengths", "words"),
    [
        ([[1]], [1, 2], "1 outputs but 2 sources"),
        ([[2, 1]], [2], "go back"),
        ([[1, 3]], [2], "expected 0 to 2"),
    ],
)
def test_times_that_cannot_be_are_refused(times, lengths, words):
    with pytest.raises(SeqloomError, match=words):
        latency(times, lengths)
