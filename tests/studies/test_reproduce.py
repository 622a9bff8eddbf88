"""Studies: records, gates, measures, data, and the page of all records."""

import gzip
import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

import seqloom
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.special_tokens import EOS
from seqloom.errors import SeqloomError
from seqloom.storage.toml import read_toml
from seqloom.studies import catalogue, reproduce
from seqloom.studies.catalogue import STUDIES
from seqloom.studies.gates import Gate, at_least, at_most, lead
from seqloom.studies.measures.cells import accepted_lines, answer_accuracy, next_token_accuracy
from seqloom.studies.measures.online import by_wait, hard_and_expected, metrics_and_delay
from seqloom.studies.measures.pairs import by_length
from seqloom.studies.measures.parsing import constrained_and_free
from seqloom.studies.page import estimates, gate_lines, paired_differences, write_page
from seqloom.studies.pictures import trade_off
from seqloom.studies.sources.copying import django
from seqloom.studies.sources.files import write_file
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.objectives import shuffled_captions, two_modes
from seqloom.studies.sources.treebank import treebank_trees
from seqloom.studies.study import Splits, Study, Variant, means

SMALL = ["train.steps=3", "train.tokens=512", "train.decode=4", "train.device=cpu"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", STUDIES)
def test_every_variant_of_every_study_is_a_recipe_that_builds(name: str) -> None:
    study = STUDIES[name]
    for variant in study.variants.values():
        recipe = variant.recipe or study.recipe
        full = complete(override(read_recipe(recipe), list(variant.settings)), recipe)
        check_recipe(full)
        assert variant.recipe or not (variant.minutes and variant.settings)  # minutes alone choose a recipe
    assert not study.runs or study.runs in STUDIES
    starts = [variant.init for variant in study.variants.values() if variant.init]
    for study_of, _, label in (init.rpartition("/") for init in starts):
        assert label in (STUDIES[study_of] if study_of else study).variants
    assert len({(gate.text, gate.sign) for gate in study.gates}) == len(study.gates)


def test_every_file_of_studies_is_in_the_catalogue() -> None:
    folder = Path(catalogue.__file__).parent
    for path in sorted(folder.glob("[a-z]*.py")):
        assert vars(import_module(f"{catalogue.__name__}.{path.stem}"))["STUDIES"].items() <= STUDIES.items()


def test_gates_look_at_one_run_or_between_two() -> None:
    measured = {"one": {"bleu": 30.0}, "other": {"bleu": 25.5}}
    assert at_least(30, "bleu", "one").record(measured) == {
        "text": "one bleu",
        "gate": ">= 30",
        "value": 30.0,
        "met": True,
    }
    assert not at_most(25, "bleu", "other").record(measured)["met"]
    assert lead(4, "bleu", "one", "other").record(measured)["value"] == 4.5
    assert lead(4, "bleu", "one", "other").record(measured)["met"]
    assert not lead(4, "bleu", "other", "one").record(measured)["met"]


def test_a_gate_may_have_a_stricter_bound_that_is_shown_beside_it() -> None:
    gate = at_most(20, "error", stricter=17)
    assert gate.bounds() == "<= 20 (<= 17)"
    for value, met, stricter_met in ((21.0, False, False), (20.0, True, False), (17.0, True, True)):
        found = gate.record({"": {"error": value}})
        assert (found["met"], found["stricter"], found["stricter_met"]) == (met, "<= 17", stricter_met)
    record = {"rows": [{}, {}], "gates": [gate.record({"": {"error": 18.5}})]}
    assert gate_lines(record) == ["error <= 20: met, <= 17: **not met** (18.5)"]


def test_gates_that_are_looser_than_was_hoped_for_say_so() -> None:
    stricter = {name: [gate.stricter for gate in study.gates] for name, study in STUDIES.items()}
    assert 1.558 in stricter["shakespeare-lstm"]
    assert 17 in stricter["babi"]
    assert 0.65 in stricter["cipher"]
    assert 8 in stricter["django"]


def test_a_variant_may_start_from_the_run_of_another_study(tmp_path: Path) -> None:
    study = Study("more", "addition", examples_of("addition", 60, 10), variants={"more": Variant(init="base/")})
    with pytest.raises(SeqloomError, match=r"more starts from the run of base.*first run seqloom reproduce base"):
        study.reproduce("more", tmp_path, SMALL)
    base = Study("base", "addition", examples_of("addition", 60, 10))
    base.reproduce("base", tmp_path, SMALL)
    study.reproduce("more", tmp_path, SMALL)
    recipe = read_toml(tmp_path / "runs" / "more" / "more" / "config.toml")
    assert recipe["init"] == str(tmp_path / "runs" / "base")


def test_a_study_of_two_is_trained_measured_recorded_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    study = Study(
        "two small ones",
        "addition",
        examples_of("addition", 60, 10),
        (at_least(0, "exact", "plain"), Gate("never", lambda measured: 0.0, ">=", 1.0)),
        variants={"plain": Variant(), "from the end": Variant(("encoder.reverse=true",))},
        measure=by_length(5),
    )
    monkeypatch.setitem(STUDIES, "two", study)
    reproduce.reproduce_result("two", tmp_path, SMALL)
    record = json.loads((tmp_path / "results" / "two.json").read_text())
    assert [row["variant"] for row in record["rows"]] == ["plain", "from the end"]
    assert record["rows"][0]["steps"] == 3
    assert record["rows"][0]["threads"] == torch.get_num_threads()
    assert {"exact", "cer", "exact_5_to_7"} <= record["rows"][0]["measured"].keys()
    assert [gate["met"] for gate in record["gates"]] == [True, False]
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "| from the end |" in page
    assert "never >= 1: **not met** (0)" in page
    assert (tmp_path / "docs" / "images" / "two.png").stat().st_size > 1000
    assert "never >= 1: NOT MET" in capsys.readouterr().out
    reproduce.reproduce_result("two", tmp_path, SMALL)  # again: nothing is trained any more
    assert json.loads((tmp_path / "results" / "two.json").read_text())["rows"][0]["steps"] == 3


def test_a_study_over_seeds_starts_each_from_the_run_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    study = Study(
        "two objectives",
        "addition",
        examples_of("addition", 60, 10),
        (at_least(0, "exact", "further"),),
        variants={
            "first": Variant(),
            "further": Variant(("objective.type=mixer", "train.select_by=exact"), init="first"),
        },
        seeds=(1, 2),
    )
    monkeypatch.setitem(STUDIES, "seeds", study)
    reproduce.reproduce_result("seeds", tmp_path, SMALL)
    record = json.loads((tmp_path / "results" / "seeds.json").read_text())
    assert [(row["variant"], row["seed"]) for row in record["rows"]] == [
        ("first", 1),
        ("first", 2),
        ("further", 1),
        ("further", 2),
    ]
    for seed in (1, 2):
        recipe = read_toml(tmp_path / "runs" / "seeds" / "further" / f"seed-{seed}" / "config.toml")
        assert recipe["init"].endswith(f"first/seed-{seed}")
        assert recipe["seed"] == seed
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "seeds 1, 2" in page
    assert "further minus first, exact:" in page
    assert "of 2 seeds" in page


def test_the_accuracy_of_answers_is_that_of_reading_the_text_token_by_token(tmp_path: Path) -> None:
    lines = "".join(f"{one}+{one}={2 * one}\n" for one in range(60))
    text = write_file(tmp_path, "sums.txt", lines)
    model = seqloom.fit(
        text, "arithmetic-text", out=tmp_path / "run", valid=text, as_written=True,
        settings=["train.steps=30", "train.tokens=256", "decoder.size=16", "train.device=cpu"],
    )  # fmt: skip
    found = answer_accuracy(model, Splits(text, None, text))["accuracy"]
    task, decoder = model.task, model.model.decoder
    memory, right = model.model.encode(None, rows=1), []
    state, token, answering = decoder.start(memory), torch.tensor([task.bos]), False
    with torch.no_grad():
        for character in lines:
            wanted = EOS if character == "\n" else int(task.target.encode(character)[0])
            scores, state = decoder.step(token, state, memory)
            right += [int(scores.argmax()) == wanted] if answering else []
            answering = character == "=" or (answering and character != "\n")
            token = torch.tensor([wanted])
    assert found == pytest.approx(100 * sum(right) / len(right))
    assert 0 < found < 100


def test_a_page_has_means_with_standard_errors_and_gains_seed_by_seed() -> None:
    def row(variant: str, seed: int, value: float) -> dict[str, object]:
        return {"variant": variant, "seed": seed, "measured": {"per": value}}

    record = {"rows": [row("a", 1, 4.0), row("a", 2, 6.0), row("b", 1, 3.0), row("b", 2, 5.5)]}
    found = estimates(record)
    assert (found["a"]["per"].mean, found["a"]["per"].error) == (5.0, pytest.approx(1.0))
    assert paired_differences(record) == ["b minus a, per: -0.75 ± 0.25, higher with 0 of 2 seeds"]
    assert paired_differences({"rows": record["rows"][::2]}) == []
    assert means([row("a", 1, 4.0), row("a", 2, 6.0)]) == {"per": 5.0}


def test_measures_beside_the_metrics(tmp_path: Path) -> None:
    study = Study("", "arithmetic", examples_of("arithmetic", 60, 10), measure=next_token_accuracy)
    measured = study.row("sums", "", tmp_path, SMALL)["measured"]
    assert 0 <= measured["accuracy"] <= 100
    assert "exact" in measured
    lines = Study(
        "", "counting", examples_of("counting", 60, 5, {"shortest": 3, "longest": 5}, longest=4), measure=accepted_lines
    )
    assert 0 <= lines.row("counts", "", tmp_path, SMALL)["measured"]["accepted"] <= 100


def test_a_misspelt_name_and_missing_data_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SeqloomError, match='did you mean "addition"'):
        reproduce.reproduce_result("additon", tmp_path, [])
    monkeypatch.delenv("SEQLOOM_DATA", raising=False)
    with pytest.raises(SeqloomError, match="SEQLOOM_DATA is not set"):
        reproduce.reproduce_result("scan", tmp_path, [])


def test_records_of_benchmarks_and_attacks_are_no_studies(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "faults.json").write_text('{"bench": {"made": 3, "gave_way": []}}')
    (tmp_path / "results" / "bench-train-1.json").write_text('{"name": "bench-train", "rows": [{"system": "a"}, {}]}')
    write_page(tmp_path)
    assert "bench" not in (tmp_path / "docs" / "results.md").read_text()


def test_sources_of_the_studies_of_objectives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared" / "multi30k"
    folder.mkdir(parents=True)
    captions = {
        "train": "A dog runs.\nTwo men in the park of a big city walk slowly.\nThe dog sees two men\n",
        "val": "Two men!\nA zebra runs.\n",
        "test_2016_flickr": "The dog runs\n",
        "test_2017_flickr": "men\n",
    }
    for name, text in captions.items():
        (folder / f"{name}.en.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "shared"))
    data = shuffled_captions(8)(tmp_path / "made")
    pairs = {
        name: [tuple(line.split("\t")) for line in Path(path[0]).read_text().splitlines()]
        for name, path in (("train", data.train), ("valid", data.valid), ("test", data.test))
    }
    assert [target for _, target in pairs["train"]] == [
        "a dog runs",
        "the dog sees two men",
    ]  # the long one is left out
    assert [target for _, target in pairs["valid"]] == ["two men"]  # no zebras in the training set
    assert [target for _, target in pairs["test"]] == ["the dog runs", "men"]
    assert all(sorted(source.split()) == sorted(target.split()) for each in pairs.values() for source, target in each)
    lines = Path(two_modes(tmp_path / "made").train[0]).read_text().splitlines()
    assert (lines.count("go\ta a a a a a"), lines.count("go\tb b b b b b")) == (60, 40)


def test_the_noisy_channel_is_measured_with_all_runs_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "cmudict-g2p"
    folder.mkdir()
    words = ["AB", "BA", "ABBA", "BAB", "AAB", "BBA", "BABA", "AB"] * 10
    for split in ("train", "dev", "test"):
        lines = "".join(f"{word}  {' '.join(letter.lower() for letter in word)}\n" for word in words)
        (folder / f"cmudict-0.7b.{split}.gz").write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    for name, few in (("CHANNEL_WEIGHTS", (0.5,)), ("LM_WEIGHTS", (0.2, 0.3)), ("BONUSES", (0.0,))):
        monkeypatch.setattr(f"seqloom.studies.measures.noisy_channel.{name}", few)
    monkeypatch.setitem(STUDIES, "noisy-channel", replace(STUDIES["noisy-channel"], seeds=(1,)))
    record = reproduce.reproduce_result("noisy-channel", tmp_path, [*SMALL, "train.steps=40", "train.warmup=5"])
    text, back, direct = record["rows"]
    assert (text["train_examples"], back["train_examples"], direct["train_examples"]) == (80, 8, 8)
    data = tmp_path / "runs" / "data"
    assert (data / "cmudict-tenth-swapped.tsv").read_text().startswith("a b\tAB\na b b a\tABBA\n")
    assert (data / "cmudict-dev.txt").read_text().startswith("a b\nb a\n")
    measured = direct["measured"]
    assert {"perplexity"} <= text["measured"].keys()
    assert {"cer"} <= back["measured"].keys()
    model = seqloom.load(tmp_path / "runs" / "noisy-channel" / "direct" / "seed-1", device="cpu")
    exact = model.evaluate(data / "cmudict-test.tsv")["exact"]
    assert measured["direct_wer"] == pytest.approx(100 - exact)
    assert exact > 0
    helpers = {
        "channel": tmp_path / "runs" / "noisy-channel" / "channel" / "seed-1",
        "lm": tmp_path / "runs" / "noisy-channel" / "language-model" / "seed-1",
    }
    weights = {"channel_weight": 0.5, "lm_weight": measured["channel_lm: lm_weight"]}
    exact = model.evaluate(data / "cmudict-test.tsv", **helpers, **weights)["exact"]
    assert measured["channel_lm_wer"] == pytest.approx(100 - exact)
    assert measured["channel_lm_better"] == (measured["channel_lm_wer"] < measured["direct_wer"])


def test_quality_and_delay_of_models_that_write_while_they_read(tmp_path: Path) -> None:
    data = examples_of("cipher", 60, 6, shortest=4)
    waiting = Study("", "cipher", data, measure=by_wait("exact", 1, 99), picture=trade_off)
    record = waiting.reproduce("waiting", tmp_path, SMALL)
    (row,) = record["rows"]
    assert list(row["measured"]) == ["exact, k = 1", "AP, k = 1", "exact, k = 99", "AP, k = 99"]
    assert row["measured"]["AP, k = 1"] < row["measured"]["AP, k = 99"] == 1
    figure = trade_off({**record, "rows": [row, {"variant": "agent", "measured": {"exact": 50.0, "AP": 0.7}}]})
    (panel,) = figure.axes
    assert [len(line.get_xdata()) for line in panel.lines] == [2, 1]
    assert panel.lines[1].get_ydata()[0] == 50
    copied = Study("", "delayed-copy", examples_of("delayed_copy", 60, 6), measure=metrics_and_delay)
    assert {"exact", "delay"} <= copied.row("copied", "", tmp_path, SMALL)["measured"].keys()


def test_monotonic_attention_is_measured_as_it_is_searched_and_as_it_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(model: Any, data: Any) -> dict[str, float]:
        return dict.fromkeys(model.task.metrics, float(model.model.decoder.attention.decoding == "soft"))

    monkeypatch.setattr("seqloom.studies.measures.online.evaluate_test_set", measured)
    study = Study("", "g2p-monotonic", examples_of("cipher", 60, 6, shortest=4), measure=hard_and_expected)
    found = study.row("looked", "", tmp_path, SMALL)["measured"]
    assert found == {"per": 0, "exact": 0, "expected_per": 1, "expected_exact": 1}


def test_those_who_copy_are_measured_beside_the_plain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def data(folder: Path) -> Splits:
        lines = "".join(f"see n{number} now\tSEE n{number} NOW\n" for number in range(60))
        return Splits(*[write_file(folder, "names.tsv", lines)] * 3)

    monkeypatch.setitem(STUDIES, "copying", replace(STUDIES["copying"], data=data, seeds=(1,)))
    small = ["task.source.size=5", "task.target.size=5"]
    record = reproduce.reproduce_result("copying", tmp_path, [*SMALL, *small])
    measured = {row["variant"]: row["measured"] for row in record["rows"]}
    ways = {f"{way}{name}" for way in ("", "unknown_", "replaced_") for name in ("bleu", "oov_recall")}
    assert set(measured["plain"]) == ways
    assert measured["plain"]["oov_recall"] == 0
    assert set(measured["switch"]) == set(measured["pointer-generator"]) == {"bleu", "oov_recall", "better"}


def test_english_and_code_are_cut_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "data" / "django-code"
    home.mkdir(parents=True)
    english = " call warnings.warn with string 'a_b', \"it's so.\" and X."
    code = "  warnings . warn ( 'a_b' , \"it's so.\" , X )"
    for name, line in (("anno", english), ("code", code)):
        (home / f"all.{name}.gz").write_bytes(gzip.compress(f"{line}\n".encode()))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    (source, target) = Path(django(tmp_path / "made").train[0]).read_text().strip().split("\t")
    assert source.split() == [
        "call",
        "warnings",
        ".",
        "warn",
        "with",
        "string",
        "'a_b'",
        ",",
        "\"it's",
        'so."',
        "and",
        "X",
        ".",
    ]
    assert {"warnings", "warn", "'a_b'", "\"it's", 'so."', "X"} <= set(target.split()) & set(source.split())


def test_a_parser_is_measured_with_and_without_its_constraint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "treebank-sample").mkdir()
    for split in ("train", "dev", "test"):
        trees = "".join(f"(S (NP (NN loom)) (VP (VBZ {word})))\n" for word in ("weaves", "stands", "hums"))
        (tmp_path / "treebank-sample" / f"{split}.trees.gz").write_bytes(gzip.compress(trees.encode()))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    made = treebank_trees(tmp_path / "data")
    assert Path(made.test[0]).read_text().splitlines()[0] == "loom weaves\t(S (NP (NN loom)) (VP (VBZ weaves)))"
    small = [*SMALL, "encoder.size=8", "encoder.embedding_size=8", "decoder.size=8", "decoder.embedding_size=8"]
    model = seqloom.fit(made.train, "parsing", out=tmp_path / "run", valid=made.valid, settings=small)
    found = constrained_and_free(model, made)
    assert found["well_formed"] == 100
    assert found["free_well_formed"] < 100  # it has not learned anything
    assert model.task.valid == "tree"
