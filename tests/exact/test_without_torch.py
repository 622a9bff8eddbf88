"""Searches, constraints and codecs do without torch, and find the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seqloom.contracts import Stepper
from seqloom.types import Memory, Padded, select
from tests.building import cases, memory_for
from tests.exact import bigrams

STORED = Path(__file__).parents[1] / "storage" / "stored_runs" / "format_1"
PROGRAM = f"""
import json, sys
import seqloom.search.beam, seqloom.search.sample, seqloom.search.constraints.combined
import seqloom.tasks.pairs, seqloom.tasks.text, seqloom.inference.candidates
import seqloom.data.codecs.text, seqloom.data.codecs.numbers, seqloom.data.readers, seqloom.data.dataset
from tests.exact import bigrams
found = {{"searches": bigrams.in_numpy(), "run": bigrams.of_a_stored_run({str(STORED)!r})}}
print(json.dumps({{**found, "slow": [name for name in ("torch", "pydantic", "rich") if name in sys.modules]}}))
"""


@pytest.fixture(scope="module")
def without_torch():
    """What a fresh interpreter finds."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_of_recipes_searches_tasks_and_codecs_imports_torch_or_what_else_takes_long(without_torch):
    assert without_torch["slow"] == []
    assert without_torch["run"] == {"search": "BeamSearch", "source": "loom", "target": "mool"}


@pytest.mark.parametrize("name", bigrams.cases())
def test_a_search_in_numpy_finds_what_it_finds_in_torch(without_torch, name):
    memory = bigrams.memory()
    tensors = Memory(torch.from_numpy(memory.states), torch.from_numpy(memory.lengths))
    expected = bigrams.found(name, tensors, bigrams.prefix().to("cpu"))
    found = without_torch["searches"][name]
    assert all(expected)  # each source has an output: there is something to compare
    assert [[one["tokens"] for one in each] for each in found] == [[one.tokens for one in each] for each in expected]
    for ours, theirs in zip(found, expected):
        assert [one["score"] for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-12)
        for one, other in zip(ours, theirs):
            assert one["log_probs"] == pytest.approx(other.log_probs, abs=1e-12)


def test_the_cases_differ_from_each_other():
    """An option that changed nothing would be compared in vain."""
    found = bigrams.in_numpy()
    tokens = {name: str([[one["tokens"] for one in each] for each in found[name]]) for name in found}
    normalised = ["coverage", "no normalisation", "gnmt"]  # these may differ in their scores alone
    assert all(found["beam"] != found[name] for name in normalised)
    rest = [name for name in found if name not in normalised]
    assert tokens["the only one"] == tokens["greedy"]
    assert len({tokens[name] for name in rest}) == len(rest) - 1


@pytest.mark.parametrize("build", cases("decoders"))
@torch.no_grad()
def test_steps_one_by_one_are_teacher_forcing(build):
    """What a stepper without a parallel pass does with a prefix."""
    decoder = build()
    memory = memory_for(decoder)
    inputs = Padded(torch.tensor([[2, 5, 6, 4], [2, 7, 0, 0], [2, 4, 5, 0]]), torch.tensor([4, 2, 3]))
    together, alone = decoder(memory, inputs), Stepper.__call__(decoder, memory, inputs)
    mask = inputs.mask
    torch.testing.assert_close(alone.scores[mask], together.scores[mask])
    token = torch.tensor([5, 6, 7])
    after = [decoder.step(token, each.state, memory)[0] for each in (together, alone)]
    torch.testing.assert_close(*after)


class Shared:
    """A leaf of a state that knows its rows."""

    def __init__(self, rows):
        self.rows = rows

    def index_select(self, axis, rows):
        assert axis == 0
        return Shared([self.rows[int(row)] for row in rows])


def test_a_state_may_hold_objects_that_select_their_rows():
    rows = torch.tensor([2, 0, 0])
    chosen = select({"tree": Shared(["a", "b", "c"]), "deep": {"count": torch.arange(3)}}, rows)
    assert chosen["tree"].rows == ["c", "a", "a"]
    assert chosen["deep"]["count"].tolist() == [2, 0, 0]
