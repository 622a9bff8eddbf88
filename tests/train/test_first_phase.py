"""The first phase of a training: it ends when validation stops improving, resumed or not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.contracts import Encoder
from seqloom.nn.encoders.memory_network import MemoryNetwork
from seqloom.nn.heads.word import Word
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.train.display import Display
from seqloom.train.first_phase import FirstPhase
from seqloom.train.state import TrainingState
from seqloom.train.trainer import Trainer
from seqloom.train.training import Training
from seqloom.types import Batch, Padded
from tests.train.test_trainer import interrupt_at, metrics, state, tiny_run, trainer

WORDS, RATE = 12, 0.05


def network(**settings: Any) -> Model:
    torch.manual_seed(1)
    encoder = MemoryNetwork(vocabulary=WORDS, pad=0, size=6, hops=2, **{"linear_start": 0.9, **settings})
    return Model(encoder, Word(vocabulary=WORDS, memory_size=6, pad=0))


class Stories:
    """Stories of three sentences and a question; the answer is a word of one of them."""

    def __init__(self, rows: int, seed: int):
        chance = np.random.default_rng(seed)
        self.stories = chance.integers(4, WORDS, (rows, 4, 3))
        self.answers = self.stories[np.arange(rows), chance.integers(0, 3, rows), 2]
        self.lengths = np.full((rows, 2), [4, 1], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.answers)


def collate(corpus: Any, rows: np.ndarray) -> Batch:
    ones = torch.ones(len(rows), dtype=torch.long)
    source = Padded(torch.from_numpy(corpus.stories[rows]), 4 * ones)
    answers = torch.from_numpy(corpus.answers[rows])[:, None]
    return Batch(source, Padded(2 * ones[:, None], ones), Padded(answers, ones), tuple(map(int, rows)))


def story_trainer(path: Path, model: Model | None = None, **changes: Any) -> Trainer:
    defaults = {"schedule": "constant", "warmup": 0, "learning_rate": RATE, "validate_every": 4, "log_every": 1}
    return trainer(
        path,
        model=model or network(),
        objective=CrossEntropy(),
        train=Stories(60, 1),
        valid=Stories(20, 2),
        collate=collate,
        **{**defaults, **changes},
    )


class Lines(Display):
    """Collects what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.stream, self.said = None, list[str]()

    def say(self, line: str) -> None:
        self.said.append(line)


def phase(longest: float = 0.5, rate: float = 0.5) -> FirstPhase:
    encoder = network(linear_start=longest, linear_rate=rate)
    found = FirstPhase(Training(encoder, CrossEntropy()), TrainingState())
    found.begin()
    return found


class TestWhenItEnds:
    def test_at_the_first_validation_whose_loss_is_not_the_lowest(self) -> None:
        first = phase()
        for loss in (2.0, 1.5, 1.49):
            assert not first.validated(loss)
            assert first.training.first_phase
            assert first.rate() == 0.5
        first.state.step, first.state.stale = 12, 3
        first.state.add_validation({"loss": 1.49}, 1.49, sign=-1.0, keep=3)
        assert (
            first.validated(1.49) == "The first phase of the training ends at step 12: validation loss 1.49 after 1.49."
        )
        assert not first.training.first_phase
        assert first.rate() == 1.0
        assert (first.state.best, first.state.stale, first.state.validated) == ([], 0, 0)
        assert not first.validated(7.0)  # only once

    def test_at_the_latest_after_its_share_of_the_training(self) -> None:
        first = phase(longest=0.5)
        assert not first.progressed(0.49)
        assert first.progressed(0.5) == "The first phase of the training ends at step 0: 50% of the training."
        assert not first.progressed(0.6)

    def test_at_once_in_a_training_without_one(self) -> None:
        first = phase(longest=0.0)
        assert not first.state.first_phase
        assert not first.training.first_phase
        assert first.rate() == 1.0
        assert not first.progressed(1.0)
        assert not first.validated(1.0)


def test_a_training_changes_its_learning_rate_and_its_model_with_the_phase(tmp_path: Path) -> None:
    display = Lines()
    story_trainer(tmp_path / "run", steps=80, display=display).fit()
    lines = metrics(tiny_run(tmp_path / "run"))
    (ended,) = [line["step"] for line in lines if line["kind"] == "phase"]
    assert 0 < ended < 72, "it should end by validation, not by its share"
    rates = {line["step"]: line["learning_rate"] for line in lines if line["kind"] == "train"}
    assert {rates[step] for step in range(1, ended + 1)} == {RATE / 2}
    assert {rates[step] for step in range(ended + 1, 81)} == {RATE}
    losses = [line["loss"] for line in lines if line["kind"] == "valid" and line["step"] <= ended]
    assert losses[:-1] == sorted(losses[:-1], reverse=True)
    assert losses[-1] >= losses[-2]
    said = [line for line in display.said if "phase" in line]
    assert said == [
        f"The first phase of the training ends at step {ended}: "
        f"validation loss {losses[-1]:.4g} after {losses[-2]:.4g}."
    ]


def test_the_first_phase_is_that_of_a_model_without_softmax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story_trainer(tmp_path / "phase", steps=8, checkpoint_every=3).fit()
    with monkeypatch.context() as patch:
        patch.setattr(MemoryNetwork, "attention_weights", lambda self, scores, facts, linear: scores * facts)
        linear = network(linear_start=0.0)
        story_trainer(tmp_path / "linear", linear, learning_rate=RATE / 2, steps=8, checkpoint_every=3).fit()
    kept = ("kind", "step", "loss", "nll", "gradient_norm", "learning_rate")
    first, plain = (
        [{key: line.get(key) for key in kept} for line in metrics(tiny_run(tmp_path / name)) if 0 < line["step"] <= 7]
        for name in ("phase", "linear")
    )
    assert first == plain


def test_checkpoints_of_the_first_phase_are_not_chosen(tmp_path: Path) -> None:
    summary = story_trainer(tmp_path / "run", steps=80).fit()
    run = tiny_run(tmp_path / "run")
    (ended,) = [line["step"] for line in metrics(run) if line["kind"] == "phase"]
    newest = run.newest()
    assert newest is not None
    assert all(entry["step"] > ended for entry in newest.trainer()["standing"]["best"])
    later = [line["loss"] for line in metrics(run) if line["kind"] == "valid" and line["step"] > ended]
    assert summary.best["loss"] == min(later)


def test_a_training_that_ends_in_its_first_phase_is_validated_with_softmax(tmp_path: Path) -> None:
    summary = story_trainer(tmp_path / "run", network(linear_start=0.99), steps=4).fit()
    lines = metrics(tiny_run(tmp_path / "run"))
    assert [line["kind"] for line in lines if line["kind"] != "train"] == ["start", "valid", "phase", "valid"]
    assert summary.best["loss"] == lines[-1]["loss"] != lines[-3]["loss"]


@pytest.mark.parametrize("step", [3, 70])
def test_a_resumed_training_goes_on_in_its_phase(tmp_path: Path, step: int) -> None:
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    story_trainer(unbroken, steps=80).fit()
    assert story_trainer(broken, steps=80, display=interrupt_at(step)).fit().stopped == "interrupted"
    story_trainer(broken, steps=80).fit()
    assert state(tiny_run(unbroken)) == state(tiny_run(broken))
    assert metrics(tiny_run(unbroken)) == metrics(tiny_run(broken))


def test_a_training_before_there_were_phases_goes_on_without_one() -> None:
    training, stored = Training(network(), CrossEntropy()), {"step": 5}
    state = TrainingState()
    state.restore(stored, Path("trainer.json"))
    FirstPhase(training, state).begin()
    assert not training.first_phase


def test_an_encoder_within_another_may_have_a_first_phase() -> None:
    class Around(Encoder):
        def __init__(self, inner: Encoder):
            super().__init__()
            self.inner = inner

        def forward(self, source: Padded, attention: bool = False) -> Any:
            return self.inner(source, attention)

    inner = network().encoder
    assert isinstance(inner, Encoder)
    training = Training(nn.ModuleList([Around(inner)]), CrossEntropy())
    assert FirstPhase(training, TrainingState()).encoder is inner


def test_the_loss_before_the_first_update_is_that_of_the_whole_model(tmp_path: Path) -> None:
    """Divergence is measured against it, after the first phase."""
    for name, longest in (("phase", 0.5), ("none", 0.0)):
        story_trainer(tmp_path / name, network(linear_start=longest), steps=1).fit()
    first, second = (metrics(tiny_run(tmp_path / name))[0] for name in ("phase", "none"))
    assert first == second
