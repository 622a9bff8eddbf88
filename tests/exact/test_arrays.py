"""What numpy and torch spell differently: both spellings mean the same."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from seqloom import arrays

numbers = st.floats(-50, 50, width=32) | st.just(float("-inf"))
matrices = arrays_of.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=numbers)


@settings(max_examples=200, deadline=None)
@given(values=matrices, data=st.data())
def test_the_largest_are_those_of_torch_best_first_and_at_their_places(values, data):
    count = data.draw(st.integers(1, values.shape[1]))
    expected = torch.from_numpy(values).topk(count, dim=1).values.numpy()
    for array in (values, torch.from_numpy(values)):
        best, places = (np.asarray(each) for each in arrays.topk(array, count))
        assert np.array_equal(best, expected)
        assert np.array_equal(np.take_along_axis(values, places, 1), best)
        assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize("size", [arrays.MANY, arrays.MANY + 1, arrays.MANY + arrays.BLOCK - 1, 3 * arrays.MANY + 7])
@pytest.mark.parametrize("count", [2, 5, 31, 32])
@pytest.mark.parametrize("ties", [False, True])
def test_the_largest_of_many_are_found_by_blocks(size, count, ties):
    values = np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)
    if ties:
        values = np.round(values)
    values[1, -2:] = 9, 8  # beyond the last whole block
    values[2] = np.where(np.arange(size) < size // 2, -np.inf, values[2])
    expected = np.sort(values, 1)[:, ::-1][:, :count]
    for array in (values, torch.from_numpy(values)):
        best, places = (np.asarray(each) for each in arrays.topk(array, count))
        assert np.array_equal(best, expected)
        assert np.array_equal(np.take_along_axis(values, places, 1), best)
        assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize("size", [10, 2 * arrays.MANY])
@pytest.mark.parametrize("count", [1, 3])
def test_what_is_not_a_number_is_never_lost(size, count):
    values = np.zeros((1, size), dtype=np.float32)
    values[0, size // 2] = np.nan
    for array in (values, torch.from_numpy(values)):
        assert np.isnan(np.asarray(arrays.topk(array, count)[0])).any()


@settings(max_examples=200, deadline=None)
@given(values=matrices)
def test_logarithms_of_a_softmax_are_those_of_torch(values):
    expected = torch.from_numpy(values).log_softmax(-1).numpy()
    ours = arrays.log_softmax(values)
    assert ours.dtype == values.dtype
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(arrays.log_softmax(torch.from_numpy(values)).numpy(), expected, equal_nan=True)


@settings(max_examples=100, deadline=None)
@given(values=matrices, data=st.data())
def test_rows_are_taken_sorted_and_cast_alike(values, data):
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5)), dtype=np.int64)
    tensor = torch.from_numpy(values)
    assert np.array_equal(arrays.take_rows(values, rows), arrays.take_rows(tensor, torch.from_numpy(rows)).numpy())
    for ours, theirs in zip(arrays.descending(values), arrays.descending(tensor)):
        assert np.array_equal(ours, theirs.numpy())
    for array, other in ((rows, values), (torch.from_numpy(rows), tensor)):
        assert arrays.cast(array, other).dtype == other.dtype
    assert np.array_equal(arrays.as_numpy(arrays.like(tensor, values)), values)
    assert isinstance(arrays.like(values, [1, 2]), np.ndarray)


def test_tensors_become_arrays_and_arrays_tensors():
    assert arrays.as_numpy(torch.tensor([0.5, 2.0], dtype=torch.bfloat16)).tolist() == [0.5, 2.0]
    assert arrays.as_numpy(torch.tensor([0.5], requires_grad=True)).tolist() == [0.5]
    assert arrays.as_tensor(np.array([1, 2]), "cpu").tolist() == [1, 2]
    assert (arrays.namespace(np.zeros(1)), arrays.namespace(torch.zeros(1))) == (np, torch)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_draws_follow_the_probabilities_and_a_seed_repeats_them(make):
    probabilities = make([[0.0, 0.5, 0.2, 0.3, 0.0]] * 20_000)
    first, again = (np.asarray(arrays.draw(probabilities, arrays.generator(probabilities, 3))) for _ in range(2))
    assert np.array_equal(first, again)
    observed, expected = np.bincount(first, minlength=5), np.array([0, 10_000, 4_000, 6_000, 0])
    assert observed[[0, 4]].tolist() == [0, 0]
    chi_square = ((observed - expected)[1:4] ** 2 / expected[1:4]).sum()
    assert chi_square < 13.82  # 2 degrees of freedom, p = 0.001
    assert (
        len({tuple(np.asarray(arrays.draw(probabilities, arrays.generator(probabilities, None)))) for _ in "ab"}) == 2
    )


@pytest.mark.parametrize("make", [np.array, torch.tensor])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_are_no_probabilities_is_refused(make, wrong):
    probabilities = make([[0.5, wrong], [0.5, 0.5]])
    with pytest.raises(ValueError):
        arrays.draw(probabilities, arrays.generator(probabilities, 1))
