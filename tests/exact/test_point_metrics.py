"""Metrics of hulls, tours and triangles in closed form."""

import math

import numpy as np
import pytest

from seqloom.data.generators.hull import hull as hulls
from seqloom.data.generators.tour import tour as tours
from seqloom.errors import SeqloomError
from seqloom.metrics.hull import hull, is_simple
from seqloom.metrics.tour import tour
from seqloom.metrics.triangles import triangles

SQUARE = "0,0 1,0 1,1 0,1 0.5,0.25"  # and a point within
RING = [[0, 1, 2, 3, 0]]


def test_a_hull_is_right_wherever_it_begins_but_not_the_other_way_round():
    for right in ([0, 1, 2, 3, 0], "2 3 0 1 2", [3, 0, 1, 2, 3]):
        assert hull([right], [RING], [SQUARE]) == {"hull": 100.0, "area": 100.0, "invalid": 0.0}
    assert hull([[0, 3, 2, 1, 0]], [RING], [SQUARE]) == {"hull": 0.0, "area": 100.0, "invalid": 0.0}


def test_area_is_a_part_of_the_true_one():
    assert hull([[0, 1, 2, 0]], [RING], [SQUARE])["area"] == pytest.approx(50)
    assert hull(["0 1 4 0"], [RING], [SQUARE])["area"] == pytest.approx(12.5)
    both = hull([[0, 1, 2, 0], RING[0]], [RING] * 2, [SQUARE] * 2)
    assert both == {"hull": 50.0, "area": pytest.approx(75), "invalid": 0.0}


@pytest.mark.parametrize(
    "broken", [[0, 2, 1, 3, 0], [0, 1, 2, 3], [0, 1, 0], [], [0, 1, 2, 9, 0], [0, 1, 1, 2, 0], "a b"]
)
def test_what_crosses_itself_or_is_open_is_invalid_and_more_than_one_in_a_hundred_fail(broken):
    assert hull([broken], [RING], [SQUARE]) == {"hull": 0.0, "area": 0.0, "invalid": 100.0}
    few = hull([broken, *RING * 99], [RING] * 100, [SQUARE] * 100)
    assert few == {"hull": 99.0, "area": pytest.approx(100), "invalid": 1.0}
    many = hull([broken, broken, *RING * 98], [RING] * 100, [SQUARE] * 100)
    assert many == {"hull": 98.0, "area": 0.0, "invalid": 2.0}


def test_a_star_crosses_itself_and_a_crescent_does_not():
    angles = np.arange(5) * 2 * math.pi / 5
    pentagon = np.stack([np.cos(angles), np.sin(angles)], 1)
    assert is_simple(pentagon)
    assert not is_simple(pentagon[[0, 2, 4, 1, 3]])
    assert is_simple(np.array([[0, 0], [4, 0], [1, 1], [0, 4]]))  # its third corner points inwards
    assert not is_simple(np.array([[0, 0], [4, 0], [1, 5], [1, -1]]))


def test_perfect_outputs_are_perfect():
    examples = hulls(50, shortest=5, longest=30)
    measured = hull([e.target for e in examples], [[e.target] for e in examples], [e.source for e in examples])
    assert measured == {"hull": 100.0, "area": pytest.approx(100), "invalid": 0.0}
    examples = tours(50, shortest=5, longest=7)
    measured = tour([e.target for e in examples], [[e.target] for e in examples], [e.source for e in examples])
    assert measured["tour_ratio"] == pytest.approx(1)
    assert measured["no_tour"] == 0


def test_the_length_of_a_tour_open_or_closed():
    square = "0,0 1,1 1,0 0,1"
    best, crossing = [0, 2, 1, 3, 0], [0, 1, 2, 3]
    assert tour([best], [[best]], [square]) == {
        "tour": pytest.approx(4),
        "tour_ratio": pytest.approx(1),
        "no_tour": 0.0,
    }
    assert tour([best[:-1]], [["0 1 2 3 0", best]], [square])["tour_ratio"] == pytest.approx(1)
    both = tour([best, crossing], [[best], [best]], [square, square])
    assert both["tour"] == pytest.approx((4 + 2 + 2 * math.sqrt(2)) / 2)
    assert both["tour_ratio"] == pytest.approx((6 + 2 * math.sqrt(2)) / 8)


@pytest.mark.parametrize("broken", [[0, 1, 2], [0, 1, 2, 3, 3], [0, 1, 2, 2], [0, 1, 2, 3, 0, 1], [0, 1, 2, 4], []])
def test_what_is_no_tour_counts_as_the_points_as_they_came(broken):
    square = [[0, 0], [1, 1], [1, 0], [0, 1]]
    expected = {"tour": pytest.approx(2 + 2 * math.sqrt(2)), "no_tour": 100.0}
    assert tour([broken], [[[0, 2, 1, 3, 0]]], [square]).items() >= expected.items()


def test_triangles_count_as_sets():
    assert triangles([[2, 0, 1, 1, 2, 3]], [["1 2 3 0 1 2"]]) == {"triangles": 100.0, "triangle_coverage": 100.0}
    half = {"triangles": 0.0, "triangle_coverage": 50.0}
    assert triangles(["0 1 2"], [["1 2 3 0 1 2"]]) == half
    assert triangles(["0 1 2 1 2"], [["1 2 3 0 1 2"]]) == half
    assert triangles(["0 1 2 0 2 3 0 1 3 1 1 1"], [["1 2 3 0 1 2"]]) == half
    assert triangles([[]], [[[0, 1, 2]]]) == {"triangles": 0.0, "triangle_coverage": 0.0}
    # One triangle of one, one of two: two of three.
    two = triangles([[0, 1, 2], [0, 1, 2]], [[[0, 1, 2]], [[0, 1, 2, 1, 2, 3]]])
    assert two == {"triangles": 50.0, "triangle_coverage": pytest.approx(200 / 3)}
    assert triangles([[0, 1, 2]], [["0 1 2 1 2 3", "0 1 2"]])["triangles"] == 100.0


def test_mistakes_are_one_line():
    with pytest.raises(SeqloomError, match=r"hull: the source '0\.5 0\.25' has no points"):
        hull([[0]], [[[0]]], ["0.5 0.25"])
    with pytest.raises(SeqloomError, match="tour: 1 predictions but 0 sources"):
        tour([[0]], [[[0]]], [])
