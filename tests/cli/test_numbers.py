"""Numbers in, a number out, on the command line; and data made on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.config.recipes import read_recipe
from seqloom.data.generators.adding import adding
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, toml, trained, tsv
from tests.cli.test_mistakes import says, training_complaint
from tests.cli.test_use import fine, sets

PAIRS = [(example.source, example.target) for example in adding(60, length=6)]


def small() -> dict[str, Any]:
    recipe = read_recipe("adding")
    recipe["encoder"] |= {"size": 8, "embedding_size": 8}
    recipe["train"] = {"tokens": 120, "steps": 6, "learning_rate": 0.01, "device": "cpu", "log_every": 1}
    return recipe


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("adder"), small(), PAIRS)


class TestAnAdder:
    def test_a_line_of_numbers_in_is_a_number_out(self, command: Command, adder: Path) -> None:
        lines = fine(command("predict", adder, stdin=f"{PAIRS[0][0]}\n\n{PAIRS[1][0]}\n")).out.split("\n")
        assert len(lines) == 4
        assert lines[1] == ""
        assert all(-2 < float(lines[place]) < 3 for place in (0, 2))
        model = seqloom.load(adder)
        vectors = [[float(part) for part in pair.split(",")] for pair in PAIRS[0][0].split()]
        assert model.predict([vectors]) == model.predict([PAIRS[0][0]])
        assert model.predict([vectors])[0] == pytest.approx([float(lines[0])], abs=1e-6)
        said = json.loads(fine(command("predict", adder, "--json", stdin=PAIRS[0][0])).out)
        assert said["outputs"][0]["text"] == model.predict([vectors])[0]

    def test_it_is_measured_by_its_squared_error_which_is_its_loss_and_has_no_perplexity(
        self, command: Command, adder: Path
    ) -> None:
        data = tsv(rows=PAIRS[:5])
        model = seqloom.load(adder)
        errors = [(model.predict([source])[0][0] - float(target)) ** 2 for source, target in PAIRS[:5]]
        measured = json.loads(fine(command("evaluate", adder, "--data", data)).out)
        assert measured == {"examples": 5, "mse": pytest.approx(sum(errors) / 5, abs=1e-4)}
        lines = [json.loads(line) for line in (adder / "metrics.jsonl").read_text().splitlines()]
        valid = [line for line in lines if line["kind"] == "valid"]
        assert valid
        for line in valid:
            assert "perplexity" not in line
            assert line["loss"] == pytest.approx(line["mse"], rel=1e-5)

    def test_a_resumed_run_equals_an_unbroken_one(self, command: Command) -> None:
        data = tsv(rows=PAIRS)
        for name, steps in (("whole", 4), ("half", 2)):
            fine(command("train", toml(small()), "--data", data, "--out", name, *sets(f"train.steps={steps}")))
        fine(command("train", "--resume", "--out", "half", *sets("train.steps=4")))
        whole, half = (fine(command("predict", name, stdin=PAIRS[0][0])).out for name in ("whole", "half"))
        assert whole == half

    def test_a_transformer_reads_numbers_too(self, command: Command) -> None:
        recipe = small() | {"encoder": {"type": "transformer", "size": 8, "layers": 1, "heads": 2, "hidden": 8}}
        fine(command("train", toml(recipe), "--data", tsv(rows=PAIRS), "--out", "out"))
        assert fine(command("predict", "out", stdin=PAIRS[0][0])).out.count("\n") == 1

    def test_numbers_can_become_text_with_attention_and_an_explanation(self, command: Command) -> None:
        part = {"type": "recurrent", "size": 8, "embedding_size": 8}
        recipe = small() | {"objective": "cross_entropy", "encoder": part}
        recipe |= {"decoder": {**part, "attention": {"type": "additive", "size": 8}}}
        recipe["task"] = {"source": "numbers", "target": {"type": "text", "units": "char"}, "metrics": ["exact"]}
        fine(command("train", toml(recipe), "--data", tsv(rows=PAIRS), "--out", "out"))
        found = json.loads(fine(command("predict", "out", "--attention", stdin=PAIRS[0][0])).out)
        assert len(found["outputs"][0]["attention"][0]) == 6
        assert PAIRS[0][0].split()[0] in fine(command("explain", "out", PAIRS[0][0])).out

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["score"], ["no log-probabilities", "evaluate"]),
            (["evaluate", "--beam-size", "3"], ["at once", "leave out beam_size"]),
            (["predict", "--n-best", "2"], ["at once", "leave out n_best"]),
            (["predict", "--attention"], ["leave out attention"]),
            (["predict", "--prefix", "1"], ["leave out prefix"]),
            (["predict", "--ban", "1", "--require", "2"], ["leave out banned, required"]),
        ],
    )
    def test_what_needs_a_search_is_refused(
        self, command: Command, adder: Path, arguments: list[str], words: list[str]
    ) -> None:
        verb, *options = arguments
        stdin = PAIRS[0][0] if verb == "predict" else "\t".join(PAIRS[0])
        says(command(verb, adder, *options, stdin=stdin).complaint, *words)

    def test_there_is_no_search_to_explain_and_nothing_to_generate(self, command: Command, adder: Path) -> None:
        says(command("explain", adder, PAIRS[0][0]).complaint, "at once", "predict")
        says(command("generate", adder).complaint, "reads a source")

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("0.1,0 x,1", ["'x' is not a number"]),
            ("0.1 0.2", ["1 component", "expected 2"]),
            ("0.1,0 0.2", ["vector 2"]),
            ("nan,0", ["not finite"]),
        ],
    )
    def test_a_bad_line_is_named(self, command: Command, adder: Path, line: str, words: list[str]) -> None:
        says(command("predict", adder, stdin=line).complaint, repr(line), *words)

    def test_python_mistakes_are_one_line(self, adder: Path) -> None:
        model = seqloom.load(adder)
        for mistake, word in (
            (lambda: model.predict([[[1, 2, 3]]]), "expected 2"),
            (lambda: model.predict([None]), "None"),
            (lambda: model.predict([PAIRS[0][0]], beam_size=2), "beam_size"),
            (lambda: model.evaluate([([[0.1, 0.2]], "x")]), "'x' is not a number"),
        ):
            with pytest.raises(SeqloomError) as caught:
                mistake()
            assert word in str(caught.value)
            assert "\n" not in str(caught.value)

    def test_lists_of_vectors_train_as_lines_do(self) -> None:
        vectors = [
            ([[float(part) for part in pair.split(",")] for pair in source.split()], float(target))
            for source, target in PAIRS
        ]
        for name, rows in (("lines", PAIRS), ("lists", vectors)):
            seqloom.fit(rows, small(), out=name, valid=rows[:6], display=Display.quiet())
        first, second = (seqloom.load(name).predict([PAIRS[0][0]]) for name in ("lines", "lists"))
        assert first == second


class TestRecipesThatDoNotFit:
    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            ("objective=cross_entropy", ['objective.type = "cross_entropy"', "compares tokens", "made of vectors"]),
            ('task.metrics=["exact"]', ['task.metrics = "exact"', "compares tokens"]),
            ("task.target.type=text", ['"value"', "works on vectors", "task.target"]),
            ("decoder.type=recurrent", ['decoder.type = "recurrent"', "works on tokens", "task.target"]),
            ("encoder.features=2", ["encoder.features = 2", "derived from the data"]),
            ("encoder.vocabulary=2", ["encoder.vocabulary = 2", "derived from the data"]),
            ("share_embeddings=true", ["share_embeddings", "tokens on both sides"]),
            ("train.select_by=exact", ["train.select_by", "mse"]),
        ],
    )
    def test_they_are_told_before_the_data_is_read(self, command: Command, setting: str, words: list[str]) -> None:
        recipe = small()
        for outcome in (
            training_complaint(command, recipe, "--data", "nowhere.tsv", "--set", setting),
            command("check", toml(recipe), "--set", setting).complaint,
        ):
            says(outcome, *words)

    def test_a_value_of_symbols_and_a_mean_of_texts_are_refused(self, command: Command, recipe: dict[str, Any]) -> None:
        says(training_complaint(command, recipe, "--set", "decoder.type=value"), "works on vectors", "task.target")
        says(training_complaint(command, recipe, "--set", 'task.metrics=["mse"]'), "compares vectors")

    def test_data_that_is_no_numbers_is_told_with_the_value(self, command: Command) -> None:
        bad = tsv(rows=[*PAIRS, ("0.1,0 0.2,1,1", "3")])
        says(training_complaint(command, small(), "--data", bad), "'0.1,0 0.2,1,1'", "vector 2", "3 components")

    def test_a_target_of_several_vectors_is_told(self, command: Command) -> None:
        rows = [(source, "1 2") for source, _ in PAIRS]
        says(training_complaint(command, small(), "--data", tsv(rows=rows)), "one vector per source", "has 2")

    def test_a_perplexity_of_numbers_cannot_choose_a_checkpoint(self, command: Command) -> None:
        outcome = command("train", toml(small()), "--data", tsv(rows=PAIRS), "--out", "out",
                          *sets("train.select_by=perplexity"))  # fmt: skip
        assert outcome.code == 2
        assert 'train.select_by = "perplexity" is not measured here' in outcome.err


class TestData:
    def test_without_a_name_all_are_listed_with_their_settings(self, command: Command) -> None:
        lines = fine(command("data")).out.splitlines()
        found = {line.split()[0]: line for line in lines}
        assert list(found) == sorted(found)
        assert {"adding", "addition", "arithmetic", "cipher", "copying", "dates", "delayed_copy"} <= found.keys()
        assert "length = 100" in found["adding"]
        assert "reverse = false" in found["copying"]

    def test_a_file_is_written_and_the_rest_of_the_seed_is_another(self, command: Command) -> None:
        outcome = fine(command("data", "addition", "--out", "a.tsv", "--count", 40, "--seed", 2))
        assert outcome.err == "40 examples are in a.tsv.\n"
        fine(command("data", "addition", "--out", "b.tsv", "--count", 20, "--seed", 2, "--skip", 40))
        first, second = (Path(name).read_text().splitlines() for name in ("a.tsv", "b.tsv"))
        assert (len(first), len(second)) == (40, 20)
        assert not {line.split("\t")[0] for line in first} & {line.split("\t")[0] for line in second}
        together = fine(command("data", "addition", "--count", 60, "--seed", 2)).out.splitlines()
        assert together == first + second

    def test_settings_are_set_and_texts_have_one_column(self, command: Command) -> None:
        out = fine(command("data", "counting", "--count", 5, *sets("shortest=2", "longest=2"))).out
        assert out == "aabb\n" * 5

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["addin"], ['"addin"', '"adding"']),
            (["adding", "--set", "lenght=3"], ["lenght = 3", '"length"']),
            (["adding", "--set", "length=x"], ['adding.length = "x"', "an integer"]),
            (["adding", "--set", "seed=3"], ["seed = 3", "unknown setting"]),
            (["adding", "--set", "length=1"], ["length is 1", "2 or more"]),
            (["addition", "--count", "26", "--set", "digits=1"], ["count is 26", "1 to 25"]),
            (["adding", "--count", "0"], ["--count", "1"]),
            (["adding", "--out", "nowhere/a.tsv"], ["no folder nowhere"]),
        ],
    )
    def test_a_mistake_is_one_line(self, command: Command, arguments: list[str], words: list[str]) -> None:
        says(command("data", *arguments).complaint, *words)
        assert not list(Path().glob("*.tsv"))

    @pytest.mark.parametrize("name", ["adding", "addition", "arithmetic", "counting"])
    def test_the_recipe_of_a_generator_trains_on_what_it_makes(self, command: Command, name: str) -> None:
        fine(command("data", name, "--out", "data.tsv", "--count", 60))
        less = ["train.steps=3", "train.tokens=600", "train.decode=4", "decoder.size=8"]
        changes = less[:3] if name == "adding" else less
        changes += [] if name == "counting" else ["encoder.size=8"]
        fine(command("train", name, "--data", "data.tsv", "--out", "out", *sets(*changes)))
        measured = json.loads(fine(command("evaluate", "out", "--data", "data.tsv")).out)
        assert {"adding": "mse", "counting": "perplexity"}.get(name, "exact") in measured
