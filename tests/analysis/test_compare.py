"""Runs side by side, on run folders whose metrics are written here."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqloom
from seqloom.analysis import plot
from seqloom.analysis.compare import Estimate, compare
from seqloom.analysis.learning_curves import mean_curve
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.errors import SeqloomError
from seqloom.storage.run import Run


def recipe(*settings: str, name: str = "dates") -> dict[str, Any]:
    return complete(override(read_recipe(name), list(settings)), name)


def trained(path: Path, *settings: str, exact: float = 90.0, loss: float = 0.5, name: str = "dates") -> Path:
    """A run of two validations, of which the first has the better exact match and the second the lower loss."""
    run = Run.create(path, recipe(*settings, name=name))
    for step in (10, 20):
        line = {"step": step, "epoch": step / 20, "loss": 30 * loss / step, "nll": 20 * loss / step}
        run.log({"kind": "train", **line, "seconds": 6.0 * step})
    for step, better in ((10, exact), (20, exact - 1)):
        measured = {"loss": 10 * loss / step, "perplexity": 2.0, "exact": better}
        run.log({"kind": "valid", "step": step, "epoch": step / 20, **measured, "seconds": 6.0 * step})
    run.publish({"weight": torch.zeros(3, 4), "bias": torch.zeros(5)})
    return path


@pytest.fixture
def seeds(tmp_path: Path) -> list[Path]:
    """Two recipes with three seeds each; the GRU is better with two of them, and on average."""
    folders = []
    for seed, exact, other in ((1, 90.0, 92.0), (2, 91.0, 95.0), (3, 92.0, 91.0)):
        folders.append(trained(tmp_path / f"lstm-{seed}", f"seed={seed}", exact=exact))
        cell = ["encoder.cell.type=gru", f"decoder.length_ratio=1.{seed}"]  # a fact of what was held out
        folders.append(trained(tmp_path / f"gru-{seed}", f"seed={seed}", *cell, exact=other))
    return folders


# -- one run per row


def test_a_row_has_the_measures_of_a_runs_best_validation(tmp_path: Path) -> None:
    (row,) = seqloom.compare([trained(tmp_path / "run")]).rows
    assert (row.name, row.parameters, row.steps) == ("run", 17, 20)
    assert row.minutes == Estimate(2.0)
    assert row.best == {"loss": Estimate(0.5), "perplexity": Estimate(2.0), "exact": Estimate(90.0)}  # by exact
    assert row.settings == {}
    (row,) = compare([tmp_path / "run"], by="loss").rows
    assert row.best["exact"] == Estimate(89.0)
    assert row.best["loss"] == Estimate(0.25)


def test_a_measure_of_one_task_of_several_may_decide(tmp_path: Path) -> None:
    folder = trained(tmp_path / "a")
    history = folder / "metrics.jsonl"
    history.write_text(history.read_text().replace('"exact"', '"dates/exact"'))
    found = compare([folder], by="dates/exact")
    assert found.higher_is_better
    assert found.rows[0].best["dates/exact"] == Estimate(90.0)
    assert not compare([folder], by="loss").higher_is_better


def test_what_decides_is_what_the_runs_were_selected_by_or_else_the_loss(tmp_path: Path) -> None:
    first = trained(tmp_path / "a")
    second = trained(tmp_path / "b", 'train.select_by="cer"')
    assert compare([first]).by == "exact"
    assert compare([first]).higher_is_better
    assert compare([first, second]).by == "loss"
    assert not compare([first, second]).higher_is_better


def test_the_average_of_checkpoints_counts_where_it_is_the_best_but_is_no_point_of_a_curve(tmp_path: Path) -> None:
    run = Run.open(trained(tmp_path / "run"))
    run.log({"kind": "valid", "average": 5, "step": 20, "epoch": 1.0, "loss": 0.1, "exact": 99.0, "seconds": 121.0})
    (row,) = compare([run.path]).rows
    assert row.best["exact"] == Estimate(99.0)
    assert "average" not in row.best
    places, values = row.runs[0].curve("valid", "exact", "step")
    assert (places.tolist(), values.tolist()) == ([10, 20], [90, 89])


def test_of_equal_validations_the_one_with_the_lower_loss_is_best(tmp_path: Path) -> None:
    run = Run.open(trained(tmp_path / "run"))
    run.log({"kind": "valid", "step": 30, "epoch": 2.0, "loss": 0.01, "exact": 90.0, "seconds": 180.0})
    assert compare([run.path]).rows[0].best["loss"] == Estimate(0.01)


def test_a_measure_that_was_not_finite_is_passed_over(tmp_path: Path) -> None:
    run = Run.open(trained(tmp_path / "run"))
    run.log({"kind": "valid", "step": 30, "epoch": 2.0, "loss": float("nan"), "exact": 95.0, "seconds": 180.0})
    comparison = compare([run.path])
    assert comparison.rows[0].best == {"exact": Estimate(95.0)}
    assert compare([run.path], by="loss").rows[0].best["loss"] == Estimate(0.25)


def test_differences_are_short_and_parts_come_first(tmp_path: Path) -> None:
    folders = [
        trained(tmp_path / "a", "decoder.attention.type=bilinear"),
        trained(tmp_path / "b", "decoder.attention=none", "seed=2"),
        trained(tmp_path / "c", "encoder.type=transformer", "train.tokens=7", 'data.train="x.tsv"'),
    ]
    first, second, third = (row.settings for row in compare(folders).rows)
    assert list(first) == list(second) == list(third)
    assert list(first) == ["encoder", "decoder.attention", "seed", "train.tokens", "data.train"]  # nothing within parts
    assert [each["encoder"] for each in (first, second, third)] == ["recurrent", "recurrent", "transformer"]
    assert [each["decoder.attention"] for each in (first, second, third)] == ["bilinear", "none", "additive"]
    assert [each["seed"] for each in (first, second, third)] == ["1", "2", "1"]
    assert (first["data.train"], third["data.train"]) == ("none", "x.tsv")
    assert "and 1 more" in str(compare(folders))


def test_runs_of_one_name_are_named_with_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        trained(tmp_path / folder / "run", f"train.tokens={len(os.listdir(tmp_path))}")
    assert [row.name for row in compare(["one/run", "two/run"]).rows] == ["one/run", "two/run"]


def test_a_run_that_is_still_training_is_compared_as_far_as_it_is(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "new", recipe("train.tokens=5"))
    run.log({"kind": "train", "step": 10, "epoch": 0.1, "loss": 3.0, "seconds": 30.0})
    with run.metrics.open("ab") as file:
        file.write(b'{"kind": "train", "step": 2')
    comparison = compare([run.path, trained(tmp_path / "old")])
    row = comparison.rows[0]
    assert (row.parameters, row.steps, row.best) == (None, 10, {})
    assert str(comparison).splitlines()[1].split()[:7] == ["new", "-", "10", "0.5", "-", "-", "-"]
    comparison.save(tmp_path / "picture.png")


def test_a_recipe_with_code_of_its_own_is_compared_without_running_it(tmp_path: Path) -> None:
    written = recipe()
    written["decoder"]["attention"] = {"type": "nowhere:Mine"}
    run = Run.create(tmp_path / "own", written)
    run.log({"kind": "valid", "step": 1, "epoch": 1.0, "loss": 1.0, "exact": 0.0, "seconds": 1.0})
    settings = compare([trained(tmp_path / "ours"), run.path]).rows[1].settings
    assert settings["decoder.attention"] == "nowhere:Mine"


# -- several seeds per row


@pytest.mark.parametrize(
    ("values", "text"),
    [([12345.6], "1.235e+04"), ([1.0, 1.0], "1"), ([1, 2, 3], "2.00 ± 0.58"), ([100, 300], "200 ± 100"),
     ([0.041, 0.042], "0.04150 ± 0.00050")],
)  # fmt: skip
def test_an_estimate_has_no_more_figures_than_it_is_sure_of(values: list[float], text: str) -> None:
    assert str(Estimate.of(values)) == text


def test_seeds_of_one_recipe_are_one_row_with_a_standard_error(seeds: list[Path]) -> None:
    first, second = compare(seeds).rows
    assert (first.name, second.name) == ("lstm", "gru")
    assert [run.seed for run in first.runs] == [1, 2, 3]
    assert first.best["exact"].mean == pytest.approx(91)
    assert first.best["exact"].error == pytest.approx(1 / 3**0.5)  # deviation 1, three runs
    assert first.settings["encoder.cell"] == "lstm"
    assert "seed" not in first.settings
    assert "91.00 ± 0.58" in str(compare(seeds))
    assert "lstm (3 seeds)" in str(compare(seeds))


def test_seeds_that_each_start_from_a_run_of_their_own_are_one_row(seeds: list[Path], tmp_path: Path) -> None:
    further = [trained(tmp_path / f"on-{seed}", f"seed={seed}", f"init=lstm-{seed}") for seed in (1, 2, 3)]
    assert [len(row.runs) for row in compare([*seeds, *further]).rows] == [3, 3, 3]
    # a run from scratch is no further seed of runs that start from another
    assert [len(row.runs) for row in compare([seeds[0], further[1]]).rows] == [1, 1]
    elsewhere = trained(tmp_path / "other", "seed=2", "init=gru-2")
    assert [len(row.runs) for row in compare([further[0], elsewhere]).rows] == [1, 1]


def test_rows_with_the_same_seeds_are_compared_seed_by_seed(seeds: list[Path]) -> None:
    (pairing,) = compare(seeds).pairings
    assert (pairing.better, pairing.worse) == ("gru", "lstm")
    assert (pairing.wins, pairing.ties, pairing.seeds) == (2, 0, 3)
    gains = np.array([2.0, 4.0, -1.0])
    assert pairing.difference.mean == pytest.approx(gains.mean())
    assert pairing.difference.error == pytest.approx(gains.std(ddof=1) / 3**0.5)
    assert str(compare(seeds)).splitlines()[-1].startswith("gru against lstm: better with 2 of 3 seeds, mean")


def test_where_less_is_better_the_lower_row_wins(tmp_path: Path) -> None:
    folders = []
    for seed, loss in ((1, 0.5), (2, 0.4)):
        folders.append(trained(tmp_path / f"a{seed}", f"seed={seed}", loss=loss))
        folders.append(trained(tmp_path / f"b{seed}", f"seed={seed}", "train.clip=2.0", loss=0.4))
    (pairing,) = compare(folders, by="loss").pairings
    assert (pairing.better, pairing.wins, pairing.ties) == ("b", 1, 1)
    assert pairing.difference.mean == pytest.approx(-0.025)
    assert ", 1 tied," in str(pairing)


def test_other_seeds_are_not_paired_and_the_same_seed_twice_is_no_second_seed(
    seeds: list[Path], tmp_path: Path
) -> None:
    assert compare([path for path in seeds if path.name not in ("lstm-3", "gru-1")]).pairings == []
    again = trained(tmp_path / "again", "seed=1")
    names = [row.name for row in compare([*seeds[::2], again]).rows]
    assert names == ["lstm", "again"]


@pytest.mark.parametrize(
    ("folders", "name"),
    [
        (["lstm-1", "lstm-10"], "lstm"),
        (["gpt2-1", "gpt2-2"], "gpt2"),
        (["lstm/1", "lstm/2"], "lstm"),
        (["lstm-seed1", "lstm-seed2"], "lstm"),
        (["lstm/seed-1/run", "lstm/seed-2/run"], "lstm"),
    ],
)
def test_the_name_of_a_row_is_what_its_folders_begin_with(tmp_path: Path, folders: list[str], name: str) -> None:
    for seed, folder in enumerate(folders):
        (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
        trained(tmp_path / folder, f"seed={seed}")
    (row,) = compare([tmp_path / folder for folder in folders]).rows
    assert row.name == name


# -- curves and pictures


def test_curves_of_seeds_are_averaged_where_all_have_been() -> None:
    first = np.array([0.0, 2.0, 4.0]), np.array([0.0, 2.0, 4.0])
    second = np.array([1.0, 3.0]), np.array([5.0, 5.0])
    places, mean, error = mean_curve([first, second])
    assert places.tolist() == [1, 2, 3]
    assert mean.tolist() == [3, 3.5, 4]
    assert error.tolist() == pytest.approx([2, 1.5, 1])  # half the distance of two
    assert all(len(part) == 0 for part in mean_curve([]))
    assert mean_curve([first])[2].tolist() == [0, 0, 0]


def test_the_figure_has_one_line_per_row_a_band_for_seeds_and_thin_lines_for_training(
    seeds: list[Path], tmp_path: Path
) -> None:
    single = trained(tmp_path / "single", "train.tokens=9")
    drawn = compare([*seeds, single]).figure()
    assert [panel.get_ylabel() for panel in drawn.axes[::2]] == ["exact in validation", "loss (thin: training)"]
    assert [panel.get_xlabel() for panel in drawn.axes[2:]] == ["updates", "minutes"]
    by_step, by_minutes, losses, _ = drawn.axes
    assert len(by_step.lines) == 3
    assert len(by_step.collections) == 2  # bands
    assert by_step.lines[0].get_xydata().tolist() == [[10, 91], [20, 90]]
    assert by_minutes.lines[2].get_xydata().tolist() == [[1, 90], [2, 89]]
    thin = [line for line in losses.lines if line.get_linewidth() < 1]
    assert len(losses.lines) == 6
    assert thin[0].get_ydata().tolist() == [1.0, 0.5]  # without label smoothing
    assert len(compare(seeds, by="loss").figure().axes) == 2


def test_a_picture_is_written_whole_and_the_same_each_time(seeds: list[Path], tmp_path: Path) -> None:
    comparison = compare(seeds)
    for name in ("a.svg", "b.svg", "c.PNG"):
        comparison.save(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.PNG").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))


def test_lines_beyond_the_colours_get_other_dashes() -> None:
    looks = [plot.line(number) for number in range(2 * len(plot.COLOURS))]
    assert len({(look["color"], look["linestyle"]) for look in looks}) == len(looks)


def test_a_picture_without_matplotlib_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    comparison = compare([trained(tmp_path / "run")])
    assert "run" in str(comparison)  # the table needs none
    with pytest.raises(SeqloomError, match=r'pip install "seqloom\[plot\]"'):
        comparison.save(tmp_path / "picture.png")


@pytest.mark.parametrize(
    ("name", "words"),
    [("x.gif", "x.png"), ("x", "x.png"), ("nowhere/x.png", "there is no folder"), ("run.png", "is a folder")],
)
def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "run.png").mkdir()
    with pytest.raises(SeqloomError, match=words):
        plot.check([tmp_path / name])


# -- mistakes


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    run = Run.open(trained(tmp_path / "run"))
    bare = Run.create(tmp_path / "bare", recipe())
    broken = Run.open(trained(tmp_path / "broken"))
    broken.metrics.write_bytes(b'{"kind": "valid"}\n' + run.metrics.read_bytes())
    cut = Run.open(trained(tmp_path / "cut"))
    cut.weights.write_bytes(cut.weights.read_bytes()[:20])
    for mistake, words in (
        (lambda: compare([]), "no run to compare"),
        (lambda: compare([tmp_path]), "is not a run folder"),
        (lambda: compare([run.path], by="exat"), 'did you mean "exact"'),
        (lambda: compare([bare.path]), "metrics.jsonl cannot be read"),
        (lambda: compare([broken.path]), "metrics.jsonl, line 1: expected"),
        (lambda: compare([cut.path]), "not a complete safetensors file"),
    ):
        with pytest.raises(SeqloomError) as caught:
            mistake()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_nothing_of_a_comparison_changes_the_runs(seeds: list[Path]) -> None:
    before = {path: path.read_bytes() for folder in seeds for path in folder.rglob("*") if path.is_file()}
    comparison = compare(seeds)
    recipes = copy.deepcopy([row.runs[0].recipe for row in comparison.rows])
    str(comparison), comparison.figure()
    assert recipes == [row.runs[0].recipe for row in comparison.rows]
    assert before == {path: path.read_bytes() for folder in seeds for path in folder.rglob("*") if path.is_file()}
