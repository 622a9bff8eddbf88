"""Points in, places out, on the command line and in Python: train, predict, evaluate, explain."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.analysis import plot
from seqloom.analysis.points import paths, points_figure
from seqloom.config.recipes import read_recipe
from seqloom.data.generators.hull import hull
from seqloom.data.generators.sorting import sorting
from seqloom.errors import SeqloomError
from seqloom.explain.record import Explanation
from seqloom.train.display import Display
from tests.cli.conftest import Command, tsv
from tests.cli.test_use import fine, sets

PAIRS = [(example.source, example.target) for example in hull(60, shortest=4, longest=6)]
SMALL = sets("encoder.size=8", "decoder.size=8", "train.steps=5", "train.device=cpu", "train.tokens=256")
SOURCE = "0.1,0.1 0.5,0.4 0.9,0.2 0.4,0.9"


@pytest.fixture
def run(command: Command) -> str:
    fine(command("train", "hull", "--data", tsv("hulls.tsv", PAIRS), "--out", "run", *SMALL))
    return "run"


def test_from_points_to_rings(command: Command, run: str) -> None:
    answer = fine(command("predict", run, stdin=f"{SOURCE}\n\n{SOURCE} 0.3,0.3\n".encode())).out.splitlines()
    first, empty, second = answer
    assert empty == ""
    for places, number in ((first.split(), 4), (second.split(), 5)):
        assert places[0] == places[-1]
        assert 3 <= len({*places}) == len(places) - 1
        assert all(0 <= int(place) < number for place in places)
    measured = json.loads(fine(command("evaluate", run, "--data", "hulls.tsv")).out)
    assert measured["examples"] == 60
    assert {"hull", "area", "invalid"} <= measured.keys()
    scores = fine(command("score", run, "--data", "hulls.tsv")).out.split()
    assert len(scores) == 60
    assert all(float(score) < 0 for score in scores)


def test_an_explanation_draws_the_output_over_the_truth(command: Command, run: str) -> None:
    told = fine(command("explain", run, SOURCE, "--truth", "0 2 3 0", "--out", "page.html")).out
    assert "truth   0 2 3 0" in told
    assert "points: those of the output" in told
    page = Path("page.html").read_text(encoding="utf-8")
    embedded = page.partition('id="explanation">')[2].partition("</script>")[0]
    points = Explanation.from_json(json.loads(embedded)).points
    assert points is not None
    assert points.where == [[0.1, 0.1], [0.5, 0.4], [0.9, 0.2], [0.4, 0.9]]
    assert points.truth == [0, 2, 3, 0]
    assert " ".join(map(str, points.outputs[0])) in told
    assert len(points.outputs) == 5
    assert not points.triangles


def test_pictures_for_studies(command: Command, run: str) -> None:
    pytest.importorskip("matplotlib")
    model = seqloom.load(run)
    found = [model.explain(source, truth=truth) for source, truth in PAIRS[:4]]
    plot.save(points_figure([each.points for each in found], ["a", "b"]), "points.png")
    assert Path("points.png").stat().st_size > 5000
    assert paths([0, 1, 2, 1, 2, 3], triangles=True) == [[0, 1, 2, 0], [1, 2, 3, 1]]
    assert paths([0, 1, 2, 0], triangles=False) == [[0, 1, 2, 0]]


def test_a_picture_without_points_is_one_line() -> None:
    for drawn, complaint in (([], "no points were given"), ([None], "an explanation without points")):
        with pytest.raises(SeqloomError, match=complaint):
            points_figure(drawn)


def test_no_place_that_may_not_follow_might_have_stood_there(command: Command, run: str) -> None:
    model = seqloom.load(run)
    for source in (SOURCE, *(source for source, _ in PAIRS[:5])):
        for one in model.explain(source).hypotheses:
            for step, ranked in enumerate(one.runners_up):
                written = one.tokens[:step]
                places = {str(place) for place in range(len(source.split()))} - {*written}
                closed = len(written) > 1 and written[0] == written[-1]
                may = {"<eos>"} if closed else places | ({written[0]} if step >= 3 else set())
                assert one.tokens[step] in dict(ranked)
                assert {piece for piece, _ in ranked} <= may
                assert dict(ranked)[one.tokens[step]] == pytest.approx(exp(one.log_probs[step]), rel=1e-4)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((SOURCE, "--truth", "0 9 1"), "place 9 is beyond a source of 4 elements"),
        ((SOURCE, "--truth", "zero"), "integers from 0 on"),
        (("0.1,0.1 0.2,0.3",), "a ring needs 3 elements or more, and the source '0.1,0.1 0.2,0.3' has 2"),
        (("0.1 0.2 0.3",), "vectors of 1 component; expected 2"),
    ],
)
def test_mistakes_are_one_line(command: Command, run: str, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in command("explain", run, *words).complaint


def test_wishes_for_places_that_are_not_there_are_one_line_or_need_nothing(command: Command, run: str) -> None:
    given = f"{SOURCE}\n".encode()
    for wish in (("--prefix", "9"), ("--require", "9")):
        assert "place 9 is beyond a source of 4" in command("predict", run, *wish, stdin=given).complaint
    assert (
        fine(command("predict", run, "--ban", "9", stdin=given)).out == fine(command("predict", run, stdin=given)).out
    )
    assert "1" not in fine(command("predict", run, "--ban", "1", stdin=given)).out.split()
    assert "not texts" in command("predict", run, "--rescore", run, stdin=given).complaint


def test_runs_point_together(command: Command, run: str) -> None:
    fine(command("train", "hull", "--data", "hulls.tsv", "--out", "other", *SMALL, *sets("seed=2")))
    answers = [
        fine(command("predict", *runs, stdin=SOURCE.encode())).out for runs in ([run], [run, run], [run, "other"])
    ]
    assert answers[0] == answers[1]
    places = answers[2].split()
    assert places[0] == places[-1]
    assert json.loads(fine(command("evaluate", run, "other", "--data", "hulls.tsv")).out)["invalid"] == 0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (("0.1,0.1 0.2,0.3", "0 1 0"), "a ring needs 3 elements or more"),
        (("0.1,0.1 0.2,0.3 0.5,0.1", "0 1 9 0"), "place 9 is beyond a source of 3 elements"),
        (("0.1,0.1,0.2 0.2,0.3,0.4 0.5,0.1,0.3", "0 1 2 0"), "has no points of the plane"),
    ],
)
def test_a_line_that_cannot_be_learned_or_measured(
    command: Command, run: str, line: tuple[str, str], complaint: str
) -> None:
    data = tsv("bad.tsv", [*PAIRS, line])
    for verb in (["train", "hull", *SMALL, "--out", "other"], ["evaluate", run], ["score", run]):
        told = command(*verb, "--data", data).complaint
        assert "bad.tsv, line 61: " in told
        assert complaint in told
        assert not Path("other").exists()
    said = fine(command("evaluate", run, "--data", data, "--skip-bad"))
    assert json.loads(said.out)["examples"] == 60
    assert "1 x unreadable pair (first at line 61)" in said.err
    fine(command("train", "hull", "--data", data, "--skip-bad", "--out", "other", *SMALL))


def test_numbers_of_another_width_are_told_with_their_line(command: Command) -> None:
    data = tsv("wide.tsv", [("0.1 0.2", "0 1"), ("0.3 0.1", "1 0"), ("0.1,0.2 0.3,0.4", "0 1")] * 4)
    complaint = command("train", "sorting", "--data", data, "--valid", data, "--out", "run", *SMALL).complaint
    assert "wide.tsv, line 3: the numbers" in complaint


def test_truth_is_for_points_alone(tmp_path: Path) -> None:
    rows = [(example.source, example.target) for example in sorting(60)]
    recipe: dict[str, Any] = read_recipe("sorting")
    recipe["encoder"]["size"] = recipe["decoder"]["size"] = 8
    recipe["train"] |= {"steps": 3, "device": "cpu", "tokens": 256}
    model = seqloom.fit(rows, recipe, out=tmp_path / "run", valid=rows[:5], display=Display.quiet())
    assert sorted(model.predict(["0.5 0.2 0.9"])[0]) == [0, 1, 2]
    assert model.explain("0.5 0.2 0.9").points is None
    with pytest.raises(SeqloomError, match="chooses no points of the plane"):
        model.explain("0.5 0.2 0.9", truth="1 0 2")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("task.target.type=text",), "valid"),
        (("task.valid=square",), "valid"),
        (("decoder.type=recurrent",), "places"),
        (("decoder.attention.coverage=true",), "attention.coverage = true"),
        (("decoder.attention.type=multihead",), "scores each element"),
        (("decoder.glimpses=-1",), "glimpses = -1"),
        (("task.source.type=story", "encoder.type=memory_network"), "a story has none"),
    ],
)
def test_parts_that_do_not_fit_say_so(command: Command, change: tuple[str, ...], complaint: str) -> None:
    assert complaint in command("check", "hull", *sets(*change)).complaint


def test_the_generators_are_listed_and_make_pairs(command: Command) -> None:
    listed = fine(command("data")).out
    assert all(name in listed for name in ("hull", "tour", "delaunay", "sorting"))
    lines = fine(command("data", "tour", "--count", "3", *sets("shortest=4", "longest=4"))).out.splitlines()
    assert [line.split("\t")[1].split()[0] for line in lines] == ["0"] * 3
    assert "longest is 500" in command("data", "tour", *sets("longest=500")).complaint
