"""The way from a file of pairs to answers, on the command line and in Python."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import seqloom
from seqloom.cli.main import VERBS, app
from seqloom.config.complete import complete
from seqloom.config.recipes import read_recipe
from seqloom.data.generators.catalogue import write_examples
from seqloom.data.generators.mouths import mouths
from seqloom.data.generators.scenes import scenes
from seqloom.data.generators.shapes import shapes
from seqloom.data.generators.sprites import sprites
from seqloom.errors import SeqloomError
from seqloom.storage.run import Run
from seqloom.train.display import Display
from tests.cli.conftest import LANGUAGE_MODEL, Command, Outcome, pairs, toml, tsv, written

RECIPES = [
    "adding", "addition", "arithmetic", "arithmetic-text", "babi", "bert", "captions-attention", "captions-first",
    "captions-start", "char-lm", "cipher", "cipher-agent", "cloze", "counting", "dates", "delaunay", "delayed-copy",
    "django", "django-plain", "frames", "g2p-lstm", "g2p-mixer", "g2p-monotonic", "g2p-small", "g2p-ssnt",
    "g2p-transformer", "gnmt", "gnmt-refined", "headlines", "hred", "hull", "labels", "lips", "lips-and-sound",
    "lips-ctc", "modes", "multi-model", "multi30k-byte-net", "multi30k-conv-s2s", "multi30k-deep-att",
    "multi30k-experts",
    "multi30k-lstm", "multi30k-online", "multi30k-transformer", "music", "parity", "parsing", "piecewise", "pixels",
    "pointer-generator", "rare-words", "reordering", "scan-conv-s2s", "scan-lstm", "scan-transformer", "slots",
    "sorting", "speech-attention", "speech-blocks", "speech-ctc", "speech-signal", "speech-transducer", "tags",
    "text-adaptive", "text-gpt", "text-lstm", "tour", "wave", "word-lstm", "word-sentinel", "xml",
]  # fmt: skip
SENTENCE = "ein mann geht mit seinem hund durch den park"


def sets(*assignments: str) -> list[str]:
    return [word for each in assignments for word in ("--set", each)]


def recordings() -> Path:
    """Noise, and numbers to go with it."""
    import soundfile

    chance = np.random.default_rng(1)
    for number in range(8):
        soundfile.write(f"{number}.wav", chance.normal(0, 0.1, 6000), 8000)
    return tsv("sounds.tsv", [(f"{number}.wav", f"{number} {number + 1}") for number in range(8)])


def filmed() -> Path:
    """Films of generated mouths, and what they say."""
    write_examples(Path("mouths.tsv"), mouths(12, words=2))
    return Path("mouths.tsv")


def captioned() -> Path:
    """Pictures of generated scenes, and their captions."""
    write_examples(Path("scenes.tsv"), scenes(12))
    return Path("scenes.tsv")


@pytest.mark.parametrize(
    ("given", "found"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)]
)
def test_threads_do_not_spin_for_long_unless_they_are_told_to(
    command: Command, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], found: str | None
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    command("--version")
    assert os.environ.get("GOMP_SPINCOUNT") == found


def fine(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    return outcome


class TestTraining:
    @pytest.mark.parametrize(
        ("rows", "chosen", "why"),
        [
            (pairs(), "dates", "short strings"),
            ([(f"w{n}", "L UW M") for n in range(40)], "g2p-lstm", "like phonemes"),
            ([(f"{SENTENCE} {n}", f"a man walks his dog in the park no{n}") for n in range(40)], "multi30k-lstm",
             "both sides are sentences"),
        ],
    )  # fmt: skip
    def test_without_a_recipe_it_says_which_it_took_and_why(
        self, command: Command, rows: list[tuple[str, str]], chosen: str, why: str
    ) -> None:
        small = sets("encoder.size=8", "decoder.size=8", "train.steps=1")
        outcome = fine(command("train", "--data", tsv(rows=rows), "--out", "out", *small))
        saw, chose, alternative = outcome.err.splitlines()[:3]
        assert saw.startswith(f"Saw {len(rows)} pairs: ")
        assert why in saw
        assert chose.startswith(f"Chose the recipe {chosen} (")
        assert alternative.startswith("Worth a try: ")
        assert "seqloom predict out" in outcome.err.splitlines()[-1]

    @pytest.mark.parametrize("objective", ["expected_reward", "minimum_risk", "mixer", "margin", "raml", "end_to_end"])
    def test_an_objective_goes_on_from_a_trained_run(
        self, command: Command, recipe: dict[str, Any], objective: str
    ) -> None:
        fine(command("train", toml(recipe), "--data", tsv(), "--out", "likely", *sets("train.steps=3")))
        chosen = sets("init=likely", f"objective={objective}", "train.select_by=exact", "train.steps=3")
        chosen += sets("search.rank_by=last") if objective == "margin" else []
        fine(command("train", "--data", tsv(), "--out", "further", *chosen, *sets("train.log_every=1")))
        lines = [json.loads(line) for line in Path("further/metrics.jsonl").read_text().splitlines()]
        if objective in ("expected_reward", "minimum_risk", "mixer"):
            assert all("reward" in line for line in lines if line["kind"] == "train")
        assert "perplexity" in lines[-1]
        assert len(fine(command("predict", "further", stdin=b"123\n")).out.splitlines()) == 1

    @pytest.mark.parametrize("objective", ["scheduled_sampling", "expected_reward", "minimum_risk", "mixer", "margin"])
    def test_scores_that_are_no_numbers_end_in_a_line_that_says_so(
        self, command: Command, recipe: dict[str, Any], objective: str
    ) -> None:
        wild = sets("train.learning_rate=1e38", "train.warmup=0", "train.clip=0", f"objective={objective}")
        wild += sets("train.select_by=exact", "search.rank_by=last") if objective == "margin" else []
        wild += sets("train.select_by=exact") if objective in ("expected_reward", "minimum_risk", "mixer") else []
        outcome = command("train", toml(recipe), "--data", tsv(), "--out", "out", *wild)
        assert outcome.code == 2
        assert "Traceback" not in outcome.err
        assert "was skipped" in outcome.err

    def test_a_tenth_is_held_out_unless_validation_data_is_given(
        self, command: Command, recipe: dict[str, Any]
    ) -> None:
        held = fine(command("train", toml(recipe), "--data", tsv(), "--out", "held"))
        assert "54 to train on; 6 to validate with, held out of them." in held.err
        valid = tsv("valid.tsv", pairs(4))
        given = fine(command("train", toml(recipe), "--data", tsv(), "--valid", valid, "--out", "given"))
        assert "60 to train on; 4 to validate with, given." in given.err
        assert "Validation sources that are in the training data too: 4." in given.err
        logged = [json.loads(line) for line in Path("held/metrics.jsonl").read_text().splitlines()]
        assert {"loss", "perplexity", "exact", "cer"} <= logged[-1].keys()

    def test_every_form_of_the_same_data_trains_the_same_model(self, command: Command, recipe: dict[str, Any]) -> None:
        plain = tsv()
        lines = "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in pairs())
        left = written("a.txt", "".join(f"{source}\n" for source, _ in pairs()))
        right = written("b.txt", "".join(f"{target}\n" for _, target in pairs()))
        forms: dict[str, tuple[list[object], bytes]] = {
            "tsv": ([plain], b""),
            "jsonl": ([written("pairs.jsonl", lines)], b""),
            "files": ([left, right], b""),
            "gz": ([written("pairs.tsv.gz", gzip.compress(plain.read_bytes()))], b""),
            "stdin": (["-"], plain.read_bytes()),
        }
        recipe["train"]["steps"] = 3
        for name, (data, stdin) in forms.items():
            given = [word for path in data for word in ("--data", path)]
            fine(command("train", toml(recipe), *given, "--out", name, stdin=stdin))
        first = load_file("tsv/model.safetensors")
        for name in forms:
            weights = load_file(f"{name}/model.safetensors")
            assert all(torch.equal(weights[key], value) for key, value in first.items()), name

    def test_the_recipe_of_several_tasks_trains_and_answers(self, command: Command) -> None:
        changes = ["train.steps=4", "train.decode=2", "train.tokens=256"]
        changes += [f"{part}.{key}" for part in ("encoder", "decoder") for key in ("size=8", "hidden=8", "layers=1")]
        numbers = tsv("numbers.tsv", [(f"0.1,0.2 0.3,{number}", str(number)) for number in range(9)])
        words = tsv("words.tsv", [(f"a b {number}", f"(S (NP (X a) (X b)) (X {number}))") for number in range(9)])
        files = {"trees": words, "letters": tsv(), "sums": tsv(), "digits": numbers}
        given = [word for task, path in files.items() for word in ("--data", f"{task}={path}")]
        fine(command("train", "multi-model", *given, "--out", "out", *sets(*changes)))
        for task, line in (("trees", "a b 1"), ("letters", "12"), ("sums", "12"), ("digits", "0.1,0.2 0.3,4")):
            assert fine(command("predict", "out", "--task", task, stdin=f"{line}\n")).out.count("\n") == 1

    @pytest.mark.parametrize("name", [name for name in RECIPES if name != "multi-model"])
    def test_every_packaged_recipe_trains_and_answers(self, command: Command, name: str) -> None:
        full = complete(read_recipe(name), name)
        small = {"size": 8, "embedding_size": 8, "layers": 1, "heads": 2, "hidden": 16}
        changes = ["train.steps=2", "train.tokens=512", "train.decode=4"]
        encoder = full.get("encoder", {})
        parts = {"encoder": encoder, "encoder.encoder": encoder.get("encoder", {}), "decoder": full["decoder"]}
        for part, table in parts.items():
            changes += [f"{part}.{key}={value}" for key, value in small.items() if key in table]
        sides = [side for side in ("source", "target") if full["task"].get(side, {}).get("units") == "bpe"]
        changes += [f"task.{side}.size=260" for side in sides]
        if full["task"].get("source", {}).get("type") == "audio":
            data, verb, stdin = recordings(), "predict", "0.wav\n"
        elif full["task"]["type"] == "masked":
            lines = "".join(
                f"{one} {other}\n" + "\n" * (number % 3 == 2) for number, (one, other) in enumerate(pairs())
            )
            data, verb, stdin = written("text.txt", lines), "fill", "1 [MASK] 3\n"
            changes.append("task.source.size=60")
        elif full["task"]["target"]["type"] == "tree":
            words = [(f"a {number}", f"(S (X a) (NP (X {number})))") for number in range(9)]
            data, verb, stdin = tsv("trees.tsv", words), "predict", "a ( 3\n"
        elif full["task"].get("source", {}).get("type") == "image":
            data, verb, stdin = captioned(), "predict", "scenes/000003.png\n"
        elif full["task"]["target"]["type"] == "pixels":
            write_examples(Path("shapes.tsv"), shapes(12, size=28))
            Path("shapes.txt").write_text("".join(f"shapes/{number:06}.png\n" for number in range(12)))
            data, verb, stdin = Path("shapes.txt"), "generate", ""
        elif full["task"]["target"]["type"] == "frames":
            write_examples(Path("sprites.tsv"), sprites(6))
            Path("sprites.txt").write_text("".join(f"sprites/{number:06}.npz\n" for number in range(6)))
            data, verb, stdin = Path("sprites.txt"), "generate", ""
        elif full["task"].get("source", {}).get("type") == "video":
            data, verb, stdin = filmed(), "predict", "mouths/000003.npz\n"
        elif full["task"]["target"]["type"] == "places":
            points = [f"0.1,0.2 0.9,0.{number} 0.{number},0.8 0.5,0.5" for number in range(1, 9)]
            data, verb, stdin = tsv("places.tsv", [(each, "0 1 2") for each in points]), "predict", f"{points[0]}\n"
        elif "encoder" in full:
            data, verb, stdin = tsv(), "predict", "123\n"
        else:
            sign = full["task"].get("answers_after", "")
            lines = "".join(f"{one}{sign}\n" for one, _ in pairs())
            if full["task"]["target"]["type"] == "piano_roll":
                lines = "".join(f"60,64,{number} 62 -\n" for number in range(65, 75))
            elif full["task"]["target"]["type"] in ("signal", "wave"):
                recordings()
                lines = "".join(f"{number}.wav\n" for number in range(8))
            data, verb, stdin = written("text.txt", lines), "generate", ""
        fine(command("train", name, "--data", data, "--out", "out", *sets(*changes)))
        answer = fine(command(verb, "out", stdin=stdin)).out
        lines = {"masked": 2}.get(full["task"]["type"], 1)  # the text, and the words
        assert len(answer) > 100 if full["task"]["type"] == "text" else answer.count("\n") == lines

    def test_the_version_is_told_and_nothing_else(self, command: Command) -> None:
        assert fine(command("--version")).out == f"seqloom {seqloom.__version__}\n"

    def test_recipes_lists_all_of_them(self, command: Command) -> None:
        lines = fine(command("recipes")).out.splitlines()
        assert [line.split()[0] for line in lines] == RECIPES
        assert all(len(line.split()) > 4 for line in lines)

    @pytest.mark.parametrize("name", RECIPES)
    def test_check_prints_a_complete_recipe_that_check_accepts(self, command: Command, name: str) -> None:
        first = fine(command("check", name, "--set", "train.tokens=777")).out
        assert "tokens = 777" in first
        assert "learning_rate" in first
        assert fine(command("check", written("full.toml", first))).out == first

    def test_a_run_does_not_depend_on_the_packaged_recipe_any_more(self, command: Command, translator: Path) -> None:
        again = fine(command("check", translator / "config.toml")).out
        assert again == (translator / "config.toml").read_text()

    def test_the_mean_of_checkpoints_is_a_run(self, command: Command, translator: Path) -> None:
        assert "steps 10, 20" in fine(command("average", translator, "--out", "mean")).err
        files = [each.path / "model.safetensors" for each in Run.open(translator).checkpoints()]
        first, second, mean = (load_file(path) for path in (*files, Path("mean/model.safetensors")))
        for name, value in mean.items():
            torch.testing.assert_close(value, (first[name] + second[name]) / 2)
        assert fine(command("predict", "mean", stdin="12\n")).out.count("\n") == 1
        assert command("average", translator, "--out", "mean").complaint.startswith("mean already exists")


class TestFineTuning:
    def test_it_begins_with_the_weights_and_vocabularies_of_the_other_run(
        self, command: Command, translator: Path
    ) -> None:
        rows = [(f"{number}x", f"x{number}") for number in range(200, 230)]  # x is no token of the first run
        slow = sets("train.steps=1", "train.learning_rate=1e-12")
        outcome = fine(command("train", "--init", translator, "--data", tsv(rows=rows), "--out", "tuned", *slow))
        assert outcome.err.startswith(f"The recipe is that of {translator}.")
        for name in ("source.tokenizer.json", "target.tokenizer.json"):
            assert Path("tuned", name).read_bytes() == (translator / name).read_bytes()
        before, after = load_file(translator / "model.safetensors"), load_file("tuned/model.safetensors")
        for name, value in before.items():
            torch.testing.assert_close(after[name], value)

    def test_other_settings_of_training_and_other_metrics_are_welcome(
        self, command: Command, translator: Path, recipe: dict[str, Any]
    ) -> None:
        recipe["task"]["metrics"] = ["exact"]
        recipe["train"]["steps"] = 1
        fine(command("train", toml(recipe), "--init", translator, "--data", tsv(), "--out", "tuned"))
        fine(command("train", "--resume", "--out", "tuned", *sets("train.steps=2")))

    def test_sides_written_otherwise_are_refused(
        self, command: Command, translator: Path, language_model: Path, recipe: dict[str, Any]
    ) -> None:
        tune = ["--data", tsv(), "--out", "tuned", "--init"]
        message = command("train", toml(recipe), *tune, translator, *sets("task.target.units=byte")).complaint
        assert "task.target.units" in message
        assert "vocabularies" in message
        assert "task.source" in command("train", toml(recipe), *tune, language_model).complaint
        assert "shape" in command("train", toml(recipe), *tune, translator, *sets("decoder.size=8")).complaint
        assert not Path("tuned").exists()


class TestPredicting:
    def test_lines_stay_in_order_and_empty_lines_stay_empty(self, command: Command, translator: Path) -> None:
        sources = ["1234567", "1", "", "123", "   ", "12", "1234567"]
        lines = fine(command("predict", translator, stdin="\n".join(sources))).out.split("\n")
        assert len(lines) == len(sources) + 1
        single = {each: fine(command("predict", translator, stdin=each)).out.rstrip("\n") for each in sources}
        assert lines[:-1] == [single[each] for each in sources]
        assert lines[2] == lines[4] == ""
        assert len(set(lines)) > 2

    def test_nothing_in_is_nothing_out(self, command: Command, translator: Path) -> None:
        assert fine(command("predict", translator, stdin="")).out == ""

    def test_what_the_model_has_never_seen_is_said(
        self, command: Command, translator: Path, language_model: Path
    ) -> None:
        data = tsv("strange.tsv", [("12", "21"), ("1x", "x1"), ("34", "4y")])
        measured = fine(command("evaluate", translator, "--data", data)).err
        assert measured == "1 of 3 sources have tokens that this model has never seen.\n"
        assert (
            "2 of 3 targets have tokens that are not in the vocabulary"
            in fine(command("score", translator, "--data", data)).err
        )
        lines = written("strange.txt", "12\nx1\n")
        for verb in ("evaluate", "score"):
            said = fine(command(verb, language_model, "--data", lines)).err
            assert said == "1 of 2 targets have tokens that are not in the vocabulary: they count as <unk>.\n"
        assert not fine(command("evaluate", translator, "--data", tsv())).err

    def test_json_has_scores_tokens_and_attention(self, command: Command, translator: Path) -> None:
        options = ["--n-best", 3, "--attention"]
        first, empty = map(json.loads, fine(command("predict", translator, *options, stdin="123\n\n")).out.splitlines())
        assert empty == {"source": "", "outputs": []}
        assert first["source"] == "123"
        assert len(first["outputs"]) == 3
        scores = [one["score"] for one in first["outputs"]]
        assert scores == sorted(scores, reverse=True)
        for one in first["outputs"]:
            assert "".join(one["tokens"]) == one["text"]
            assert len(one["log_probs"]) == len(one["attention"]) == len(one["tokens"]) + 1
            assert all(len(row) == 3 and sum(row) == pytest.approx(1, abs=1e-4) for row in one["attention"])
        plain = fine(command("predict", translator, "--json", stdin="123\n")).out
        assert json.loads(plain)["outputs"][0]["text"] == first["outputs"][0]["text"]
        assert json.loads(plain)["outputs"][0]["attention"] is None

    def test_prefixes_bans_and_requirements_are_kept(self, command: Command, translator: Path) -> None:
        free = fine(command("predict", translator, stdin="123\n")).out.strip()
        missing = next(digit for digit in "0123456789" if digit not in free)
        assert fine(command("predict", translator, "--prefix", missing * 2, stdin="123\n")).out.startswith(missing * 2)
        assert missing in fine(command("predict", translator, "--require", missing, stdin="123\n")).out
        banned = [word for digit in set(free) for word in ("--ban", digit)]
        assert not set(free) & set(fine(command("predict", translator, *banned, stdin="123\n")).out.strip())

    def test_settings_of_the_search_can_be_changed(self, command: Command, translator: Path) -> None:
        short = fine(command("predict", translator, *sets("maximum_length=3"), stdin="123456\n")).out
        assert len(short.strip()) <= 2
        assert (
            fine(command("predict", translator, "--beam-size", 6, "--n-best", 6, stdin="1\n")).out.count("score") == 6
        )

    def test_a_language_model_goes_on_from_a_prefix_and_a_seed_repeats_it(
        self, command: Command, language_model: Path
    ) -> None:
        options = ["--prefix", "12", "--count", 5, "--maximum-length", 8]
        first = fine(command("generate", language_model, *options, "--seed", 3)).out
        assert all(line.startswith("12") for line in first.splitlines())
        assert first.count("\n") == 5
        assert fine(command("generate", language_model, *options, "--seed", 3)).out == first
        assert fine(command("generate", language_model, *options, "--seed", 4)).out != first

    def test_a_language_model_is_measured_by_its_perplexity(self, command: Command, language_model: Path) -> None:
        text = "001\n201\n"
        measured = json.loads(fine(command("evaluate", language_model, stdin=text)).out)
        scores = [float(line) for line in fine(command("score", language_model, stdin=text)).out.splitlines()]
        assert measured["nats_per_token"] == pytest.approx(-sum(scores) / 8, rel=1e-5)

    def test_a_page_explains_and_needs_nothing_else(self, command: Command, translator: Path) -> None:
        outcome = fine(command("explain", translator, "123", "--out", "page.html"))
        assert outcome.out.startswith("input   123")
        page = Path("page.html").read_text(encoding="utf-8")
        answer = fine(command("predict", translator, stdin="123\n")).out.strip()
        assert f"output  {answer}\n" in outcome.out
        assert answer in page
        addresses = re.findall(r"https?://[^\s\"'<>)]+|(?:src|href)\s*=\s*\S+|@import", page)
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}  # the name of a format, which nobody fetches
        assert sorted(path.name for path in Path().iterdir()) == ["page.html"]


class TestPython:
    def test_fit_load_predict_and_score_are_the_command_lines(self, command: Command, recipe: dict[str, Any]) -> None:
        model = seqloom.fit(pairs(), recipe, out="out", display=Display.quiet())
        loaded = seqloom.load("out")
        sources = ["123", "4", "56"]
        assert model.predict(sources) == loaded.predict(sources)
        assert fine(command("predict", "out", stdin="\n".join(sources))).out.splitlines() == loaded.predict(sources)
        scores = loaded.score(pairs(5))
        assert model.score(pairs(5)) == pytest.approx(scores)
        said = fine(command("score", "out", "--data", tsv(rows=pairs(5)))).out.splitlines()
        assert said == [f"{score:.6f}" for score in scores]
        measured = json.loads(fine(command("evaluate", "out", "--data", tsv(rows=pairs(5)))).out)
        assert measured == {"examples": 5, **loaded.evaluate(pairs(5))}
        assert loaded.explain("12").hypotheses[0].text == loaded.predict(["12"])[0]

    def test_a_score_is_the_sum_of_what_the_search_saw(self, translator: Path) -> None:
        model = seqloom.load(translator)
        found = model.candidates(["123"])[0][0]
        assert model.score([("123", found.text)])[0] == pytest.approx(sum(found.log_probs), rel=1e-4)

    def test_a_language_model_is_fitted_on_a_list_of_texts(self) -> None:
        texts = [source for source, _ in pairs()]
        model = seqloom.fit(texts, LANGUAGE_MODEL, out="out", display=Display.quiet())
        assert len(model.generate(3)) == len(model.score(texts[:3])) == 3

    def test_mistakes_are_one_exception_of_one_line(self, translator: Path) -> None:
        model = seqloom.load(translator)
        for mistake, word in (
            (lambda: model.predict("12"), "list of sources"),
            (lambda: model.predict([12]), "expected a string"),
            (lambda: model.score(["12"]), "(source, target)"),
            (lambda: model.score([("", "12")]), "empty"),
            (lambda: model.predict(["12"], beam_sise=3), "beam_size"),
            (lambda: model.evaluate([]), "nothing to evaluate"),
            (lambda: seqloom.load(translator, device="abacus"), "abacus"),
            (lambda: seqloom.fit([("a", "b"), ("c",)], "dates", out="out"), "line 2"),
            (lambda: seqloom.fit([], "dates", out="out"), "empty"),
        ):
            with pytest.raises(SeqloomError) as caught:
                mistake()
            assert word in str(caught.value)
            assert "\n" not in str(caught.value)


def test_settings_in_python_are_strings_or_dictionaries(command: Command, recipe: dict[str, Any]) -> None:
    strings = ["train.steps=2", "encoder.cell=gru", "decoder.dropout=0.25", "seed=7"]
    nested = {"train": {"steps": 2}, "encoder": {"cell": "gru"}, "decoder.dropout": 0.25, "seed": 7}
    for name, settings in (
        ("strings", strings),
        ("nested", nested),
        ("both", [*strings[:2], {"decoder.dropout": 0.25, "seed": 7}]),
    ):
        seqloom.fit(pairs(), recipe, out=name, settings=settings, display=Display.quiet())
    assert Run.open("strings").recipe() == Run.open("nested").recipe() == Run.open("both").recipe()
    assert Run.open("nested").recipe()["encoder"]["cell"]["type"] == "gru"
    with pytest.raises(SeqloomError, match=r'train\.steps = "two": expected an integer'):
        seqloom.fit(pairs(), recipe, out="other", settings={"train": {"steps": "two"}}, display=Display.quiet())


def test_an_interrupt_saves_says_how_to_go_on_and_resuming_goes_on(command: Command, recipe: dict[str, Any]) -> None:
    recipe["train"] |= {"steps": 1_000_000, "validate_every": 1_000_000}
    run = [sys.executable, "-m", "seqloom", "train", str(toml(recipe)), "--data", str(tsv()), "--out", "out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True, env=environment)
    metrics, deadline = Path("out/metrics.jsonl"), time.monotonic() + 60
    while not metrics.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].endswith("Continue with --resume: seqloom train --resume --out out")
    assert "Try:" not in said
    saved = Run.open("out").newest()
    assert saved is not None
    longer = sets(f"train.steps={saved.step + 2}")
    assert f"resumed at step {saved.step}" in fine(command("train", "--resume", "--out", "out", *longer)).err
    assert fine(command("predict", "out", stdin="12\n")).out.count("\n") == 1


def test_an_interrupt_before_the_first_update_says_that_there_is_no_run(command: Command) -> None:
    run = [sys.executable, "-m", "seqloom", "train", "dates", "--data", "-", "--out", "out"]

    def obey() -> None:
        """Also where the tests themselves run in the background of a shell, which ignores interrupts."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipe = subprocess.PIPE
    with subprocess.Popen(run, stdin=pipe, stderr=pipe, text=True, preexec_fn=obey) as process:
        assert process.stdin is not None
        process.stdin.write("1\t2\n" * 100_000)  # more than a pipe holds: once written, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert said.split("\n")[-2:] == ["Interrupted before the first update; no run was written.", ""]
    assert "Traceback" not in said
    assert not Path("out").exists()


def test_the_list_of_verbs_says_what_each_verb_says_of_itself():
    """Help in one line stands in a table, so that listing verbs imports none of them."""
    for name, (_, about) in VERBS.items():
        command = app.get_command(click.Context(app), name)
        assert command is not None
        assert command.name == name
        first = (command.help or "").partition("\n")[0]
        assert about.rstrip(".").split(":")[0].split(",")[0][:24] in first, (name, first)
