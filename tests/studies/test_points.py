"""Studies of points: what they measure beside the metrics, the published file, and their picture."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from seqloom.studies import reproduce
from seqloom.studies.catalogue import STUDIES
from seqloom.studies.gates import at_most
from seqloom.studies.measures.points import (
    beside_nearest_neighbour,
    by_points,
    example_answers,
    with_published_file,
)
from seqloom.studies.pictures import over_the_truth
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.points import published_hulls
from seqloom.studies.study import Study, Variant

SMALL = ["train.steps=3", "train.tokens=512", "train.decode=4", "train.device=cpu", "encoder.size=8", "decoder.size=8"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines as the published file has them: a square with a point within, and a triangle with two."""
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "ptrnet-convex-hull" / "convex_hull_5_test.txt.gz"
    path.parent.mkdir(parents=True)
    square = "0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9 0.4 0.5 output 1 2 3 4 1 \n"
    triangle = "0.4 0.3 0.1 0.1 0.9 0.2 0.4 0.4 0.5 0.9 output 2 3 5 2 \n"
    path.write_bytes(gzip.compress((square + triangle).encode()))


@pytest.mark.usefixtures("published")
def test_the_published_file_counts_from_one_and_ours_from_zero(tmp_path: Path) -> None:
    (path,) = published_hulls(tmp_path)
    first, second = Path(path).read_text().splitlines()
    assert first == "0.1,0.1 0.9,0.1 0.9,0.9 0.1,0.9 0.4,0.5\t0 1 2 3 0"
    assert second.split("\t")[1] == "1 2 4 1"


@pytest.mark.usefixtures("published")
def test_hulls_are_measured_on_both_files_and_words_like_places(tmp_path: Path) -> None:
    study = replace(STUDIES["hull"], data=examples_of("hull", 60, 10), measure=with_published_file)
    for variant in ("pointer", "LSTM", "LSTM with attention"):
        row = study.row("hull", variant, tmp_path, SMALL)
        assert {"hull", "area", "invalid", "published_hull", "published_area"} <= row["measured"].keys()
        assert [len(each["where"]) for each in row["shown"]["points"]] == [5, 5, 5]


def test_a_study_of_tours_knows_neighbours_and_the_shortest_and_draws_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    study = Study(
        "tours",
        "tour",
        examples_of("tour", 60, 20, called="tour-6", shortest=6, longest=6),
        (at_most(9, "tour", "one"),),
        variants={"one": Variant(), "other": Variant(("decoder.glimpses=1",))},
        measure=beside_nearest_neighbour,
        picture=over_the_truth,
        shown=example_answers("tour"),
    )
    monkeypatch.setitem(STUDIES, "tours", study)
    reproduce.reproduce_result("tours", tmp_path, SMALL)
    record = json.loads((tmp_path / "results" / "tours.json").read_text())
    measured = record["rows"][0]["measured"]
    assert measured["optimum"] <= measured["nearest_neighbour"]
    assert measured["optimum"] <= measured["tour"] == pytest.approx(measured["tour_ratio"] * measured["optimum"], 1e-4)
    assert measured["no_tour"] == 0
    assert (tmp_path / "docs" / "images" / "tours.png").stat().st_size > 5000
    assert (tmp_path / "runs" / "data" / "tour-6-train.tsv").exists()


def test_one_model_is_tested_on_more_points_than_it_was_trained_on(tmp_path: Path) -> None:
    study = Study(
        "",
        "hull",
        examples_of("hull", 60, 10, shortest=5, longest=9),
        measure=by_points("hull", 4, 5, 30),
        shown=example_answers("hull", 5, 30),
    )
    row = study.row("lengths", "", tmp_path, SMALL)
    assert {"hull, n = 5", "area, n = 5", "hull, n = 30", "area, n = 30"} <= row["measured"].keys()
    assert [len(each["where"]) for each in row["shown"]["points"]] == [5, 30]
