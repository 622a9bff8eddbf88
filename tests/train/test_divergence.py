"""Divergence: what counts as a failed training, and what does not."""

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import Places
from seqloom.data.codecs.text import Text
from seqloom.errors import SeqloomError
from seqloom.train.divergence import HANDFUL, HOPELESS, excess, guess_loss, recent_loss
from tests.train.test_trainer import Likelihood, Rows, Tiny, interrupt_at, metrics, tiny_run, trainer


def history(start: float | None, *losses: float, key: str = "nll") -> list[dict[str, Any]]:
    """Lines of metrics.jsonl: the first loss, then training losses every ten updates."""
    lines = [{"kind": "train", "step": 10 * number, "loss": 99.0, key: loss} for number, loss in enumerate(losses, 1)]
    return [{"kind": "start", "step": 0, "loss": start}, *lines]


def test_the_recent_loss_is_the_mean_of_the_last_tenth_without_label_smoothing() -> None:
    assert recent_loss(history(2.0, *range(100, 120))) == pytest.approx((118 + 119) / 2)
    assert recent_loss(history(2.0, 5.0, 3.0)) == 3.0
    assert recent_loss(history(2.0, 5.0, key="more")) == 99.0  # no nll: the loss itself
    assert recent_loss(history(2.0)) is None


def test_a_loss_is_measured_against_the_first_and_against_a_guess() -> None:
    assert excess(history(4.0, 9.0), 8.0, guess=2.0) == 2.0
    assert excess(history(1.0, 9.0), 8.0, guess=2.0) == 4.0  # fine-tuning begins low
    assert excess(history(4.0), 8.0, guess=2.0) == 2.0  # too short for a line of training
    assert excess(history(4.0, 9.0), math.inf, guess=2.0) == math.inf


def test_a_model_that_knows_its_training_data_by_heart_has_not_diverged() -> None:
    assert excess(history(4.0, 0.1), 40.0, guess=2.0) == 0.0
    assert excess(history(4.0, 0.1), 4.0 * HOPELESS, guess=2.0) == HOPELESS  # but this no training explains


@pytest.mark.parametrize("start", [None, math.inf, 0.0, -0.5])
def test_nothing_is_said_of_losses_that_cannot_be_compared(start: float | None) -> None:
    assert excess(history(start, 9.0), 1e9, guess=0.0) == 0.0


def test_an_old_run_without_a_first_line_is_not_judged() -> None:
    assert excess(history(4.0, 9.0)[1:], 1e9, guess=2.0) == 0.0


def test_the_loss_of_a_guess_is_that_of_all_tokens_where_they_are_known() -> None:
    codec = Text(units="char").fit(["abcdef"])
    assert guess_loss(codec, fine_tuned=True) == guess_loss(codec, fine_tuned=False) == math.log(10)
    for unknown in (Places(), Numbers()):
        assert guess_loss(unknown, fine_tuned=False) == 0.0
        assert guess_loss(unknown, fine_tuned=True) == math.inf


# -- in the trainer


def test_the_loss_before_the_first_update_is_the_first_line_and_is_not_measured_again_on_resuming(
    tmp_path: Path,
) -> None:
    fitting = trainer(tmp_path, steps=8)
    expected = fitting.validation.measure_loss()
    fitting.fit()
    trainer(tmp_path, steps=16).fit()
    first, *others = metrics(tiny_run(tmp_path))
    assert first == {"kind": "start", "step": 0, "epoch": 0.0, **expected}
    assert "start" not in [line["kind"] for line in others]


def test_an_exploded_loss_ends_training_in_one_line_and_leaves_no_weights(tmp_path: Path) -> None:
    with pytest.raises(
        SeqloomError, match=r"diverged by step 3: .* is \d.*e\+\d+, .* it was 3\.\d+; .*rate=0\.001,"
    ) as end:
        trainer(tmp_path, steps=3, learning_rate=1e9, warmup=0).fit()
    assert "\n" not in str(end.value)
    assert not (tmp_path / "model.safetensors").exists()
    assert tiny_run(tmp_path).newest() is not None


def test_a_hopeless_loss_ends_training_at_its_first_validation(tmp_path: Path) -> None:
    with pytest.raises(SeqloomError, match="diverged by step 4"):
        trainer(tmp_path, steps=400, learning_rate=1e9, warmup=0, validate_every=4).fit()


def test_losses_that_are_never_finite_are_a_failure_even_before_the_fifth_fault(tmp_path: Path) -> None:
    class Broken(Tiny):
        def forward(self, batch: Any) -> Any:
            return super().forward(batch) * (1.0 if self.training else math.nan)

    with pytest.raises(SeqloomError, match="no validation loss was finite"):
        trainer(tmp_path, steps=3, model=Broken()).fit()
    assert not (tmp_path / "model.safetensors").exists()


class Worse(Likelihood):
    """Its validation loss is that of the untrained model times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor, self.first = factor, True

    def forward(self, model: Any, batch: Any, progress: float) -> Any:
        loss = super().forward(model, batch, progress)
        seen, self.first = self.first, self.first and not self.training
        return loss if seen else type(loss)(loss.total * self.factor, loss.count, {})


@pytest.mark.parametrize(
    ("steps", "factor", "fails"), [(2, 1.4, False), (2, 1.6, True), (HANDFUL, 1.1, True), (HANDFUL, 0.9, False)]
)
def test_of_a_handful_of_updates_only_a_loss_half_as_high_again_is_divergence(
    tmp_path: Path, steps: int, factor: float, fails: bool
) -> None:
    fitting = trainer(tmp_path, steps=steps, objective=Worse(factor), learning_rate=1e-9)
    if fails:
        with pytest.raises(SeqloomError, match="diverged"):
            fitting.fit()
    else:
        assert fitting.fit().steps == steps
    assert (tmp_path / "model.safetensors").exists() is not fails


def test_rewards_may_cost_likelihood(tmp_path: Path) -> None:
    class Rewarding(Worse):
        improves: ClassVar[str] = "outputs"

    trainer(tmp_path / "fine", steps=HANDFUL, objective=Rewarding(50.0), learning_rate=1e-9).fit()
    with pytest.raises(SeqloomError, match="diverged"):
        trainer(tmp_path / "hopeless", steps=HANDFUL, objective=Rewarding(2 * HOPELESS), learning_rate=1e-9).fit()


def test_learning_random_targets_by_heart_is_no_divergence(tmp_path: Path) -> None:
    class Table(nn.Module):
        """A row of logits for each pair of a first token and a position."""

        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Parameter(torch.zeros(12, 12, 12))

        def forward(self, batch: Any) -> Any:
            inputs = batch.inputs.values
            return self.logits[inputs, torch.arange(inputs.shape[1])]

    few = Rows(2, 1)
    summary = trainer(
        tmp_path, model=Table(), train=few, steps=100, learning_rate=0.5, schedule="constant", validate_every=100
    ).fit()
    assert summary.best["loss"] > metrics(tiny_run(tmp_path))[0]["loss"]  # worse than a guess, and yet no failure


def test_an_interrupted_training_is_not_a_failure(tmp_path: Path) -> None:
    changes = {"learning_rate": 1e9, "warmup": 0, "validate_every": 100}
    assert trainer(tmp_path, steps=50, display=interrupt_at(2), **changes).fit().stopped == "interrupted"


def test_lines_of_training_count_clipped_and_skipped_updates(tmp_path: Path) -> None:
    from tests.train.test_trainer import Breaking

    model = Breaking(range(2, 4))  # the second update, and again when it is examined
    trainer(tmp_path, steps=6, model=model, clip=1e-6).fit()
    lines = [json.loads(line) for line in tiny_run(tmp_path).metrics.read_text().splitlines()]
    first, second = (line for line in lines if line["kind"] == "train")
    assert (first["clipped"], first["skipped"]) == (1.0, 1.0)
    assert second["clipped"] == 1.0
    assert "skipped" not in second
    trainer(tmp_path / "unclipped", steps=3, clip=0.0).fit()
    assert not [line for line in metrics(tiny_run(tmp_path / "unclipped")) if "clipped" in line]
