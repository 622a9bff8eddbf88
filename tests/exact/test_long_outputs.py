"""Outputs that run to the length limit: bounded, and recorded at little cost."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from seqloom.contracts import search as contracts
from seqloom.search.trail import Trail
from seqloom.types import Memory
from tests.faults.untrained import untrained

MEMORY = """
import resource
from tests.faults.untrained import untrained
model = untrained("{name}")
model.predict(["abcdefgh"], maximum_length=100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.predict(["abcdefgh" * 250], maximum_length=800, minimum_length=799, type="{search}")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_a_trail_holds_what_was_added_and_those_before_it_stay_as_they_were(kind):
    first = Trail().add(kind([1, 2]), None).add(kind([3, 4]), kind([True, False]))
    one, other = first.add(kind([5.5]), None), first.add(kind([[6]]), None)

    def lists(trail):
        return [[each if each is None else each.tolist() for each in step] for step in trail]

    assert lists(first) == [[[1, 2], None], [[3, 4], [True, False]]]
    assert lists(one) == [*lists(first), [[5.5], None]]
    assert lists(other) == [*lists(first), [[[6]], None]]
    assert (len(one), bool(Trail()), [*Trail()]) == (3, False, [])


def test_the_steps_of_a_trail_are_the_columns_of_a_table():
    assert Trail().add(np.array([1, 2])).add(np.array([3, 4])).stack().tolist() == [[1, 3], [2, 4]]


def test_a_trail_of_any_length_is_made_and_freed():
    trail = Trail()
    for number in range(100_000):
        trail = trail.add(np.array([number]))
    assert int(trail.stack().sum()) == sum(range(100_000))
    del trail


@pytest.mark.parametrize(("length", "ratio", "expected"), [(10, 2.0, 30), (15, 2.0, 35), (50, 2.0, 60), (10, 1e3, 35)])
def test_the_limit_of_an_output_is_its_ratio_to_the_source_but_never_endless(monkeypatch, length, ratio, expected):
    monkeypatch.setattr(contracts, "LONGEST_OUTPUT", 25)
    decoder = untrained("recurrent").model.decoder
    monkeypatch.setattr(decoder, "length_ratio", ratio)
    memory = Memory(torch.zeros(1, length, 8), torch.tensor([length]))
    assert decoder.limit(memory).tolist() == [expected]


def test_no_ratio_overflows(monkeypatch):
    decoder = untrained("recurrent").model.decoder
    monkeypatch.setattr(decoder, "length_ratio", 1e30)
    memory = Memory(torch.zeros(1, 10, 8), torch.tensor([10]))
    assert decoder.limit(memory).tolist() == [20_010]


@pytest.mark.skipif(sys.platform != "linux", reason="about the allocator of Linux")
@pytest.mark.parametrize(("name", "search"), [("recurrent", "beam"), ("recurrent", "sample")])
def test_a_long_output_for_a_long_source_takes_little_memory(name, search):
    """Not a weight for each of its tokens and each of the source's, which nobody asked for."""
    code = MEMORY.format(name=name, search=search)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 40
