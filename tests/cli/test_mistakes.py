"""A user's mistake is one line on stderr and exit code 2; nothing is written, nobody sees a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import LANGUAGE_MODEL, Command, pairs, toml, tsv, written


def training_complaint(command: Command, recipe: dict[str, Any], *arguments: object, stdin: bytes = b"") -> str:
    """What `seqloom train` says of bad input; it must not have begun a run folder."""
    outcome = command("train", toml(recipe), "--out", "out", *arguments, stdin=stdin)
    assert not list(Path().glob("*out*"))
    return outcome.complaint


def says(message: str, *words: str) -> None:
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


class TestObjectives:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (["objective=mixer"], ["train.select_by", '"mixer" improves outputs', "exact, cer"]),
            (["objective=mixer", "train.select_by=exact", "objective.reward=blue"], ['did you mean "bleu"']),
            (["objective=minimum_risk", "train.select_by=exact", "objective.sharpness=0"], ["objective", "above 0"]),
            (["objective=raml", "objective.vocabulary=9"], ["objective.vocabulary", "derived from the data"]),
            (["objective=raml", "objective.samples=0"], ["objective", "samples = 0"]),
            (["objective=scheduled-sampling", "objective.decay=cosine"], ["objective.decay", '"linear"']),
            (["objective=scheduled_samplin"], ["objective", 'did you mean "scheduled_sampling"']),
            (["task.bag=true"], ["bag = true", "joint = true"]),
            (["objective.costs.ponder=0.1"], ["objective.costs.ponder", "it has none"]),
            (["decoder.type=pointer"], ["decoder.type", 'task.target.type = "places"']),
            (["task.copy=true"], ["decoder.type", "task.copy = true", '"copy"']),
            (["objective=margin", "train.select_by=exact"], ["search.rank_by", '"sum"', '"last"']),
            (
                ["objective=margin", "train.select_by=exact", "search.rank_by=last", "objective.constrained=true"],
                ["objective", "has no constraints", "task.bag"],
            ),
        ],
    )
    def test_settings_that_do_not_fit_are_told_before_anything_is_written(
        self, command: Command, recipe: dict[str, Any], settings: list[str], words: list[str]
    ) -> None:
        chosen = [each for setting in settings for each in ("--set", setting)]
        says(training_complaint(command, recipe, "--data", tsv(), *chosen), *words)

    def test_a_language_model_has_no_outputs_to_improve(self, command: Command) -> None:
        data = written("lines.txt", "".join(f"{target}\n" for _, target in pairs()))
        message = training_complaint(command, LANGUAGE_MODEL, "--data", data, "--set", "objective=expected_reward")
        says(message, "expected_reward", "which a language model does not have")


class TestData:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", ["bad.tsv is empty"]),
            (b"a\tb\nc\n", ["bad.tsv, line 2", "expected 2 columns", "not 1 column", "'c'", "--skip-bad"]),
            (b"a\tb\nc\td\te\n", ["bad.tsv, line 2", "not 3 columns", r"'c\td\te'"]),
            (b"a\tb\n\nc\td\n", ["bad.tsv, line 2", "a source, a tab and a target"]),
            (b"a\tb\nc\xe9\td\n", ["bad.tsv, line 2", "UTF-8", "byte 2 is 0xE9"]),
            (b"a\tb\n\tc\n", ["bad.tsv, line 2", "source is empty"]),
            (b"a\tb\nc\t \n", ["bad.tsv, line 2", "target is empty"]),
            (b"a\tb\n", ["only one distinct source", "more training data"]),
            (b"a\tb\na\tc\n", ["only one distinct source", "validation data"]),
        ],
    )
    def test_a_bad_file_is_told_with_line_and_remedy(
        self, command: Command, recipe: dict[str, Any], content: bytes, words: list[str]
    ) -> None:
        says(training_complaint(command, recipe, "--data", written("bad.tsv", content)), *words)

    def test_a_line_beyond_the_limit_is_refused(self, command: Command, recipe: dict[str, Any]) -> None:
        data = tsv(rows=[("a", "b"), ("c", "d" * 30)])
        message = training_complaint(command, recipe, "--data", data, "--set", "data.max_characters=20")
        says(message, "line 2", "at most 20 characters", "'c\\tddd")

    def test_a_missing_file_is_named(self, command: Command, recipe: dict[str, Any]) -> None:
        says(training_complaint(command, recipe, "--data", "nowhere.tsv"), "nowhere.tsv", "no such file")

    def test_no_data_at_all_is_told(self, command: Command, recipe: dict[str, Any]) -> None:
        says(training_complaint(command, recipe), "no training data", "--data")
        says(command("train").complaint, "nothing to train on", "--data")

    def test_a_side_with_fewer_lines_is_told_with_both_counts(self, command: Command, recipe: dict[str, Any]) -> None:
        files = [written("a.txt", "1\n2\n3\n"), written("b.txt", "1\n2\n")]
        message = training_complaint(command, recipe, "--data", files[0], "--data", files[1])
        says(message, "a.txt has 3 lines", "b.txt has 2 lines")

    def test_three_files_are_too_many(self, command: Command, recipe: dict[str, Any]) -> None:
        says(training_complaint(command, recipe, *["--data", tsv()] * 3), "3 files", "two line-aligned files")

    def test_bad_validation_data_is_named_too(self, command: Command, recipe: dict[str, Any]) -> None:
        bad = written("valid.tsv", "a\tb\tc\n")
        says(training_complaint(command, recipe, "--data", tsv(), "--valid", bad), "valid.tsv, line 1")

    def test_a_bad_line_of_standard_input_is_named_so(self, command: Command, recipe: dict[str, Any]) -> None:
        message = training_complaint(command, recipe, "--data", "-", stdin=b"a\tb\nc\n")
        says(message, "standard input, line 2", "'c'")
        assert "spool" not in message

    def test_skipped_lines_are_counted_and_said(self, command: Command, recipe: dict[str, Any]) -> None:
        bad = written("bad.tsv", tsv().read_bytes() + b"\xff\tx\nalone\n\xfe\ty\n")
        outcome = command("train", toml(recipe), "--data", bad, "--skip-bad", "--out", "out")
        assert outcome.code == 0
        line = "Skipped 3 training lines: 2 x invalid UTF-8 (first at line 61), 1 x 1 column (first at line 62)."
        assert line in outcome.err.splitlines()

    def test_bad_lines_are_skipped_while_a_recipe_is_chosen_too(self, command: Command) -> None:
        bad = written("bad.tsv", b"\xff\tx\n" + tsv().read_bytes())
        small = ["train.steps=1", "encoder.size=8", "decoder.size=8"]
        sets = [word for each in small for word in ("--set", each)]
        outcome = command("train", "--data", bad, "--skip-bad", "--out", "out", *sets)
        assert outcome.code == 0
        assert "Skipped 1 training line: 1 x invalid UTF-8 (first at line 1)." in outcome.err

    @pytest.mark.parametrize("verb", ["score", "evaluate"])
    def test_measuring_meets_the_same_checks(self, command: Command, translator: Path, verb: str) -> None:
        bad = written("bad.tsv", "12\t21\n13\n")
        says(command(verb, translator, "--data", bad).complaint, "bad.tsv, line 2", "not 1 column", "'13'")
        says(command(verb, translator, stdin="12\n").complaint, "standard input, line 1", "'12'")
        says(command(verb, translator, "--data", "nowhere.tsv").complaint, "nowhere.tsv", "no such file")
        says(command(verb, translator, stdin="").complaint, "standard input is empty")
        skipping = command(verb, translator, "--data", bad, "--skip-bad")
        assert (skipping.code, skipping.err) == (0, "Skipped 1 bad line: 1 x 1 column (first at line 2).\n")

    def test_bad_utf8_on_standard_input_of_predict_has_its_line(self, command: Command, translator: Path) -> None:
        outcome = command("predict", translator, stdin=b"12\n13\n\xff\n")
        says(outcome.complaint, "standard input, line 3", "not UTF-8", "iconv")
        assert outcome.out == ""


class TestColumns:
    def test_one_column_where_the_recipe_wants_two(self, command: Command, recipe: dict[str, Any]) -> None:
        says(
            training_complaint(command, recipe, "--data", written("a.txt", "one\ntwo\n")), "a.txt, line 1", "2 columns"
        )

    def test_one_column_without_a_recipe(self, command: Command) -> None:
        says(command("train", "--data", written("a.txt", "one\ntwo\n"), "--out", "out").complaint, "a.txt", "2 columns")

    def test_two_columns_where_the_recipe_wants_one(self, command: Command) -> None:
        says(training_complaint(command, LANGUAGE_MODEL, "--data", tsv()), "pairs.tsv, line 1", "without tabs", "100")
        both = written("pairs.jsonl", '{"source": "a", "target": "b"}\n')
        says(training_complaint(command, LANGUAGE_MODEL, "--data", both), "pairs.jsonl, line 1", "without a source")
        files = ["--data", written("a.txt", "1\n"), "--data", written("b.txt", "1\n")]
        says(training_complaint(command, LANGUAGE_MODEL, *files), "2 paths", "one file of text")


class TestRecipes:
    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            ("decoder.sise=3", ["recipe.toml: decoder.sise = 3", "unknown key", '"size"']),
            ("decodr.size=3", ["decodr", "unknown key", '"decoder"']),
            ("decoder.type=recurent", ['decoder.type = "recurent"', "no such decoder", '"recurrent"']),
            ("decoder.cell.type=lstn", ['decoder.cell.type = "lstn"', "no such cell", '"lstm"']),
            ("decoder.size=big", ['decoder.size = "big"', "expected an integer"]),
            ("train.steps=1.5", ["train.steps = 1.5", "expected an integer"]),
            ("train.steps=0", ["train.steps = 0", "more than 0"]),
            ('task.metrics=["blue"]', ['task.metrics = "blue"', "no such metric"]),
            ("train.select_by=bleu", ['train.select_by = "bleu"', "exact, cer"]),
            ("search.beam_size=0", ["search", "beam_size = 0"]),
            ("nonsense", ['"nonsense"', "expected key=value"]),
            ("=3", ['"=3"', "expected key=value"]),
            ("a..b=3", ["a..b=3", "expected key=value"]),
            ("seed.deep=3", ["seed", "no table"]),
            ("task.source=[", ["task.source=[", "not a TOML value"]),
            ("train.device=nonsense", ['train.device = "nonsense"', "cpu"]),
            ("init=nowhere", ["nowhere is not a run folder"]),
        ],
    )
    def test_a_wrong_setting_is_told_with_its_key(
        self, command: Command, recipe: dict[str, Any], setting: str, words: list[str]
    ) -> None:
        recipe["seed"] = 1
        says(training_complaint(command, recipe, "--data", tsv(), "--set", setting), *words)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (["decoder.attention={type='dot'}", "encoder.size=24"], ["decoder", "dot attention", "16 and 24"]),
            (["share_embeddings=true"], ["share_embeddings", "task.source", "task.target", "task.joint = true"]),
            (
                ["share_embeddings=true", "task.joint=true", "encoder.embedding_size=4"],
                ["do not fit", "share_embeddings", "4) and", "8)"],
            ),
            (["encoder={type='transformer',size=10,heads=4}"], ["encoder", "heads = 4", "size 10"]),
            (["decoder.attention={type='multihead',heads=5}"], ["decoder", "heads = 5", "size 16"]),
            (["decoder.bridge=copy", "decoder.layers=2"], ["do not fit", "bridge", "layers"]),
            (["decoder.tied=true", "decoder.combine=add"], ["decoder", "tied", "embedding_size"]),
        ],
    )
    def test_parts_that_do_not_fit_are_told_before_anything_is_written(
        self, command: Command, recipe: dict[str, Any], settings: list[str], words: list[str]
    ) -> None:
        sets = [word for each in settings for word in ("--set", each)]
        says(training_complaint(command, recipe, "--data", tsv(), *sets), *words)

    def test_a_language_model_has_nothing_to_attend(self, command: Command) -> None:
        text = written("a.txt", "".join(f"{number}\n" for number in range(30)))
        setting = "decoder.attention=additive"
        says(training_complaint(command, LANGUAGE_MODEL, "--data", text, "--set", setting), "attention", "[encoder]")

    def test_an_unknown_recipe_gets_the_nearest_name(self, command: Command) -> None:
        says(command("train", "g2p-lstn", "--data", tsv()).complaint, '"g2p-lstn"', 'did you mean "g2p-lstm"')
        says(command("check", "nowhere/x.toml").complaint, "nowhere/x.toml", "cannot be read")

    @pytest.mark.parametrize("verb", ["train", "check"])
    def test_bad_toml_is_told_with_its_place(self, command: Command, verb: str) -> None:
        says(command(verb, written("bad.toml", "seed = 1\nsize = = 2\n")).complaint, "bad.toml", "TOML", "line 2")

    def test_data_given_as_a_recipe_gets_a_hint(self, command: Command) -> None:
        says(command("train", tsv()).complaint, "pairs.tsv", "--data")

    def test_a_device_that_is_not_there_is_told(self, command: Command, recipe: dict[str, Any]) -> None:
        says(training_complaint(command, recipe, "--data", tsv(), "--device", "nonsense"), '"nonsense"', "cpu")
        import torch

        if not torch.cuda.is_available():
            says(training_complaint(command, recipe, "--data", tsv(), "--device", "cuda"), '"cuda"', "no usable CUDA")


class TestFolders:
    def test_an_output_folder_that_exists_is_not_touched(self, command: Command, recipe: dict[str, Any]) -> None:
        Path("out").mkdir()
        written("out/precious.txt", "precious")
        message = command("train", toml(recipe), "--data", tsv(), "--out", "out").complaint
        says(message, "out already exists", "--resume", "--out")
        assert [path.name for path in Path("out").iterdir()] == ["precious.txt"]

    @pytest.mark.parametrize("verb", ["predict", "evaluate", "score", "generate", "explain"])
    def test_what_is_no_run_is_told_by_every_verb(self, command: Command, verb: str) -> None:
        says(command(verb, "nowhere").complaint, "nowhere is not a run folder", "seqloom train")

    def test_resuming_what_is_no_run_is_told(self, command: Command) -> None:
        Path("folder").mkdir()
        says(command("train", "--resume", "--out", "nowhere").complaint, "nowhere is not a run folder")
        says(command("train", "--resume", "--out", "folder").complaint, "folder is not a run folder", "format.json")
        assert not list(Path("folder").iterdir())

    def test_explaining_into_a_folder_that_is_not_there_is_told(self, command: Command, translator: Path) -> None:
        outcome = command("explain", translator, "12", "--out", "no/such/page.html")
        says(outcome.complaint, "no/such/page.html", "there is no folder no/such")
        Path("folder").mkdir()
        says(command("explain", translator, "12", "--out", "folder").complaint, "folder is a folder")
        assert not list(Path("folder").iterdir())

    def test_a_cache_nobody_can_write_is_one_line_and_training_goes_on(
        self, command: Command, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SEQLOOM_CACHE", str(written("file", "no folder")))
        outcome = command("train", toml(recipe), "--out", "out", "--data", tsv())
        assert outcome.code == 0
        assert outcome.err.count("The cache file cannot be written") == 1


class TestUse:
    def test_a_language_model_does_not_predict_and_a_translator_does_not_generate(
        self, command: Command, translator: Path, language_model: Path
    ) -> None:
        says(command("predict", language_model, stdin="12\n").complaint, "language model", "generate")
        says(command("generate", translator).complaint, "source", "predict")
        says(command("explain", language_model, "12").complaint, "language model takes no source")
        says(command("explain", translator).complaint, "any other model takes one")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--n-best", 4], ["beam_size = 3", "n_best = 4"]),
            (["--n-best", 3, "--beam-size", 2], ["beam_size = 2", "n_best = 3"]),
            (["--n-best", 0], ["n_best = 0"]),
            (["--beam-size", 0], ["beam_size = 0"]),
            (["--set", "nonsense"], ["nonsense", "expected key=value"]),
            (["--set", "length_penaltie=1"], ["length_penaltie", '"length_penalty"']),
            (["--set", "length_penalty=much"], ["length_penalty", "expected a number"]),
            (["--device", "nonsense"], ['"nonsense"', "cpu"]),
            (["--require", ""], ["required text ''", "empty"]),
            (["--require", "x"], ["required text 'x'", "vocabulary"]),
            (["--ban", "x"], ["banned text 'x'", "vocabulary"]),
            (["--prefix", "x"], ["prefix 'x'", "vocabulary"]),
            (["--require", "1" * 50], ["no output for '12'", "length limit"]),
        ],
    )
    def test_impossible_wishes_are_told(
        self, command: Command, translator: Path, options: list[object], words: list[str]
    ) -> None:
        outcome = command("predict", translator, *options, stdin="12\n")
        says(outcome.complaint, *words)
        assert outcome.out == ""

    @pytest.mark.parametrize("verb", ["predict", "evaluate", "score", "generate", "explain"])
    def test_every_verb_refuses_a_device_it_does_not_know(self, command: Command, translator: Path, verb: str) -> None:
        says(command(verb, translator, "--device", "tpu9").complaint, '"tpu9" is unknown', "cpu")

    def test_an_empty_source_cannot_be_explained(self, command: Command, translator: Path) -> None:
        says(command("explain", translator, "").complaint, "source '' is empty")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["trian"], ["trian", "seqloom --help"]),
            (["train", "--nonsense"], ["--nonsense", "seqloom train --help"]),
            (["predict"], ["Missing argument", "seqloom predict --help"]),
            (["predict", "run", "--n-best", "many"], ["--n-best", "integer"]),
            (["explain", "run", "text", "more"], ["more", "seqloom explain --help"]),
            (["generate", "run", "--count", "0"], ["--count", "1"]),
            (["generate", "run", "--top-k", "-1"], ["--top-k", "0"]),
            (["average", "run"], ["--out", "seqloom average --help"]),
        ],
    )
    def test_a_mistyped_command_is_one_line_with_the_way_to_help(
        self, command: Command, arguments: list[str], words: list[str]
    ) -> None:
        says(command(*arguments).complaint, *words)

    def test_no_command_at_all_shows_the_help(self, command: Command) -> None:
        outcome = command()
        assert (outcome.code, outcome.err) == (0, "")
        says(outcome.out, "train", "predict", "explain")

    def test_averaging_takes_two_checkpoints(self, command: Command, recipe: dict[str, Any]) -> None:
        recipe["train"]["steps"] = 2
        assert command("train", toml(recipe), "--data", tsv(rows=pairs(10)), "--out", "one").code == 0
        says(command("average", "one", "--out", "mean").complaint, "one has 1 checkpoint:", "two or more")
        assert not Path("mean").exists()
