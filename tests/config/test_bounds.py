"""Numbers of recipes, commands and Python: what no computation could take is refused in one line."""

import math
import random
from contextlib import suppress

import pytest
import torch

from seqloom.config import build
from seqloom.config.bounds import BOUNDS
from seqloom.config.build import check_memory
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.config.settings import Data, Settings
from seqloom.errors import SeqloomError, show, shown
from seqloom.search.beam import BeamSearch
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.search.sample import Sampling
from seqloom.storage.files import DEEPEST
from seqloom.storage.toml import read_toml
from seqloom.values import check, expect
from tests.faults.attacks.numbers import VALUES, completed, keys


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def test_any_value_of_any_key_of_a_recipe_is_taken_or_refused():
    """Every key of every part, with one value each; `python -m tests.faults numbers` tries more and builds parts."""
    chance = random.Random(1)
    for name, key in keys():
        with suppress(SeqloomError):
            complete(override(completed(name), {key: chance.choice(VALUES)}), name)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("train.tokens=1000000000000", ["train.tokens", "at most 10,000,000"]),
        ("train.tokens=9" + "9" * 5000, ["thousands of digits"]),
        ("train.tokens=0x" + "f" * 5000, ["train.tokens", "64"]),
        ("search.beam_size=100000000", ["beam_size = 100000000", "from 1 to 1,000"]),
        ("search.length_penalty=1e308", ["length_penalty = 1e+308", "from -10 to 10"]),
        ("search.length_penalty=nan", ["search.length_penalty = nan", "finite"]),
        ("train.learning_rate=inf", ["train.learning_rate = inf", "finite"]),
        ("train.betas=[0.9, nan]", ["train.betas", "finite"]),
        ("encoder.layers=1000000", ["encoder.layers = 1000000", "from 0 to 200"]),
        ("encoder.size=-1", ["encoder.size = -1"]),
        ("encoder.size=1000000", ["weights", "GB"]),
        ("decoder.length_ratio=1e30", ["decoder.length_ratio", "1,000"]),
        ("data.max_characters=-1", ["max_characters = -1"]),
        ("data.max_characters=0", ["max_characters = 0"]),
        (".".join("a" * 3000) + "=1", [f"more than {DEEPEST} levels"]),
        ("encoder=" + "[" * 3000, [f"more than {DEEPEST} levels"]),
        ("encoder=" + "[" * 40 + "]" * 40, [f"more than {DEEPEST} levels"]),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused_in_one_line(assignment, words):
    def run():
        check_recipe(complete(override(completed("dates"), assignment), "dates"))

    message = complaint(run)
    assert all(word in message for word in words), message


def test_a_file_nested_too_deeply_is_no_recipe(tmp_path):
    path = tmp_path / "a.toml"
    for text in (f"[{'.'.join('a' * 3000)}]", "a = " + "[" * 3000, "a = " + "{a=" * 3000, "a = " + "9" * 5000):
        path.write_text(text)
        assert "not valid TOML" in complaint(read_toml, path)
        assert "not valid TOML" in complaint(read_recipe, path)
    path.write_text(f"[{'.'.join('a' * DEEPEST)}]")
    assert read_toml(path)


def test_deep_tables_of_python_are_refused():
    deep: dict = {}
    for _ in range(3000):
        deep = {"a": deep}
    assert "levels deep" in complaint(override, {}, deep)
    assert "levels deep" in complaint(override, deep, {})
    nested: list = []
    for _ in range(3000):
        nested = [nested]
    assert "levels deep" in complaint(override, {}, {"a": nested})


def test_any_value_can_be_quoted():
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    for value in (10**5000, [10**5000], nested, "x" * 10**6, math.nan):
        assert len(show(value)) <= 60
        assert len(shown(value)) <= 60


def test_numbers_are_checked_with_their_annotation():
    assert check(float, 3, "x") == 3.0
    assert check(int, 2**63 - 1, "x") == 2**63 - 1
    assert "64 bits" in complaint(check, int, 2**63, "x")
    assert "64 bits" in complaint(check, float, 10**400, "x")
    assert "finite" in complaint(check, float | None, math.inf, "x")
    assert "finite" in complaint(check, dict[str, float], {"a": math.nan}, "x")


def test_bounds_of_arguments_include_both_ends_and_no_nan():
    expect(0, 1, a=0, b=1, c=None)
    for wrong in (-0.1, 1.1, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"a = .*: expected a number from 0 to 1"):
            expect(0, 1, a=wrong)


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (BeamSearch, {"beam_size": 1001}),
        (BeamSearch, {"beam_size": 0}),
        (BeamSearch, {"length_penalty": 11.0}),
        (BeamSearch, {"minimum_length": -1}),
        (BeamSearch, {"maximum_length": 10**7}),
        (BeamSearch, {"no_repeat": -1}),
        (PrefixBeam, {"length_penalty": -11.0}),
        (PrefixBeam, {"symbols_per_state": 0}),
        (Sampling, {"temperature": 1e-300}),
        (Sampling, {"temperature": math.inf}),
        (Sampling, {"n_best": 10**6}),
        (Sampling, {"top_k": -1}),
    ],
)
def test_searches_bound_what_they_are_given(build, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        build(**arguments)
    build()


def test_the_largest_length_penalty_still_computes():
    assert math.isfinite(BeamSearch(length_penalty=10.0).normaliser(20_000))


def test_settings_and_data_bound_theirs():
    assert "tokens = 10000001" in complaint(Settings, tokens=10_000_001)
    with pytest.raises(ValueError, match="max_characters = 0"):
        Data(max_characters=0)


def test_weights_that_do_not_fit_into_memory_are_counted_before_they_are_made(monkeypatch):
    layer = torch.nn.Linear(999, 1000, device="meta")
    check_memory(layer)
    monkeypatch.setattr(build, "memory_limit", lambda: 10**7)
    check_memory(layer)
    assert "1,000,000 weights" in complaint(check_memory, layer, copies=4)


def test_bounds_have_sense():
    assert all(least < most for least, most in BOUNDS.values())
