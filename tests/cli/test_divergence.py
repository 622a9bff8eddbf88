"""A learning rate that is far too high: a useful result, or one line and exit code 2; never a success without use."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import TRANSLATOR, Command, pairs, toml, tsv

TRANSFORMER = {"type": "transformer", "size": 16, "heads": 2, "hidden": 32, "layers": 1}


@pytest.mark.parametrize("steps", [3, 40])
@pytest.mark.parametrize("rate", [1e0, 1e3, 1e10, 1e30])
@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_a_training_is_useful_or_fails_in_one_line(
    command: Command, kind: str, optimiser: str, rate: float, steps: int
) -> None:
    recipe: dict[str, Any] = copy.deepcopy(TRANSLATOR)
    if kind == "transformer":
        recipe |= {"encoder": TRANSFORMER, "decoder": TRANSFORMER}
    recipe["train"] |= {"optimiser": optimiser, "learning_rate": rate, "steps": steps, "warmup": steps // 4}
    outcome = command("train", toml(recipe), "--data", tsv(rows=pairs(300)), "--out", "run")
    if outcome.code == 0:
        lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
        assert min(line["loss"] for line in lines if line["kind"] == "valid") < lines[0]["loss"]
        assert command("predict", "run", stdin="123\n").code == 0
        assert rate <= 1
    else:
        complaint = outcome.err.splitlines()[-1]
        assert outcome.code == 2
        assert complaint.startswith("seqloom: ")
        assert "learning_rate" in complaint
        assert not Path("run/model.safetensors").exists()
        assert "or has failed" in command("predict", "run", stdin="123\n").complaint
