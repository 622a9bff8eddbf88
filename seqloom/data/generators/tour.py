"""Shortest tours (travelling salesman): "0.1,0.1 0.9,0.9 0.9,0.1" -> "0 1 2 0", the order of visit by places.

Vinyals, Fortunato & Jaitly 2015, section 3.3. A tour begins and ends at the first point, as in their data, in the
direction in which its second place is lower than its last but one. Up to 12 points it is the shortest (Held & Karp
1962); for more, a heuristic finds it: nearest neighbours from many starts, improved by 2-opt and Or-opt.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.points import as_source, as_target, check_numbers, draw_points
from seqloom.types import Example

EXACT = 12  # points at most for an exact solution
TOGETHER = 512  # tours of equally many points that are solved at once
STARTS = 20  # of the heuristic
MOST = 200


def tour(count: int, seed: int = 1, *, shortest: int = 5, longest: int = 5) -> list[Example]:
    """`count` sets of shortest to longest points; a smaller count gives the first of them."""
    check_numbers("tour", count, shortest, longest, 2, MOST)
    random = np.random.default_rng(seed)
    drawn = [draw_points(random, shortest, longest) for _ in range(count)]
    found: dict[int, list[int]] = {}
    for number in sorted({*map(len, drawn)}):
        rows = [row for row, points in enumerate(drawn) if len(points) == number]
        for first in range(0, len(rows), TOGETHER):
            part = rows[first : first + TOGETHER]
            found.update(zip(part, tours(distances(np.stack([drawn[row] for row in part])))))
    return [Example(as_source(points), as_target(found[row])) for row, points in enumerate(drawn)]


def distances(points: np.ndarray) -> np.ndarray:
    """(..., n, 2) -> (..., n, n)"""
    return np.linalg.norm(points[..., :, None, :] - points[..., None, :, :], axis=-1)


def tours(between: np.ndarray) -> list[list[int]]:
    """A closed tour for each table of distances.  (B, n, n)"""
    number = between.shape[1]
    orders = held_karp(between) if 2 < number <= EXACT else np.array([heuristic(each) for each in between])
    turned = orders[:, 1] > orders[:, -1]
    orders[turned, 1:] = orders[turned, :0:-1]
    return [[*order, order[0]] for order in orders.tolist()]


def held_karp(between: np.ndarray) -> np.ndarray:
    """The shortest orders, beginning with 0: dynamic programming over sets.  (B, n, n) -> (B, n)

    cost[S, j] is the shortest way from 0 through the places S to j, one of S; the batch is the last axis.
    """
    rows, others = len(between), between.shape[1] - 1
    way = np.ascontiguousarray(between.transpose(1, 2, 0))  # (n, n, B)
    cost = np.full((1 << others, others, rows), np.inf)
    for place in range(others):
        cost[1 << place, place] = way[0, place + 1]
    for chosen in range(1, 1 << others):
        members = [place for place in range(others) if chosen >> place & 1]
        if len(members) < 2:
            continue
        for last in members:
            (cost[chosen ^ (1 << last)] + way[1:, last + 1]).min(0, out=cost[chosen, last])
    each, left = np.arange(rows), np.full(rows, (1 << others) - 1)
    orders = np.zeros((rows, others + 1), dtype=np.int64)
    after = np.zeros(rows, dtype=np.int64)
    for place in range(others, 0, -1):  # backwards: the place it was reached from
        orders[:, place] = after = 1 + (cost[left, :, each] + way[1:, after, each].T).argmin(1)
        left ^= 1 << (after - 1)
    return orders


def heuristic(between: np.ndarray) -> np.ndarray:
    """A short order, beginning with 0.  (n, n) -> (n,)"""
    number = len(between)
    found = [improve(nearest(between, start), between) for start in range(0, number, -(-number // STARTS))]
    best = min(found, key=lambda order: length(order, between))
    return np.roll(best, -int(np.argmin(best)))


def nearest(between: np.ndarray, start: int) -> np.ndarray:
    """Nearest neighbours: always on to the nearest point not yet visited.  (n,)"""
    left = np.full(len(between), 0.0)
    order = [start]
    for _ in range(len(between) - 1):
        left[order[-1]] = np.inf
        order.append(int((between[order[-1]] + left).argmin()))
    return np.array(order)


def length(order: np.ndarray, between: np.ndarray) -> float:
    """The length of the closed tour."""
    return float(between[order, np.roll(order, -1)].sum())


def improve(order: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Reverse segments (2-opt) and move up to three points (Or-opt) until nothing makes the tour shorter."""
    number = len(order)
    if number < 4:
        return order
    while True:
        way = between[order][:, order]  # (n, n)
        after = np.roll(np.arange(number), -1)
        steps = way[np.arange(number), after]
        gains = steps[:, None] + steps - way - way[after][:, after]  # of reversing the segment between two steps
        np.fill_diagonal(gains, 0.0)
        first, second = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[first, second] > 1e-9 * steps.sum():
            low, high = sorted((int(first), int(second)))
            order = np.concat([order[: low + 1], order[low + 1 : high + 1][::-1], order[high + 1 :]])
            continue
        moved = move_segment(order, way)
        if moved is None:
            return order
        order = moved


def move_segment(order: np.ndarray, way: np.ndarray) -> np.ndarray | None:
    """The order with the best segment of up to three points moved; None if no move makes it shorter."""
    number = len(order)
    best, chosen = 1e-9 * float(way[np.arange(number), np.roll(np.arange(number), -1)].sum()), None
    for size in range(1, min(3, number - 3) + 1):
        begin = np.arange(number)
        end, before, behind = (begin + size - 1) % number, begin - 1, (begin + size) % number
        freed = way[before, begin] + way[end, behind] - way[before, behind]  # (n,)
        here, there = np.arange(number), np.roll(np.arange(number), -1)
        forward = way[here][:, begin].T + way[end][:, there]  # (begin, here)
        backward = way[here][:, end].T + way[begin][:, there]
        added = np.minimum(forward, backward) - way[here, there]
        gains = freed[:, None] - added
        gains[(here - before[:, None]) % number <= size] = -np.inf  # within the segment, or where it was
        row, column = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[row, column] > best:
            best = float(gains[row, column])
            turned = bool(backward[row, column] < forward[row, column])
            chosen = int(row), size, int(order[column]), turned
    if chosen is None:
        return None
    first, size, goal, turned = chosen
    rotated = np.roll(order, -first)
    segment, rest = rotated[:size], rotated[size:]
    place = int((rest == goal).argmax()) + 1
    return np.concat([rest[:place], segment[::-1] if turned else segment, rest[place:]])
