"""Pictures out: from generated shapes to a trained run, which draws, completes and scores, from shell and Python."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import seqloom
from seqloom.data.generators.catalogue import write_examples
from seqloom.data.generators.shapes import shapes
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, tsv
from tests.cli.test_use import fine, sets

SIZE = 10
SMALL = [f"task.target.size={SIZE}", "decoder.size=8", "decoder.hidden=8", "decoder.layers=2", "train.steps=3"]
SMALL += ["train.tokens=400"]
CLASSES = ['task.source={type="text", units="word"}', 'encoder={type="recurrent", embedding_size=8, size=8}']


def drawn() -> Path:
    """Shapes, and pictures of them."""
    write_examples(Path("shapes.tsv"), shapes(24, size=SIZE))
    return Path("shapes.tsv")


@pytest.fixture
def run(command: Command) -> str:
    fine(command("train", "pixels", "--data", drawn(), "--columns", "2", "--out", "run", *sets(*SMALL)))
    return "run"


@pytest.fixture
def by_class(command: Command) -> str:
    fine(command("train", "pixels", "--data", drawn(), "--out", "classes", *sets(*SMALL, *CLASSES)))
    return "classes"


def test_pictures_are_drawn_into_one_file_and_again_with_the_same_seed(command: Command, run: str) -> None:
    for name in ("one.png", "two.png"):
        said = fine(command("generate", run, "--count", 5, "--seed", 3, "--out", name)).err
        assert f"{name} shows 5 side by side." in said
    first, second = (np.asarray(PIL.Image.open(name)) for name in ("one.png", "two.png"))
    assert first.shape == (2 * (SIZE + 1) - 1, 3 * (SIZE + 1) - 1)
    assert np.array_equal(first, second)
    model = seqloom.load(run)
    pictures = model.generate(5, seed=3)
    assert all(each.shape == (SIZE, SIZE) for each in pictures)
    assert np.array_equal(pictures[0], first[:SIZE, :SIZE])
    assert np.array_equal(pictures[4], first[-SIZE:, SIZE + 1 : 2 * SIZE + 1])
    assert fine(command("generate", run, "--count", 2)).out.splitlines() == ["(a picture of 10 x 10 pixels)"] * 2


def test_likelihoods_are_in_nats_per_picture_and_bits_per_pixel(command: Command, run: str) -> None:
    measured = json.loads(fine(command("evaluate", run, "--data", "shapes.tsv", "--columns", "2")).out)
    assert measured["examples"] == 24
    pixels = SIZE * SIZE
    assert measured["bits_per_dimension"] == pytest.approx(measured["nats"] / pixels / math.log(2), rel=1e-3)
    model = seqloom.load(run)
    scores = model.score([f"shapes/{number:06}.png" for number in range(24)])
    assert -sum(scores) / 24 == pytest.approx(measured["nats"], rel=1e-3)


def test_a_class_is_drawn_and_reported_as_one(command: Command, by_class: str) -> None:
    fine(command("generate", by_class, "--source", "ring", "--count", 2, "--seed", 1, "--out", "ring.png"))
    model = seqloom.load(by_class)
    ring, bar = (model.generate(4, source=name, seed=1) for name in ("ring", "bar"))
    assert len(ring) == len(bar) == 4
    pair = ("ring", "shapes/000000.png"), ("bar", "shapes/000000.png")
    assert len({*model.score(pair)}) == 2
    assert json.loads(fine(command("evaluate", by_class, "--data", "shapes.tsv")).out)["examples"] == 24
    assert "source: this run reads a source" in command("generate", by_class).complaint
    assert "use seqloom generate --source" in command("predict", by_class, stdin="ring\n").complaint


def test_a_picture_is_completed_several_times(command: Command, run: str) -> None:
    picture = "shapes/000002.png"
    outcome = fine(command("complete", run, picture, "--count", 3, "--seed", 2, "--out", "half.png"))
    lines = outcome.out.splitlines()
    assert [line.rsplit(maxsplit=1)[0].strip() for line in lines] == [
        "the picture itself",
        *(f"completion {number}" for number in (1, 2, 3)),
    ]
    model = seqloom.load(run)
    kept, (whole, *found) = model.complete(picture, keep="top", count=3, seed=2)
    half = SIZE // 2
    original = np.asarray(PIL.Image.open(picture))
    assert np.array_equal(whole.value, original)
    assert np.array_equal(kept[:half], original[:half])
    assert (kept[half:] == 127).all()
    assert all(np.array_equal(each.value[:half], original[:half]) for each in found)
    assert [f"{each.log_prob:.3f}" for each in (whole, *found)] == [line.split()[-1] for line in lines]
    drawn = model.generate(3, seed=2)  # a completion of the whole is a sample: with nothing kept the same are drawn
    assert len(drawn) == 3


def test_the_log_probability_of_a_completion_is_that_of_its_own_pixels(run: str) -> None:
    model = seqloom.load(run)
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    mask[0, 0] = True
    _, (whole, *_) = model.complete("shapes/000001.png", keep=mask, count=1)
    (total,) = model.score(["shapes/000001.png"])
    scores = []
    for value in (0, 255):  # of the first pixel alone
        picture = np.asarray(PIL.Image.open("shapes/000001.png")).copy()
        picture[0, 0] = value
        scores.append(picture)
    first = int(scores[1][0, 0] == np.asarray(PIL.Image.open("shapes/000001.png"))[0, 0])
    batch = model.task.batch(None, [model.task.target.encode(scores[first])])
    log_probs = model.model.decoder(model.model.encode(None, 1), batch.inputs).scores.log_softmax(-1)
    expected = total - float(log_probs[0, 0, batch.targets.values[0, 0]])
    assert whole.log_prob == pytest.approx(expected, abs=1e-3)


def test_kept_pixels_may_be_a_mask_and_come_later(command: Command, run: str) -> None:
    mask = np.zeros((SIZE, SIZE), dtype=np.uint8)
    mask[3:6, 4:] = 255
    PIL.Image.fromarray(mask).save("mask.png")
    fine(command("complete", run, "shapes/000002.png", "--keep", "mask.png", "--count", 2, "--out", "c.png"))
    original = np.asarray(PIL.Image.open("shapes/000002.png"))
    for keep, kept in (("mask.png", mask > 0), (mask > 0, mask > 0), ("left", np.arange(SIZE) < SIZE // 2)):
        kept = np.broadcast_to(kept, (SIZE, SIZE))
        _, found = seqloom.load(run).complete("shapes/000002.png", keep=keep, count=2)
        assert all(np.array_equal(each.value[kept], original[kept]) for each in found)


@pytest.mark.parametrize(
    ("keep", "wrong"),
    [
        ("nothing.png", "keeps no pixel: use generate"),
        ("everything.png", "keeps every pixel"),
        ("wide.png", 'has 12 x 10 pixels; expected "top"'),
        ("bottom", 'expected "top", "left", or a mask'),
    ],
)
def test_a_mask_that_does_not_fit_is_one_line(command: Command, run: str, keep: str, wrong: str) -> None:
    for name, array in (
        ("nothing", np.zeros((SIZE, SIZE))),
        ("everything", np.full((SIZE, SIZE), 255)),
        ("wide", np.zeros((SIZE, 12))),
    ):
        PIL.Image.fromarray(array.astype(np.uint8)).save(f"{name}.png")
    said = command("complete", run, "shapes/000002.png", "--keep", keep, "--out", "c.png").complaint
    assert wrong in said
    assert not Path("c.png").exists()


def test_what_is_no_picture_or_no_run_of_pixels_is_one_line(command: Command, run: str) -> None:
    PIL.Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save("small.png")
    assert "has 4 x 4 pixels" in command("complete", run, "small.png", "--out", "c.png").complaint
    assert "no such file" in command("complete", run, "nowhere.png", "--out", "c.png").complaint
    assert "ends with .png" in command("complete", run, "small.png", "--out", "c.jpg").complaint
    assert ".png files" in command("generate", run, "--out", "c.wav").complaint
    table = tsv("bad.tsv", [("ring", "small.png"), ("ring", "shapes/000001.png")])
    outcome = command("train", "pixels", "--data", table, "--columns", "2", "--out", "bad", *sets(*SMALL))
    assert "bad.tsv, line 1: " in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not Path("bad").exists()


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (['task={type="pairs", target={type="pixels"}}'], "pixels can be a source, not a target"),
        (['decoder={type="recurrent"}'], ""),
        (['task.target={type="text"}', 'task.type="pairs"'], 'task.target.type = "pixels"'),
        (["decoder.kernel=4"], "kernel = 4"),
        (["task.target.levels=1"], "levels = 1"),
        (["task.target.grey=false", "decoder.size=5"], "size = 5: expected 6 or more"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(command: Command, changes: list[str], wrong: str) -> None:
    outcome = command("check", "pixels", *sets(*changes))
    if not wrong:  # a plain decoder of tokens writes pixels as well
        fine(outcome)
        return
    assert wrong in outcome.complaint


def test_an_lstm_writes_pixels_as_tokens(command: Command) -> None:
    decoder = 'decoder={type="recurrent", embedding_size=8, size=8}'
    settings = [f"task.target.size={SIZE}", decoder, "train.steps=3", "train.tokens=400"]
    fine(command("train", "pixels", "--data", drawn(), "--columns", "2", "--out", "lstm", *sets(*settings)))
    (picture,) = seqloom.load("lstm").generate(1)
    assert picture.shape == (SIZE, SIZE)


def test_python_trains_on_arrays(tmp_path: Path) -> None:
    pictures = [each.target for each in shapes(20, size=SIZE)]
    model = seqloom.fit(pictures, "pixels", out="arrays", settings=SMALL, display=Display.quiet())
    assert len(model.score(pictures[:2])) == 2
    with pytest.raises(SeqloomError, match="expected 10 x 10"):
        model.score([np.zeros((3, 3), dtype=np.uint8)])


def test_explain_shows_a_given_picture_or_a_drawn_one(command: Command, run: str) -> None:
    said = fine(command("explain", run, "--target", "shapes/000002.png", "--out", "page.html")).out
    model = seqloom.load(run)
    (score,) = model.score(["shapes/000002.png"])
    assert f"{-score:.2f} nats" in said
    assert '"pixels"' in Path("page.html").read_text()
    found = model.explain(target="shapes/000002.png")
    assert found.pixels is not None
    assert found.pixels.values == (model.task.target.encode("shapes/000002.png") - 4).tolist()
    assert sum(found.pixels.log_probs) == pytest.approx(score, abs=1e-3)
    assert all(sum(each) == pytest.approx(1, abs=1e-4) for each in found.pixels.chances)
    first, second = (model.explain(seed=3).pixels for _ in range(2))
    assert first == second
    complaint = command("explain", run, "ring").complaint
    assert "source: this run reads none" in complaint


def test_many_levels_are_shown_together(command: Command) -> None:
    levels = ["task.target.levels=100", "task.target.grey=false", "task.target.fit=stretch"]
    sizes = ["decoder.size=12", "decoder.hidden=12", "train.tokens=1200"]
    drawn()
    fine(
        command(
            "train", "pixels", "--data", "shapes.tsv", "--columns", "2", "--out", "run", *sets(*SMALL, *levels, *sizes)
        )
    )
    pixels = seqloom.load("run").explain(target="shapes/000000.png").pixels
    assert pixels is not None
    assert (pixels.channels, pixels.levels, len(pixels.values)) == (3, 100, 300)
    assert {len(each) for each in pixels.chances} == {25}
    assert all(sum(each) == pytest.approx(1, abs=1e-4) for each in pixels.chances)


def test_only_models_of_pixels_explain_a_given_output(command: Command) -> None:
    fine(command("train", "scan-lstm", "--data", tsv(), "--out", "text", *sets("train.steps=1")))
    assert "target: only of models of pixels" in command("explain", "text", "1", "--target", "x.png").complaint


def test_any_decoder_completes_as_many_pixels_as_there_are(command: Command) -> None:
    settings = [f"task.target.size={SIZE}", 'decoder={type="recurrent", size=8, embedding_size=8}', "train.steps=2"]
    fine(command("train", "pixels", "--data", drawn(), "--columns", "2", "--out", "lstm", *sets(*settings)))
    _, found = seqloom.load("lstm").complete("shapes/000003.png", count=2)
    assert {each.value.shape for each in found} == {(SIZE, SIZE)}
    model = seqloom.load("lstm")
    with pytest.raises(SeqloomError, match="maximum_length: a completion is as long"):
        model.complete("shapes/000003.png", maximum_length=5)


def test_a_completion_that_cannot_be_is_said_in_one_line(run: str) -> None:
    with pytest.raises(SeqloomError, match="meets the constraints"):
        seqloom.load(run).complete("shapes/000003.png", no_repeat=2)


@pytest.mark.parametrize("count", [2.5, "3", True, 0])
def test_a_count_is_a_number(run: str, count: object) -> None:
    model = seqloom.load(run)
    for ask in (lambda: model.generate(count), lambda: model.complete("shapes/000003.png", count=count)):
        with pytest.raises(SeqloomError, match="count = "):
            ask()


def test_masks_may_be_lists_tensors_or_zeros_and_ones(run: str) -> None:
    import torch

    model, mask = seqloom.load(run), np.arange(SIZE * SIZE).reshape(SIZE, SIZE) < 30
    expected, _ = model.complete("shapes/000003.png", keep=mask, count=1)
    for form in (mask.tolist(), torch.from_numpy(mask), mask.astype(int)):
        assert np.array_equal(model.complete("shapes/000003.png", keep=form, count=1)[0], expected)
    with pytest.raises(SeqloomError, match='expected "top", "left", or a mask of 10 x 10 pixels'):
        model.complete("shapes/000003.png", keep="8")


def test_what_is_read_is_not_written_over(command: Command, run: str) -> None:
    picture, before = "shapes/000003.png", Path("shapes/000003.png").read_bytes()
    assert "this is what is read" in command("complete", run, picture, "--out", picture).complaint
    assert "this is what is read" in command("explain", run, "--target", picture, "--out", picture).complaint
    assert Path(picture).read_bytes() == before


def test_a_prefix_may_be_an_array_and_a_class_that_is_new_is_noted(command: Command, run: str, by_class: str) -> None:
    picture = np.asarray(PIL.Image.open("shapes/000003.png"))
    with pytest.raises(SeqloomError, match="nothing is left to draw"):
        seqloom.load(run).generate(1, prefix=picture)
    said = fine(command("generate", by_class, "--source", "hexagon", "--out", "new.png")).err
    assert "never seen" in said


def test_colour_needs_no_other_sizes(command: Command) -> None:
    fine(command("check", "pixels", *sets("task.target.grey=false")))
    fine(command("check", "frames", *sets("task.target.grey=false")))
