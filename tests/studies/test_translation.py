"""The table of translation models: equal minutes, ensembles, and rows that are kept when a later one is interrupted."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.errors import SeqloomError
from seqloom.predictor import Predictor
from seqloom.storage.toml import read_toml
from seqloom.studies import reproduce
from seqloom.studies.catalogue import STUDIES
from seqloom.studies.catalogue.translation import MINUTES
from seqloom.studies.gates import at_least, lead
from seqloom.studies.measures.translation import translation
from seqloom.studies.page import write_page
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.translation import join_punctuation, split_punctuation
from seqloom.studies.study import Study, Variant

SMALL = ["train.steps=3", "train.tokens=512", "train.decode=4", "train.device=cpu"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


def small_study(**variants: Variant) -> Study:
    return Study(
        "small ones",
        "addition",
        examples_of("addition", 60, 10),
        (at_least(0, "exact", "first"), lead(-100, "exact", "second", "first")),
        variants=variants,
    )


def test_a_named_recipe_may_be_fitted_to_minutes_and_goes_on_with_the_same_ones(tmp_path: Path) -> None:
    study = small_study(first=Variant(recipe="addition", minutes=0.1), second=Variant(minutes=0.1))
    first = study.row("minutes", "first", tmp_path, ["train.device=cpu", "train.decode=4"])
    recipe = read_toml(tmp_path / "runs" / "minutes" / "first" / "config.toml")
    assert recipe["encoder"]["type"] == "recurrent"
    assert recipe["train"]["minutes"] == 0.1
    assert first["steps"] > 3
    assert first["train_minutes"] <= 0.2
    again = study.row("minutes", "first", tmp_path, ["train.device=cpu", "train.decode=4"])
    assert (again["steps"], again["measured"]) == (first["steps"], first["measured"])


def test_an_ensemble_of_two_variants_is_measured_and_nothing_is_trained(tmp_path: Path) -> None:
    study = small_study(
        first=Variant(), second=Variant(("encoder.reverse=true",)), both=Variant(ensemble=("first", "second"))
    )
    with pytest.raises(SeqloomError, match=r'the run of first, which is not there: first run .* few --only "first"'):
        study.row("few", "both", tmp_path, SMALL)
    record = study.reproduce("few", tmp_path, SMALL)
    first, second, both = record["rows"]
    assert both["parameters"] == first["parameters"] + second["parameters"]
    assert both["train_flops"] == pytest.approx(first["train_flops"] + second["train_flops"], rel=0.01)
    folders = study.folders("few", tmp_path)
    assert [folder.name for folder in folders] == ["first", "second"]
    together = Predictor.load(folders, "cpu").evaluate(study.data(tmp_path / "runs" / "data").test)
    assert both["measured"] == pytest.approx(together, rel=1e-5)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "few.json").write_text(json.dumps(record))
    write_page(tmp_path)
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "none: the runs of first and second" in page
    assert "| training FLOPs | training |" in page
    assert f"| {first['train_flops']:.2g} |" in page


def test_finished_rows_are_kept_when_a_later_variant_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    study = small_study(first=Variant(), second=Variant(("encoder.reverse=true",)))
    broken = replace(study, variants=study.variants | {"second": Variant(("encoder.reverse=perhaps",))})
    monkeypatch.setitem(STUDIES, "few", broken)
    path = tmp_path / "results" / "few.json"
    with pytest.raises(SeqloomError, match="perhaps"):
        reproduce.reproduce_result("few", tmp_path, SMALL)
    record = json.loads(path.read_text())
    assert [row["variant"] for row in record["rows"]] == ["first"]
    assert record["missing"] == ["second"]
    assert [gate["text"] for gate in record["gates"]] == ["first exact"]  # the other needs both
    write_page(tmp_path)
    assert "- not run yet: second" in (tmp_path / "docs" / "results.md").read_text()

    def trained(self: Study, name: str, label: str, *rest: Any) -> Any:
        assert label == "second"
        return train(self, name, label, *rest)

    train = Study.train
    monkeypatch.setattr(Study, "train", trained)
    monkeypatch.setitem(STUDIES, "few", study)
    reproduce.reproduce_result("few", tmp_path, SMALL, only=["second"])
    record = json.loads(path.read_text())
    assert [row["variant"] for row in record["rows"]] == ["first", "second"]
    assert "missing" not in record
    assert len(record["gates"]) == 2
    assert "not run yet" not in capsys.readouterr().out
    with pytest.raises(SeqloomError, match=r'few has no variant "secnd" .did you mean "second"'):
        reproduce.reproduce_result("few", tmp_path, SMALL, only=["secnd"])
    assert (tmp_path / "docs" / "images" / "few.png").is_file()
    shutil.rmtree(tmp_path / "runs" / "few" / "first")
    reproduce.reproduce_result("few", tmp_path, SMALL, only=["second"])
    assert "few/first of an earlier call are not here" in capsys.readouterr().out


def test_rows_of_other_settings_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "few.json"
    path.write_text(json.dumps({"command": "seqloom reproduce few --set seed=2", "rows": [{"variant": "first"}]}))
    assert reproduce.rows_before(path, "seqloom reproduce few") == []
    assert reproduce.rows_before(path, "seqloom reproduce few --set seed=2") == [{"variant": "first"}]


def test_punctuation_is_split_off_and_put_back() -> None:
    line = 'A man, in the U.S. at 3:30; "well" ... really?'
    assert split_punctuation(line) == 'A man , in the U.S . at 3:30 ; "well" .. . really ?'
    assert join_punctuation(split_punctuation(line)) == line


def test_the_table_trains_every_model_on_one_thread_with_the_same_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = STUDIES["translation"]
    minutes = {label: variant.minutes for label, variant in study.variants.items() if not variant.ensemble}
    assert minutes.pop("GNMT") + minutes.pop("GNMT + RL") == MINUTES
    assert set(minutes.values()) == {MINUTES}
    assert all("train.threads=1" in study.variants[label].settings for label in minutes)
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        for language, line in (("en", "Two dogs, {}."), ("de", "Zwei Hunde, {}.")):
            text = "".join(line.format(f"n{number}") + "\n" for number in range(40))
            (folder / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    labels = ("Deep-Att + PosUnk", "GNMT", "GNMT + RL", "ConvS2S", "GNMT + RL, ConvS2S")
    settings = [
        *SMALL,
        "train.made_for=40",
        "encoder.layers=2",
        "decoder.layers=2",
        "task.source.size=280",
        "task.target.size=280",
    ]
    small = replace(study, variants={label: study.variants[label] for label in labels})
    rows = small.reproduce("translation", tmp_path, settings)["rows"]
    assert [row["variant"] for row in rows] == list(labels)
    expected = ["bleu", "chrf", "sentences_per_second", "words_per_second"]
    assert all(list(row["measured"]) == expected for row in rows)
    assert all(row["threads"] == 1 for row in rows[:4])
    words = seqloom.load(tmp_path / "runs" / "translation" / "Deep-Att-+-PosUnk", device="cpu")
    data = study.variants["Deep-Att + PosUnk"].data(tmp_path / "made")

    def said(sources: list[str], replace_unknown: bool) -> list[str]:
        assert replace_unknown
        return [source.replace("Two dogs", "Zwei Hunde") for source in sources]

    monkeypatch.setattr(words, "predict", said)
    found = translation(words, data)
    plain = study.data(tmp_path)
    assert Path(data.test[1]).read_text().startswith("Zwei Hunde , n0 .\n")
    assert gzip.decompress(Path(plain.test[1]).read_bytes()).startswith(b"Zwei Hunde, n0.\n")
    assert (found["bleu"], found["chrf"]) == pytest.approx((100, 100))
