"""Which run a training goes on with."""

from pathlib import Path
from typing import Any

import pytest

from seqloom.errors import SeqloomError
from seqloom.train.prepare import run_to_resume
from tests.faults.untrained import untrained_run


def test_auto_begins_where_there_is_no_run_and_goes_on_where_there_is_one(tmp_path: Path) -> None:
    assert run_to_resume(tmp_path / "new", "auto", None) is None
    run = untrained_run("recurrent", tmp_path)
    run.joinpath("model.safetensors").unlink()
    found = run_to_resume(run, "auto", None)
    assert found is not None
    assert found.path == run


def test_true_asks_for_a_run_and_false_for_none(tmp_path: Path) -> None:
    run = untrained_run("recurrent", tmp_path)
    with pytest.raises(SeqloomError, match="already exists"):
        run_to_resume(run, False, None)
    with pytest.raises(SeqloomError, match="new"):
        run_to_resume(tmp_path / "new", True, None)
    assert run_to_resume(tmp_path / "new", False, None) is None


@pytest.mark.parametrize("resume", [True, "auto"])
def test_weights_without_a_checkpoint_are_no_training_to_go_on_with(tmp_path: Path, resume: Any) -> None:
    run = untrained_run("recurrent", tmp_path)
    with pytest.raises(SeqloomError, match="no checkpoint to continue from: start from its weights with --init"):
        run_to_resume(run, resume, None)


def test_another_word_is_refused(tmp_path: Path) -> None:
    wrong: Any = "yes"
    with pytest.raises(SeqloomError, match='resume = "yes": expected True, False or "auto"'):
        run_to_resume(tmp_path, wrong, None)
