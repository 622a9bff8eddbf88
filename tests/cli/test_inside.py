"""The verbs that look inside: explain, gradcheck, gradients, info, compare."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.train.display import Display
from tests.cli.conftest import TRANSLATOR, Command, pairs, toml, written

WRONG = """
import torch

from seqloom.nn.attention.dot import Dot


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        return 2 * gradient


class Mine(Dot):
    def score(self, query, keys):
        return super().score(Scaled.apply(query), keys)
"""


def tiny(path: str, *settings: str) -> Path:
    small = ["encoder.size=4", "decoder.size=4", "decoder.attention=none", "train.steps=4", "train.validate_every=2"]
    seqloom.fit(pairs(), TRANSLATOR, out=path, settings=[*small, *settings], display=Display.quiet())
    return Path(path)


class TestExplain:
    def test_the_answer_is_that_of_the_beam_size_given(self, command: Command, translator: Path) -> None:
        for width in (1, 3, 5):
            for number in ("123", "45", "6789"):
                answer = command("predict", translator, "--beam-size", width, stdin=number).out
                shown = command("explain", translator, number, "--beam-size", width).out
                assert f"output  {answer}" in shown
                assert ("beam 5 tokens:" if width == 5 else f"beam {width} (n-best list: 5) ") in " ".join(
                    shown.split()
                )
        assert "beam 3 (n-best list: 5) " in " ".join(command("explain", translator, "123").out.split())
        assert "beam_size = 0" in command("explain", translator, "123", "--beam-size", 0).complaint


class TestGradcheck:
    def test_right_gradients_are_a_table_and_a_summary(self, command: Command) -> None:
        outcome = command("gradcheck", "adding", "--set", "encoder.cell=gru")
        assert outcome.code == 0
        header, *rows, total = outcome.out.splitlines()
        assert header.split() == ["parameter", "scalars", "worst", "error"]
        assert all(row.split()[-1] == "pass" and float(row.split()[2]) < 1e-5 for row in rows)
        scalars = sum(int(row.split()[1]) for row in rows)
        assert total.startswith(f"{len(rows)} parameters, {scalars} scalars: all gradients are right")
        assert outcome.err == "Made small: encoder.embedding_size = 4, encoder.size = 4.\n"

    def test_a_wrong_gradient_is_named_and_the_exit_code_is_one(self, command: Command, recipe: dict[str, Any]) -> None:
        written("wrong_attention.py", WRONG)
        for part in ("encoder", "decoder"):
            recipe[part] |= {"size": 2, "embedding_size": 2, "cell": {"type": "elman"}}
        recipe["decoder"] |= {"attention": {"type": "wrong_attention:Mine"}, "bridge": "zero"}
        path = toml(recipe)
        assert "trust" in command("gradcheck", path).complaint
        outcome = command("gradcheck", path, "--trust")
        sys.modules.pop("wrong_attention", None)
        assert outcome.code == 1, outcome
        failed = [line.split()[0] for line in outcome.out.splitlines() if line.endswith("FAIL")]
        assert "decoder.stack.cells.0.kernel.weight_hh_l0" in failed  # below the attention's query
        assert "decoder.output.weight" not in failed  # above it
        last = outcome.out.splitlines()[-1]
        assert f"{len(failed)} of the parameters have a wrong gradient, worst decoder." in last
        assert "by autograd" in last

    def test_a_recipe_with_a_mistake_is_refused(self, command: Command) -> None:
        assert "did you mean" in command("gradcheck", "date").complaint
        assert "encoder.sise" in command("gradcheck", "dates", "--set", "encoder.sise=3").complaint


class TestGradients:
    def test_runs_and_recipes_stand_in_one_table_and_one_picture(
        self, command: Command, translator: Path, language_model: Path
    ) -> None:
        names = [translator, language_model, "dates"]
        outcome = command("gradients", *names, "--length", 20, "--out", "a.png", "--out", "b.svg")
        assert outcome.code == 0, outcome.err
        header, *rows = outcome.out.splitlines()
        assert header.split() == ["steps", "back", "1", "2", "5", "10", "20", "slope"]
        assert [row.split(":")[0] for row in rows[:-1:2]] == ["run", "run", "dates"]
        assert [" trained lstm of 16" in row for row in rows[:-1:2]] == [True, True, False]
        assert outcome.err.splitlines() == ["The picture is a.png.", "The picture is b.svg."]
        assert Path("a.png").read_bytes().startswith(b"\x89PNG")
        assert Path("b.svg").read_text().count("trained lstm of 16") == 2

    def test_settings_change_the_recipes_and_not_the_runs(self, command: Command, translator: Path) -> None:
        short = ["--length", 3, "--set", "encoder.cell.type=elman"]
        out = command("gradients", "dates", translator, *short).out
        assert "random elman of 128, activation tanh" in out
        assert "trained lstm of 16" in out
        assert "--set changes a recipe" in command("gradients", translator, *short).complaint

    def test_a_trained_cell_is_not_a_random_one(self, command: Command, translator: Path) -> None:
        trained, random = (
            command("gradients", name, "--length", 5).out.splitlines()[1].split()[-3:]
            for name in (translator, translator / "config.toml")
        )
        assert trained != random

    def test_mistakes_are_refused_before_anything_is_computed(self, command: Command, translator: Path) -> None:
        assert "no recurrent cell" in command("gradients", "g2p-transformer").complaint
        assert "x.png" in command("gradients", "dates", "--out", "x.jpg").complaint
        assert "there is no folder" in command("gradients", "dates", "--out", "no/x.png").complaint
        assert "no such recipe" in command("gradients", "nowhere").complaint
        assert "not a run folder" in command("gradients", translator.parent).complaint
        assert "length" in command("gradients", "dates", "--length", 1).complaint


class TestInfo:
    def test_a_run_is_a_table_and_json_and_a_recipe_needs_no_data(self, command: Command, translator: Path) -> None:
        title, first, *_ = command("info", translator).out.splitlines()
        assert title.startswith(f"{translator}, measured on")
        found = json.loads(command("info", translator, "--json").out)
        assert first.split() == ["parameters", f"{found['parameters']:,}"]
        assert found["train_flops_per_token"] > 0
        assert found["steps"] > 0
        assert "random examples" in command("info", "dates", "--set", "encoder.size=16").out

    def test_mistakes_are_one_line(self, command: Command, translator: Path) -> None:
        assert "--set changes a recipe" in command("info", translator, "--set", "seed=2").complaint
        assert "did you mean" in command("info", "date").complaint


class TestCompare:
    def test_trained_runs_are_compared_and_seeds_are_grouped(self, command: Command) -> None:
        for seed in (1, 2):
            tiny(f"lstm-{seed}", f"seed={seed}")
            tiny(f"gru-{seed}", f"seed={seed}", "encoder.cell.type=gru", "decoder.cell.type=gru")
        outcome = command("compare", "gru-1", "gru-2", "lstm-1", "lstm-2", "--out", "curves.png", "--out", "curves.svg")
        assert outcome.code == 0, outcome.err
        header, gru, lstm, by, *paired = outcome.out.splitlines()
        assert header.split()[:8] == ["run", "parameters", "steps", "minutes", "loss", "perplexity", "exact", "cer"]
        assert gru.startswith("gru (2 seeds)")
        assert gru.endswith("encoder.cell=gru, decoder.cell=gru")
        assert lstm.startswith("lstm (2 seeds)")
        assert " ± " in lstm
        assert by == "Measured at each run's best validation by loss (lower is better)."
        assert len(paired) == 1
        assert "of 2 seeds" in paired[0]
        count = sum(each.numel() for each in seqloom.load("lstm-1").model.parameters())
        assert f" {count:,} " in lstm
        assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
        assert Path("curves.svg").read_text().count("± standard error") == 2

    def test_the_measure_that_decides_can_be_chosen(self, command: Command, translator: Path) -> None:
        assert "by cer (lower is better)" in command("compare", translator, "--by", "cer").out
        assert 'did you mean "cer"' in command("compare", translator, "--by", "ceer").complaint

    def test_mistakes_are_refused(self, command: Command, translator: Path) -> None:
        assert "not a run folder" in command("compare", translator, "nowhere").complaint
        assert "x.png" in command("compare", translator, "--out", "x").complaint

    def test_without_matplotlib_there_is_a_table_but_no_picture(
        self, command: Command, translator: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert command("compare", translator).code == 0
        assert command("gradients", "dates", "--length", 2).code == 0
        for verb, name in (("compare", translator), ("gradients", "dates")):
            assert 'pip install "seqloom[plot]"' in command(verb, name, "--out", "x.png").complaint
