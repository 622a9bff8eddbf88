"""Films in, words out: from generated mouths to a trained run, on the command line and in Python."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

import seqloom
from seqloom.data.generators.catalogue import write_examples
from seqloom.data.generators.mouths import mouths
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, pairs, tsv
from tests.cli.test_use import filmed, fine, sets

SMALL = ["encoder.image.size=8", "encoder.encoder.size=8", "decoder.size=8", "train.steps=3", "train.tokens=256"]
BOTH = ["decoder.size=8", "train.steps=3", "train.tokens=256", "train.decode=2"]


@pytest.fixture
def lips(command: Command) -> str:
    fine(command("train", "lips", "--data", filmed(), "--out", "lips", *sets(*SMALL, "train.decode=2")))
    return "lips"


@pytest.fixture
def both(command: Command) -> str:
    fine(command("train", "lips-and-sound", "--data", filmed(), "--out", "both", *sets(*BOTH)))
    return "both"


def test_paths_arrays_and_dictionaries_are_read_alike(command: Command, lips: str) -> None:
    names = [f"mouths/00000{number}.npz" for number in range(3)]
    written = fine(command("predict", lips, stdin="\n".join(names) + "\n")).out.splitlines()
    model = seqloom.load(lips)
    arrays = [np.load(name)["frames"] for name in names]
    assert model.predict(names) == model.predict(arrays) == model.predict([{"frames": each} for each in arrays])
    assert model.predict(names) == written
    assert len(model.score([(names[0], "red"), (arrays[1], "pale dog")])) == 2


def test_lips_alone_sound_alone_and_both_are_read_by_one_model(command: Command, both: str) -> None:
    film = dict(np.load("mouths/000001.npz"))
    soundfile.write("heard.wav", film["sound"], int(film["rate"]))
    np.savez("seen.npz", frames=film["frames"])
    names = ["mouths/000001.npz", "seen.npz", "heard.wav"]
    written = fine(command("predict", both, stdin="\n".join(names) + "\n")).out.splitlines()
    seen, heard = {"frames": film["frames"]}, {"sound": film["sound"], "rate": 8000}
    model = seqloom.load(both)
    assert model.predict([film, seen, heard]) == model.predict(names) == written
    assert len(set(model.score([(value, "a red dog") for value in (film, seen, heard)]))) == 3


def test_training_is_the_same_again_and_an_evaluation_counts(command: Command, both: str) -> None:
    fine(command("train", "lips-and-sound", "--data", "mouths.tsv", "--out", "again", *sets(*BOTH)))
    first, second = (Path(run, "last/model.safetensors") for run in (both, "again"))
    if not first.exists():
        first, second = (next(Path(run).rglob("model.safetensors")) for run in (both, "again"))
    assert first.read_bytes() == second.read_bytes()
    measured = json.loads(fine(command("evaluate", both, "--data", "mouths.tsv")).out)
    assert measured["examples"] == 12
    assert {"cer", "wer", "bleu"} <= measured.keys()


def test_python_trains_on_arrays_and_follows_a_curriculum() -> None:
    films = [each for each in mouths(40, words=3) if len(each.target) > 3]
    settings = [*SMALL[:-2], "train.decode=2", "train.steps=8", "train.tokens=256", "task.curriculum=[5]"]
    model = seqloom.fit(films, "lips", out="arrays", settings=settings, display=Display.quiet())
    assert len(model.predict([each.source for each in films[:3]])) == 3
    with pytest.raises(SeqloomError, match=r"task.curriculum: no target has 1 tokens or fewer"):
        seqloom.fit(films, "lips", out="none", settings=[*settings, "task.curriculum=[1]"], display=Display.quiet())


def test_an_explanation_shows_the_frames(command: Command, lips: str, both: str) -> None:
    for run in (lips, both):
        said = fine(command("explain", run, "mouths/000002.npz", "--out", f"{run}.html")).out
        assert "attention" in said
        page = Path(f"{run}.html").read_text()
        assert page.count("data:image/png;base64,") == 1  # the frames in one picture
    explained = seqloom.load(lips).explain("mouths/000002.npz")
    assert len(explained.source) == len(np.load("mouths/000002.npz")["frames"])
    assert explained.source[1] == "0.04 s"
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in explained.attention)


def test_frames_can_be_streamed(command: Command) -> None:
    small = ["encoder.image.size=8", "encoder.encoder.size=8", "train.steps=3", "train.tokens=256"]
    fine(command("train", "lips-ctc", "--data", filmed(), "--out", "ctc", *sets(*small)))
    frames = np.load("mouths/000003.npz")["frames"]
    model = seqloom.load("ctc")
    with model.stream() as stream:
        for begin in range(0, len(frames), 3):
            stream.feed(frames[begin : begin + 3])
        found = stream.close().final
    assert found == model.predict([frames])[0]
    said = fine(command("stream", "ctc", stdin="mouths/000003.npz\nmouths/000004.npz\n")).out
    assert said.splitlines() == model.predict(["mouths/000003.npz", "mouths/000004.npz"])
    said = command("stream", "ctc", stdin="nowhere.npz\n").complaint
    assert said.startswith("standard input, line 1: nowhere.npz: there is no such file")


def test_films_with_sound_are_not_streamed(both: str) -> None:
    with pytest.raises(SeqloomError, match="reads the end of a source before its beginning") as caught:
        seqloom.load(both).stream()
    assert len(str(caught.value).splitlines()) == 1


def test_a_bad_film_is_one_line_and_can_be_skipped(command: Command) -> None:
    table = filmed()
    Path("mouths/000004.npz").write_bytes(Path("mouths/000004.npz").read_bytes()[:300])
    film = dict(np.load("mouths/000005.npz"))
    np.savez("mouths/000005.npz", **{**film, "sound": film["sound"][:400]})
    arguments = ("train", "lips-and-sound", "--data", table, "--out", "run", *sets(*BOTH))
    outcome = command(*arguments)
    assert outcome.code != 0
    assert "mouths.tsv, line 5: " in outcome.err
    assert "000004.npz is not a readable NPZ file" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not Path("run").exists()
    outcome = fine(command(*arguments, "--skip-bad"))
    assert "Skipped 2 training lines: 2 x unreadable source (first at line 5)." in outcome.err + outcome.out
    with pytest.raises(SeqloomError, match="there is no such file"):
        seqloom.load("run").predict(["nowhere.npz"])


@pytest.mark.parametrize(
    ("recipe", "changes", "wrong"),
    [
        ("lips", ['encoder={type="recurrent"}'], '"video" for films'),
        ("lips", ['encoder={type="image"}'], "films"),
        ("lips", ["task.source.type=image"], "films"),
        ("lips", ['encoder={type="several"}'], "task.source.sound"),
        ("lips", ['task.source.sound={type="audio"}'], 'take "several"'),
        ("lips", ["task.source.missing=0.3"], "missing = 0.3"),
        ("lips", ['decoder.attention={type="several"}'], "sound"),
        ("lips-and-sound", ["encoder.parts.sound.size=64"], "different sizes"),
        ("lips-and-sound", ['decoder.attention.parts=["voice"]'], "voice"),
        ("lips", ["task.curriculum=[-3]"], "curriculum = [-3]"),
        ("lips", ["encoder.window=0"], "window = 0"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(command: Command, recipe: str, changes: list[str], wrong: str) -> None:
    outcome = command("train", recipe, "--data", filmed(), "--out", "run", *sets("train.steps=2", *changes))
    assert outcome.code != 0
    assert wrong in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not Path("run").exists()


def test_text_in_place_of_films_is_one_line(command: Command) -> None:
    outcome = command("train", "lips", "--data", tsv("text.tsv", pairs()), "--out", "run", *sets(*SMALL))
    assert outcome.code != 0
    assert "there is no such file" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_an_export_is_refused_in_one_line(command: Command, lips: str, both: str) -> None:
    for run in (lips, both):
        for engine in ("onnx", "ctranslate2"):
            outcome = command("export", run, "--to", engine, "--out", "exported")
            assert outcome.code != 0
            assert len(outcome.err.strip().splitlines()) == 1
            assert "internal error" not in outcome.err
            assert not Path("exported").exists()


def test_an_ensemble_reads_lips_and_sound(command: Command, both: str) -> None:
    fine(command("train", "lips-and-sound", "--data", "mouths.tsv", "--out", "other", *sets(*BOTH, "train.steps=4")))
    found = fine(command("predict", both, "other", stdin="mouths/000003.npz\n")).out
    assert found.count("\n") == 1


GRID = Path(os.environ.get("SEQLOOM_DATA", "nowhere")) / "grid-lips-sample"


@pytest.mark.skipif(not GRID.exists(), reason="clips of GRID are needed: set SEQLOOM_DATA")
def test_real_lips_are_read_through_the_same_codec(command: Command) -> None:
    clips, table = np.load(GRID / "mouth_roi.npz"), (GRID / "transcripts.tsv").read_text().splitlines()
    rows = []
    for line in table:
        name, sentence = line.split("\t")
        np.savez(f"{name}.npz", frames=clips[name], fps=25)
        rows.append((f"{name}.npz", sentence))
    said = fine(command("train", "--data", tsv("grid.tsv", rows), "--out", "grid", "--set", "train.steps=2")).err
    assert "lips" in said
    outcome = fine(command("predict", "grid", stdin=f"{rows[0][0]}\n"))
    assert outcome.out.count("\n") == 1


def test_the_same_films_are_written_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_examples(tmp_path / f"{name}.tsv", mouths(3))
    for number in range(3):
        first, second = (np.load(tmp_path / name / f"00000{number}.npz") for name in ("one", "two"))
        assert all(np.array_equal(first[key], second[key]) for key in ("frames", "fps", "sound", "rate"))
