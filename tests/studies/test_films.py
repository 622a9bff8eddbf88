"""Measures of models of films, and the films of studies."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from seqloom.data.codecs.frames import Frames
from seqloom.studies.measures import films as measures
from seqloom.studies.measures.pixels import as_text
from seqloom.studies.pictures import continuations
from seqloom.studies.sources import films as sources
from seqloom.studies.study import Splits
from seqloom.tasks.series import Series
from seqloom.types import Example


def test_sprites_are_written_once_and_those_of_the_test_are_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "SPLITS", {"train": (0, 3), "valid": (3, 1), "test": (4, 2)})
    sources.moving_sprites.cache_clear()
    splits = sources.moving_sprites(tmp_path)
    (table,) = splits.test
    names = Path(table).read_text().splitlines()
    assert len(names) == 2
    films = [np.load(Path(table).parent / name)["frames"] for name in names]
    assert all(film.shape == (sources.FRAMES, 16, 16) for film in films)
    expected = [film for film, _ in sources.films("sprites", "test")]
    assert np.array_equal(films, np.array(expected) * 255)
    before = Path(table).stat().st_mtime_ns
    sources.moving_sprites.cache_clear()
    assert sources.moving_sprites(tmp_path) == splits
    assert Path(table).stat().st_mtime_ns == before
    sources.moving_sprites.cache_clear()


def test_copies_of_the_last_frame_cost_the_entropy_of_a_change():
    random = np.random.default_rng(1)
    flips = random.random((500, 12, 8, 8)) < 0.1
    films = np.logical_xor.accumulate(flips, axis=1)
    entropy = -0.1 * np.log(0.1) - 0.9 * np.log(0.9)
    assert measures.copied(films[:250], films[250:]) == pytest.approx(64 * entropy, rel=0.02)


class Constant:
    """A model to which each frame costs two nats."""

    task = Series(target=Frames(size=4, frames=sources.FRAMES))

    def examples(self, paths):
        random = np.random.default_rng(2)
        return [Example(None, random.integers(0, 2, (sources.FRAMES, 4, 4)).astype(np.uint8) * 255) for _ in range(3)]

    def complete(self, film, *, keep, count, **options):
        return None, [SimpleNamespace(value=film)] * (1 + count)

    def score(self, films):
        return [-2.0 * len(film) for film in films]


def test_nats_are_those_of_the_frames_after_the_given_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "SPLITS", {"test": (0, 2)})
    found = measures.nats_per_frame("sprites")(Constant(), Splits([], None, []))
    assert found["nats_per_frame"] == pytest.approx(2)
    assert 20 < found["own_nats"] < 32  # 256 pixels, of which 2 % are flipped


def test_films_are_shown_from_the_last_given_frames_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "SPLITS", {"test": (0, 3)})
    shown = measures.continued("sprites")(Constant(), Splits([], None, []))
    assert shown["shape"] == [6, 4, 4]
    surprises = [nats[sources.KNOWN] for _, nats in sources.films("sprites", "test")]
    film = Constant().examples(None)[int(np.argmax(surprises))].target
    assert shown["rows"] == [as_text(film[6:])] * 3
    panels = continuations({"rows": [{"variant": "VPN", "shown": shown}]}).axes
    assert panels[0].images[0].get_array().shape == (3 * 5, 6 * 5)
