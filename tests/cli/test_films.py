"""Films out: from generated sprites to a trained run, which draws, continues and scores, from shell and Python."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import seqloom
from seqloom.data.codecs.frames import Frames
from seqloom.data.generators.catalogue import write_examples
from seqloom.data.generators.sprites import sprites
from seqloom.errors import SeqloomError
from tests.cli.conftest import Command
from tests.cli.test_use import fine, sets

SIZE, FRAMES = 9, 4
SMALL = [f"task.target.size={SIZE}", f"task.target.frames={FRAMES}", "decoder.size=8", "decoder.hidden=8"]
SMALL += ["decoder.layers=1", "decoder.drawing_layers=1", "train.steps=3", "train.tokens=1000"]
FILM = "sprites/000002.npz"


@pytest.fixture
def run(command: Command) -> str:
    write_examples(Path("sprites.tsv"), sprites(24, size=SIZE, frames=FRAMES, speeds=2))
    fine(command("train", "frames", "--data", "sprites.tsv", "--columns", "2", "--out", "run", *sets(*SMALL)))
    return "run"


def test_films_are_drawn_into_one_file_side_by_side(command: Command, run: str) -> None:
    said = fine(command("generate", run, "--count", 3, "--seed", 3, "--out", "new.gif")).err
    assert "new.gif shows 3 side by side." in said
    films = seqloom.load(run).generate(3, seed=3)
    assert all(each.shape == (FRAMES, SIZE, SIZE) for each in films)
    side = 2 * (SIZE + 1) - 1
    grid = Frames(frames=FRAMES, size=side, levels=256).decode(
        Frames(frames=FRAMES, size=side, levels=256).encode("new.gif")
    )
    assert np.array_equal(grid[:, :SIZE, :SIZE], films[0])
    assert np.array_equal(grid[:, SIZE + 1 :, :SIZE], films[2])
    assert fine(command("generate", run)).out.splitlines() == ["(a film of 4 frames of 9 x 9 pixels)"]


def test_likelihoods_are_in_nats_per_film_and_bits_per_pixel(command: Command, run: str) -> None:
    measured = json.loads(fine(command("evaluate", run, "--data", "sprites.tsv", "--columns", "2")).out)
    pixels = FRAMES * SIZE * SIZE
    assert measured["bits_per_dimension"] == pytest.approx(measured["nats"] / pixels / math.log(2), rel=1e-3)
    scores = seqloom.load(run).score([f"sprites/{number:06}.npz" for number in range(24)])
    assert -sum(scores) / 24 == pytest.approx(measured["nats"], rel=1e-3)


def test_a_film_is_continued_after_the_frames_that_are_kept(command: Command, run: str) -> None:
    outcome = fine(command("complete", run, FILM, "--keep", 3, "--count", 2, "--seed", 2, "--out", "next.gif"))
    assert [line.rsplit(maxsplit=1)[0].strip() for line in outcome.out.splitlines()] == [
        "the film itself",
        "completion 1",
        "completion 2",
    ]
    assert "next.gif shows the film, what is kept, and 2 completions." in outcome.err
    model = seqloom.load(run)
    kept, (whole, *found) = model.complete(FILM, keep=3, count=2, seed=2)
    original = np.load(FILM)["frames"]
    assert np.array_equal(whole.value, original)
    assert np.array_equal(kept[:3], original[:3])
    assert (kept[3:] == 127).all()
    assert all(np.array_equal(each.value[:3], original[:3]) for each in found)
    together, begun = model.score([original, original[:3]])
    assert whole.log_prob == pytest.approx(together - begun, abs=1e-3)
    half, _ = model.complete(FILM, count=1)
    assert (half[FRAMES // 2 :] == 127).all()
    assert not (half[: FRAMES // 2] == 127).any()


def test_a_shorter_film_is_a_prefix(command: Command, run: str) -> None:
    film = np.load(FILM)["frames"][:2]
    np.savez("short.npz", frames=film)
    fine(command("generate", run, "--prefix", "short.npz", "--out", "whole.gif"))
    whole = Frames(frames=FRAMES, size=SIZE).encode("whole.gif")
    assert len(whole) == FRAMES * SIZE * SIZE
    assert np.array_equal(whole[: film.size], Frames(frames=FRAMES, size=SIZE).encode(film))


def test_a_prefix_that_is_whole_leaves_nothing_to_draw(command: Command, run: str) -> None:
    assert "nothing is left to draw" in command("generate", run, "--prefix", FILM, "--out", "c.gif").complaint
    most = FRAMES * SIZE * SIZE
    wrong = command("generate", run, "--maximum-length", most + 1, "--out", "c.gif").complaint
    assert f"expected at most {most}" in wrong
    assert len(seqloom.load(run).generate(1, prefix=np.load(FILM)["frames"][:3], seed=1)[0]) == FRAMES


@pytest.mark.parametrize(
    ("keep", "wrong"),
    [
        (2.7, "expected how many frames"),
        (True, "expected how many frames"),
        (float("inf"), "expected how many frames"),
        (FRAMES, f"keep = {FRAMES}: expected how many frames to keep, 1 to {FRAMES - 1}"),
        ("top", "expected how many frames to keep"),
    ],
)
def test_what_cannot_be_kept_gets_one_line(run: str, keep: object, wrong: str) -> None:
    with pytest.raises(SeqloomError, match=wrong):
        seqloom.load(run).complete(FILM, keep=keep)


def test_mistakes_get_one_line(command: Command, run: str) -> None:
    np.savez("short.npz", frames=np.zeros((2, SIZE, SIZE), dtype=np.uint8))
    assert "short.npz has 2 frames; expected 4" in command("complete", run, "short.npz", "--out", "c.gif").complaint
    assert "expected a name that ends with .gif" in command("complete", run, FILM, "--out", "c.png").complaint
    assert "expected a name that ends so" in command("generate", run, "--out", "c.png").complaint
    pictures = ["train", "pixels", "--data", "sprites.tsv", "--columns", "2", "--out", "other"]
    wrong = command(*pictures, *sets('task.target={type="frames", size=9, frames=4}')).complaint
    assert 'take decoder.type = "video_pixels"' in wrong
    wrong = command(
        "train",
        "frames",
        "--data",
        "sprites.tsv",
        "--columns",
        "2",
        "--out",
        "other",
        *sets('task.target={type="pixels"}'),
    ).complaint
    assert 'set task.target.type = "frames"' in wrong
    assert not Path("other").exists()
