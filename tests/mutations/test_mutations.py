"""The program that makes mistakes: which it makes, and that it sees whether a test notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.named import MISTAKES
from tests.mutations.operators import mutants
from tests.mutations.reasons import REASONS
from tests.mutations.rooms import ROOMS, likely_tests, sources

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["pass", "x = (a <= b)"]),
        ("x = a + b * c", ["pass", "x = (a - b * c)", "x = a + (b / c)"]),
        ("x = a and not b", ["pass", "x = (a or not b)", "x = a and (b)"]),
        ("x = -3.5", ["pass", "x = (3.5)", "x = -(4.5)", "x = -(2.5)"]),
        ("x = True", ["pass", "x = (False)"]),
        ("x = t.amax(1)", ["pass", "x = (t.amin(1))", "x = t.amax((2))", "x = t.amax((0))"]),
        ("x = f(a, b)", ["pass", "x = (f(b, a))"]),
        ("if a:\n    f()", ["if True:\n    f()", "if False:\n    f()", "if a:\n    pass"]),
        ("while a:\n    f()", ["while False:\n    f()", "while a:\n    pass"]),
        ("x = b if a else c", ["pass", "x = b if True else c", "x = b if False else c"]),
        ("def f(a=1):\n    return a", ["def f(a=1):\n    return None"]),
        ("def f():\n    return None", []),
        ("x += 1", ["pass", "x -= 1", "x += (2)", "x += (0)"]),
        ('"""é"""\nx = é & b', ['"""é"""\npass', '"""é"""\nx = (é | b)']),
        ('def f():\n    """1 + 1"""\n    raise E(1 + 1)', []),
        ('x: int = f"{1 + 1}"', []),
        ("@f(1)\ndef g(a: A[1] = 1) -> B[2]: ...", []),
        ("import a", []),
    ],
)
def test_each_mistake_is_one_change_of_the_text(source: str, expected: list[str]) -> None:
    found = [each.apply(source) for each in mutants(source)]
    assert sorted(found) == sorted(expected)


def test_a_mistake_says_where_it_is() -> None:
    (first, *_) = mutants("x = 1\n\ny = (a\n     - b)\n", "a/b.py")[3:]
    assert (first.where, first.change, first.operator) == ("a/b.py:3:1", "y = (a - b) -> pass", "deletion")
    assert first.text == "y = (a"


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_mistakes_to_make_and_tests_that_exist(room: str) -> None:
    files = sources(room, ROOT)
    assert sum(len(mutants((ROOT / path).read_text())) for path in files) > 100
    for path in files:
        for test in (each for tests in likely_tests(room, path, ROOT) for each in tests):
            assert (ROOT / test.split("::")[0]).exists(), test


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.about)
def test_named_mistakes_can_still_be_made(mistake) -> None:
    assert (ROOT / mistake.path).read_text().count(mistake.before) == 1
    assert all((ROOT / test.split("::")[0]).exists() for test in mistake.tests)


def test_every_reason_belongs_to_a_mutant_of_today() -> None:
    today = {
        (path, each.text, each.column, each.change)
        for path in {path for path, *_ in REASONS}
        for each in mutants((ROOT / path).read_text(), path)
    }
    assert {*REASONS} <= today
