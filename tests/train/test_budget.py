"""Minutes: they are kept, announced truly, and a run with them resumes bit for bit."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.data.generators.dates import dates
from seqloom.storage.run import Run
from seqloom.storage.toml import read_toml
from seqloom.train import log, trainer, training
from seqloom.train.display import Display

SMALL = ["encoder.size=16", "decoder.size=16", "train.decode=20"]
PAIRS = [(each.source, each.target) for each in dates(600)]


class Clock:
    """A clock on which only batches take time, so that speed does not depend on the machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.05) -> None:
        self.now, self.seconds = 0.0, seconds
        forward = training.Training.forward

        def timed(module: Any, *arguments: Any) -> Any:
            self.now += self.seconds
            return forward(module, *arguments)

        monkeypatch.setattr(training.Training, "forward", timed)
        monkeypatch.setattr(log.time, "monotonic", lambda: self.now)  # of the module that all share


class Lines(Display):
    """Keeps what is said; may interrupt at a step."""

    def __init__(self, stop: int = 0) -> None:
        super().__init__()
        self.stream, self.said, self.stop = None, [], stop
        self.steps = 0

    def say(self, text: str) -> None:
        self.said.append(text)

    def update(self, **values: Any) -> None:
        self.steps = values["step"]
        if self.stop and values["step"] == self.stop:
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


def final(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    run = Run.open(path)
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "rate")} for line in lines], run.weights.read_bytes()


def test_a_run_with_minutes_that_was_killed_and_resumed_equals_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    seqloom.fit(PAIRS, "dates", out=tmp_path / "whole", minutes=0.2, settings=SMALL, display=Lines())
    steps = read_toml(tmp_path / "whole" / "config.toml")["train"]["steps"]
    display = Lines(stop=steps // 2)
    with pytest.raises(KeyboardInterrupt):
        seqloom.fit(PAIRS, "dates", out=tmp_path / "broken", minutes=0.2, settings=SMALL, display=display)
    assert read_toml(tmp_path / "broken" / "config.toml")["train"]["steps"] == steps
    seqloom.fit(PAIRS, out=tmp_path / "broken", resume=True, display=Lines())
    assert final(tmp_path / "whole") == final(tmp_path / "broken")


def test_minutes_are_kept_on_this_machine(tmp_path: Path) -> None:
    began, display = time.monotonic(), Lines()
    seqloom.fit(PAIRS, "dates", out=tmp_path / "run", minutes=0.15, settings=SMALL, display=display)
    assert time.monotonic() - began <= 0.15 * 60 * 1.5  # 1.1 on a quiet machine; checkpoints count on a slow disk


def test_the_announced_updates_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    display = Lines()
    seqloom.fit(PAIRS, "dates", out=tmp_path / "run", minutes=0.2, settings=SMALL, display=display)
    (forecast,) = (line for line in display.said if "tokens/s" in line)
    announced = int(re.search(r"([\d,]+) updates", forecast)[1].replace(",", ""))  # type: ignore[index]
    assert announced == display.steps
    train = read_toml(tmp_path / "run" / "config.toml")["train"]
    assert train["warmup"] <= announced / 10 + 1
    assert announced / 20 <= train["validate_every"] <= announced


@pytest.mark.parametrize(("factor", "word"), [(2.0, "slower"), (0.5, "faster")])
def test_a_machine_whose_speed_changes_changes_the_updates_and_keeps_the_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, word: str
) -> None:
    clock, display, prepared = Clock(monkeypatch), Lines(), trainer.Trainer.fit

    def fit(self: Any) -> Any:
        clock.seconds *= factor
        return prepared(self)

    monkeypatch.setattr(trainer.Trainer, "fit", fit)
    seqloom.fit(PAIRS, "dates", out=tmp_path / "run", minutes=0.1, settings=SMALL, display=display)
    assert any(f"Training is {word} than measured" in line for line in display.said)
    assert clock.now <= 0.1 * 60 * 1.1
    assert clock.now >= 0.1 * 60 * 0.9


def test_a_recipe_of_ones_own_keeps_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    own = read_toml(Path(seqloom.__file__).parent / "recipes" / "dates.toml")
    own["train"] |= {"warmup": 500, "validate_every": 7, "made_for": 10}
    display = Lines()
    seqloom.fit(PAIRS, own, out=tmp_path / "run", minutes=0.2, settings=SMALL, display=display)
    train = read_toml(tmp_path / "run" / "config.toml")["train"]
    assert (train["warmup"], train["validate_every"], train["tokens"]) == (500, 7, 2048)
    assert any("the learning rate rises over 500 of" in line for line in display.said)


def test_as_written_changes_nothing_and_a_packaged_recipe_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    settings = [*SMALL, "train.validate_every=9"]
    seqloom.fit(PAIRS, "dates", out=tmp_path / "a", settings=[*settings, "train.steps=2"], as_written=True)
    seqloom.fit(PAIRS[:100], "dates", out=tmp_path / "b", minutes=0.03, settings=settings, display=Lines())
    written, fitted = (read_toml(tmp_path / name / "config.toml") for name in "ab")
    assert (written["train"]["tokens"], written["train"]["epochs"], written["encoder"]["dropout"]) == (2048, 4, 0)
    assert fitted["train"]["tokens"] < 2048
    assert fitted["train"]["validate_every"] == 9  # by hand


def test_a_long_source_and_many_unknown_words_are_warned_of(tmp_path: Path) -> None:
    pairs = [(f"a word{number} b", f"x y{number}") for number in range(300)] + [("long " * 2000, "x z")]
    display = Lines()
    settings = [*SMALL, "train.steps=1", "task.source.units=word", "task.target.units=word", "task.source.size=5"]
    seqloom.fit(pairs, "dates", out=tmp_path / "run", settings=settings, display=display, as_written=True)
    warned = [line for line in display.said if line.startswith("Warning: ")]
    assert any("the longest source has 2,000 tokens" in line for line in warned)
    assert any("not in the vocabulary" in line and "task.source.size" in line for line in warned)
    assert all("\n" not in line for line in warned)


def test_steps_set_by_hand_are_made_unless_the_time_does_not_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    for name, steps, least, most in (("few", 30, 30, 30), ("many", 9000, 50, 400)):
        display = Lines()
        settings = [*SMALL, f"train.steps={steps}"]
        seqloom.fit(PAIRS, "dates", out=tmp_path / name, minutes=0.2, settings=settings, display=display)
        assert least <= display.steps <= most
