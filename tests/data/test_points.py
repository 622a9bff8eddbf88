"""Hulls, triangulations, tours and orders made on the spot, against brute force."""

import gzip
import os
from itertools import combinations, pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import Places
from seqloom.data.generators.delaunay import delaunay, library, triples
from seqloom.data.generators.hull import hull, ring
from seqloom.data.generators.points import GRID
from seqloom.data.generators.sorting import sorting
from seqloom.data.generators.tour import distances, heuristic, length, nearest, tour, tours
from seqloom.errors import SeqloomError

ALL = (hull, delaunay, tour, sorting)
CHANCE = np.random.default_rng(7)


def whole(source):
    """The points of a source on their grid."""
    points = [[float(number) * GRID for number in vector.split(",")] for vector in source.split()]
    return np.array(points).round().astype(np.int64)


def numbers(target):
    return [int(place) for place in target.split()]


def area(first, second, third):
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (third[0] - first[0])


def brute_hull(points):
    """Steps between corners have all other points to their left: O(n^3)."""
    points = points.tolist()
    each = range(len(points))
    steps = {
        start: end
        for start, end in permutations(each, 2)
        if all(area(points[start], points[end], points[other]) > 0 for other in each if other not in (start, end))
    }
    found = [min(steps)]
    while (following := steps[found[-1]]) != found[0]:
        found.append(following)
    return [*found, found[0]]


@pytest.mark.parametrize("generator", ALL)
def test_examples_are_a_function_of_the_seed_and_fewer_are_the_first(generator):
    many = generator(60, seed=3, shortest=4, longest=7)
    assert generator(60, seed=3, shortest=4, longest=7) == many
    assert generator(20, seed=3, shortest=4, longest=7) == many[:20]
    assert generator(60, seed=4, shortest=4, longest=7) != many
    assert {len(each.source.split()) for each in many} == {4, 5, 6, 7}
    assert len({each.source for each in many}) == 60


@pytest.mark.parametrize("generator", ALL)
def test_codecs_read_what_generators_write(generator):
    examples = generator(20)
    source = Numbers().fit(each.source for each in examples)
    target = Places()
    target.source = source
    for example in examples:
        assert source.encode(example.source).shape == (5, 1 if generator is sorting else 2)
        assert target.line(target.decode(target.encode(example.target, example.source))) == example.target


@pytest.mark.parametrize("generator", ALL)
def test_mistakes_are_one_line(generator):
    with pytest.raises(SeqloomError, match=f"{generator.__name__}: shortest is 0"):
        generator(5, shortest=0)
    with pytest.raises(SeqloomError, match="longest is 4, expected 5"):
        generator(5, shortest=5, longest=4)


@pytest.mark.parametrize(("shortest", "longest"), [(3, 3), (5, 5), (6, 20), (50, 60)])
def test_hulls_are_those_of_brute_force(shortest, longest):
    for example in hull(1000 // longest, shortest=shortest, longest=longest):
        assert numbers(example.target) == brute_hull(whole(example.source))


def test_points_on_a_side_are_not_corners():
    square = [[0, 0], [1, 0], [2, 0], [2, 2], [1, 2], [0, 2], [0, 1], [1, 1]]
    assert ring(square) == [0, 2, 3, 5, 0]


def test_hulls_follow_the_published_file():
    path = Path(os.environ.get("SEQLOOM_DATA", ".")) / "ptrnet-convex-hull" / "convex_hull_5_test.txt.gz"
    if not path.exists():
        pytest.skip("the published file is not under SEQLOOM_DATA")
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in list(lines)[:2000]:
            points, _, expected = line.partition(" output ")
            grid = (np.array(points.split(), dtype=np.float64).reshape(-1, 2) * 10**8).round().astype(np.int64)
            assert ring(grid.tolist()) == [int(place) - 1 for place in expected.split()]


def brute_tour(points):
    between = distances(points)
    return min(length(np.array((0, *order)), between) for order in permutations(range(1, len(points))))


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 8])
def test_tours_are_the_shortest_of_all(number):
    for example in tour(12, shortest=number, longest=number):
        points, found = whole(example.source), numbers(example.target)
        assert found[0] == found[-1] == 0
        assert sorted(found[:-1]) == list(range(number))
        assert number < 3 or found[1] < found[-2]
        assert length(np.array(found[:-1]), distances(points)) == pytest.approx(brute_tour(points))


def test_tours_of_different_sizes_are_found_together():
    mixed = tour(40, shortest=3, longest=9)
    for example in mixed:
        points = whole(example.source)
        assert [numbers(example.target)] == tours(distances(points[None]))


def test_the_heuristic_is_hardly_longer_than_the_shortest_and_shorter_than_nearest_neighbours():
    for points in (CHANCE.random((11, 2)) for _ in range(10)):
        between = distances(points)
        (best,) = tours(between[None])
        found, shortest = heuristic(between), length(np.array(best[:-1]), between)
        assert sorted(found.tolist()) == list(range(11))
        assert found[0] == 0
        assert shortest - 1e-9 <= length(found, between) <= 1.02 * shortest
    between = distances(CHANCE.random((40, 2)))
    assert length(heuristic(between), between) < min(length(nearest(between, start), between) for start in range(40))
    (example,) = tour(1, shortest=14, longest=14)
    assert sorted(numbers(example.target)[:-1]) == list(range(14))


def in_circle(corners, point):
    """Above 0 where a point lies within the circle of a triangle, exactly, in whole numbers."""
    rows = [[x - point[0], y - point[1]] for x, y in corners]
    rows = [[x, y, x * x + y * y] for x, y in rows]
    (a, b, c), (d, e, f), (g, h, i) = rows
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    return determinant * (1 if area(*corners) > 0 else -1)


@pytest.mark.parametrize("number", [3, 5, 7, 12])
def test_triangulations_are_all_triangles_whose_circles_are_empty(number):
    for example in delaunay(25, shortest=number, longest=number):
        points = whole(example.source).tolist()
        empty = {
            triple
            for triple in combinations(range(number), 3)
            if all(
                in_circle([points[place] for place in triple], points[other]) < 0
                for other in range(number)
                if other not in triple
            )
        }
        found = numbers(example.target)
        given = [tuple(found[at : at + 3]) for at in range(0, len(found), 3)]
        assert {*given} == empty
        assert len(given) == len(empty)


def test_triangles_are_in_the_order_of_their_incentres():
    for example in delaunay(20, shortest=8, longest=8):
        points, found = whole(example.source), numbers(example.target)
        centres = []
        for at in range(0, len(found), 3):
            one, other, third = points[found[at : at + 3]].astype(float)
            sides = [np.hypot(*(other - third)), np.hypot(*(one - third)), np.hypot(*(one - other))]
            centres.append(float((sides[0] * one + sides[1] * other + sides[2] * third)[0] / sum(sides)))
        assert centres == sorted(centres)


def test_numbers_are_sorted():
    for example in sorting(200, shortest=1, longest=9):
        values = whole(example.source)[:, 0]
        assert (np.diff(values[numbers(example.target)]) >= 0).all()
        assert sorted(numbers(example.target)) == list(range(len(values)))


def test_points_in_another_order_have_the_same_answer_by_other_places():
    triangulate = library()
    for example in hull(30, shortest=6, longest=12):
        points = whole(example.source)
        shuffle = CHANCE.permutation(len(points))  # what stood at shuffle[place] stands at place
        moved = points[shuffle]
        corners, others = ring(points.tolist()), ring(moved.tolist())
        before, after = corners[:-1], [int(shuffle[place]) for place in others[:-1]]
        turn = before.index(after[0])
        assert after == before[turn:] + before[:turn]
        assert others[0] == min(others)
        (found,), (shuffled,) = tours(distances(points[None])), tours(distances(moved[None]))
        steps = {frozenset(step) for step in pairwise(found)}
        assert {frozenset((int(shuffle[a]), int(shuffle[b]))) for a, b in pairwise(shuffled)} == steps
        one, other = np.array(triples(points, triangulate)), shuffle[np.array(triples(moved, triangulate))]
        assert np.sort(other.reshape(-1, 3), 1).tolist() == one.reshape(-1, 3).tolist()  # also in the same order
