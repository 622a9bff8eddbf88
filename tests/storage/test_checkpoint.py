"""Run folders: complete or not there, safe to open, and every misfit reported in one line."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.settings import Settings
from seqloom.errors import SeqloomError
from seqloom.storage import files
from seqloom.storage import run as checkpoint
from seqloom.storage.environment import store_environment
from seqloom.storage.lock import WriteLock
from seqloom.storage.run import Run
from seqloom.storage.weights import average, load_file, save_file, skip_initialisation, weights_of
from seqloom.train.optimiser import NamedOptimiser


class Tied(nn.Module):
    def __init__(self, vocabulary: int = 10, size: int = 4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.output = nn.Linear(size, vocabulary)
        self.output.weight = self.embedding.weight
        self.register_buffer("count", torch.tensor(3))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(torch.tanh(self.embedding(tokens)))


def new_run(path: Path) -> Run:
    return Run.create(path / "run", {"seed": 3, "train": {"tokens": 128}})


def save(run: Run, step: int, value: float = 1.0) -> None:
    run.save(
        step, model={"a": torch.full((3,), value)}, optimiser={"a/exp_avg": torch.zeros(3)}, trainer={"step": step}
    )


def reopened(run: Run) -> Run:
    """Opened for writing."""
    with WriteLock() as lock:
        return Run.open(run.path, lock)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_run_holds_its_recipe_and_format(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert Run.open(run.path).recipe() == {"seed": 3, "train": {"tokens": 128}}
    assert json.loads((run.path / "format.json").read_text())["format"] == 1
    assert names(tmp_path) == ["run"]


def test_a_folder_with_files_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    run = new_run(tmp_path)  # an empty one is fine
    with pytest.raises(SeqloomError, match="--resume, or choose another --out"):
        new_run(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SeqloomError, match="already exists"):
        Run.create(tmp_path / "file", {})
    assert run.recipe()["seed"] == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a run folder"),
        ('{"format": 2, "seqloom": "9.0"}', "run format 2, .* reads up to 1: upgrade seqloom"),
        ('{"format": "x"}', "must be a whole number"),
        ("{", "cannot be read"),
        ("[]", "must hold a JSON object"),
    ],
)
def test_a_folder_that_is_not_a_run_is_refused_in_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "format.json").write_text(content)
    with pytest.raises(SeqloomError, match=message) as caught:
        Run.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SeqloomError, match="no such folder"):
        Run.open(tmp_path / "nowhere")


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd"])
def test_optimiser_state_survives_the_file_bit_for_bit(tmp_path: Path, optimiser: Any) -> None:
    run, settings = new_run(tmp_path), Settings(optimiser=optimiser, weight_decay=0.1)
    torch.manual_seed(1)
    model = Tied()
    tokens = torch.randint(10, (6, 5))

    def train(model: Tied, updater: NamedOptimiser, steps: int) -> None:
        for _ in range(steps):
            updater.clear_gradients()
            nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
            updater.step(0.01)

    first = NamedOptimiser(model, settings)
    train(model, first, 3)
    tensors, scalars = first.state()
    run.save(3, model=weights_of(model), optimiser=tensors, trainer={"scalars": scalars})

    other = Tied()
    second = NamedOptimiser(other, settings)
    stored = run.checkpoint(3)
    load_file(other, stored.path / "model.safetensors")
    second.load(stored.optimiser(), stored.trainer()["scalars"], "here")
    again, _ = second.state()
    assert tensors
    assert tensors.keys() == again.keys()
    assert all(torch.equal(tensors[key], again[key]) and tensors[key].dtype == again[key].dtype for key in tensors)
    train(model, first, 3)
    train(other, second, 3)
    assert all(torch.equal(value, weights_of(other)[name]) for name, value in weights_of(model).items())


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    save_file(weights_of(model), tmp_path / "w.safetensors")
    assert list(checkpoint.weights.read(tmp_path / "w.safetensors")) == ["count", "embedding.weight", "output.bias"]
    load_file(other, tmp_path / "w.safetensors")
    assert torch.equal(other.output.weight, model.embedding.weight)
    assert other.output.weight is other.embedding.weight
    # a file that has the other of the two names serves as well
    stored = weights_of(model)
    stored["output.weight"] = stored.pop("embedding.weight")
    save_file(stored, tmp_path / "v.safetensors")
    third = Tied()
    load_file(third, tmp_path / "v.safetensors")
    assert torch.equal(third.embedding.weight, model.embedding.weight)


def test_weights_that_do_not_fit_are_refused_in_one_line_and_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    whole = weights_of(Tied())

    def refusal(model: nn.Module) -> str:
        before = {name: value.clone() for name, value in weights_of(model).items()}
        with pytest.raises(SeqloomError) as caught:
            load_file(model, file)
        assert all(torch.equal(value, before[name]) for name, value in weights_of(model).items())
        assert "\n" not in str(caught.value)
        assert str(file) in str(caught.value)
        return str(caught.value)

    save_file(whole, file)
    assert "the vocabulary has 12 tokens, the weights 10" in refusal(Tied(vocabulary=12))
    assert '"embedding.weight" has shape (10, 4), the model expects (10, 6)' in refusal(Tied(size=6))
    assert 'lacks tensor "weight" and 1 more' in refusal(nn.Linear(2, 2))
    save_file({**whole, "strange": torch.zeros(1)}, file)
    assert 'has the unknown tensor "strange"' in refusal(Tied())
    save_file(whole, file)
    content = file.read_bytes()
    for cut in (0, 5, 40, len(content) - 1):
        file.write_bytes(content[:cut])
        assert "not a complete safetensors file" in refusal(Tied())
    file.unlink()
    assert "no such weights file" in refusal(Tied())


@pytest.mark.parametrize("file", ["model.safetensors", "optimiser.safetensors", "trainer.json"])
def test_a_full_disk_leaves_the_previous_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    run = new_run(tmp_path)
    save(run, 10)
    write = files.write

    def half(path: Path, content: bytes) -> None:
        if path.name == file:
            path.write_bytes(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(files, "write", half)
    with pytest.raises(SeqloomError, match=r"No space left.*the checkpoint of step 10 is untouched") as caught:
        save(run, 20)
    assert "\n" not in str(caught.value)
    assert names(run.path / "checkpoints") == ["step-00000010"]
    newest = reopened(run).newest()
    assert newest is not None
    assert newest.model()["a"].tolist() == [1, 1, 1]


def test_a_full_disk_leaves_the_published_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path)
    run.publish({"a": torch.ones(3)})
    before = names(run.path)

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:9])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(SeqloomError, match="No space left"):
        run.publish({"a": torch.zeros(3)})
    assert names(run.path) == before
    assert checkpoint.weights.read(run.weights)["a"].tolist() == [1, 1, 1]


class Crash(BaseException):
    """The process is dead: nothing it would still do is done."""


class Countdown:
    def __init__(self, calls: int):
        self.calls = calls

    def before(self, function: Any) -> Any:
        def call(*given: Any) -> Any:
            self.calls -= 1
            if self.calls < 0:
                raise Crash
            return function(*given)

        return call


def test_a_crash_at_any_call_leaves_a_run_that_opens_with_a_complete_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Save step 20 over step 20 and stop dead before each file operation in turn."""
    run = new_run(tmp_path)
    save(run, 10)
    save(run, 20)
    for calls in range(40):
        left = Countdown(calls)
        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "fsync"):
                patch.setattr(checkpoint.os, name, left.before(getattr(os, name)))
            patch.setattr(checkpoint, "remove", left.before(checkpoint.remove))
            try:
                save(run, 20, value=2.0)
                finished = True
            except Crash:
                finished = False
        again = reopened(run)
        assert names(run.path / "checkpoints") == ["step-00000010", "step-00000020"]
        newest = again.newest()
        assert newest is not None
        assert newest.model()["a"].tolist() in ([1, 1, 1], [2, 2, 2])
        assert newest.trainer() == {"step": 20}
        if finished:
            assert calls > 5
            assert newest.model()["a"].tolist() == [2, 2, 2]
            return
        if newest.model()["a"].tolist() == [2, 2, 2]:
            save(run, 20)  # as before, for the next crash
    pytest.fail("the save never came to its end")


def test_leftovers_of_a_crash_are_cleared_when_opened_for_writing_only(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (run.path / "checkpoints" / ".step-00000030.partial").mkdir()
    (run.path / ".model.safetensors.partial").write_bytes(b"half")
    assert Run.open(run.path).newest() is None
    assert (run.path / ".model.safetensors.partial").exists()
    reopened(run)
    assert names(run.path) == ["checkpoints", "config.toml", "format.json"]
    assert names(run.path / "checkpoints") == []


def test_pruning_keeps_the_newest_and_the_named(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for step in (1, 2, 3, 4):
        save(run, step)
    run.prune([2])
    assert [found.step for found in run.checkpoints()] == [2, 4]


def test_a_checkpoint_knows_whether_its_files_are_what_was_written(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    save(run, 10)
    checkpoint = run.checkpoint(10)
    assert checkpoint.damage() == ""
    for name in ("model.safetensors", "optimiser.safetensors", "trainer.json", "checksums.json"):
        path = checkpoint.path / name
        whole = path.read_bytes()
        for damaged in (whole[:-3], whole[:-4] + bytes([whole[-4] ^ 4]) + whole[-3:]):
            path.write_bytes(damaged)
            assert str(checkpoint.path) in checkpoint.damage()
            assert "\n" not in checkpoint.damage()
        path.write_bytes(whole)
    (checkpoint.path / "checksums.json").unlink()  # a checkpoint of before
    assert checkpoint.damage() == ""
    (checkpoint.path / "model.safetensors").write_bytes(b"short")
    assert "not a complete safetensors file" in checkpoint.damage()


def test_damaged_checkpoints_are_set_aside_unless_none_is_left(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for step in (10, 20, 30):
        save(run, step)
    (run.checkpoint(20).path / "trainer.json").write_bytes(b"{}")
    (run.checkpoint(30).path / "model.safetensors").write_bytes(b"")
    lines = run.set_aside_damaged()
    assert [line.partition(" cannot")[0] for line in lines] == [f"the checkpoint of step {step}" for step in (20, 30)]
    assert names(run.path / "checkpoints") == ["damaged-step-00000020", "damaged-step-00000030", "step-00000010"]
    assert run.set_aside_damaged() == []
    (run.checkpoint(10).path / "trainer.json").unlink()
    with pytest.raises(SeqloomError, match="no checkpoint is intact"):
        run.set_aside_damaged()
    assert [each.step for each in run.checkpoints()] == [10]


def test_metrics_are_cut_back_to_the_checkpoint(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.log({"step": 1, "loss": 2.5})
    size = run.metrics_size()
    run.log({"step": 2, "loss": float("nan")})
    assert json.loads(run.metrics.read_text().splitlines()[1]) == {"step": 2, "loss": None}
    run.truncate_metrics(size)
    assert run.metrics.read_text() == '{"step": 1, "loss": 2.5}\n'
    run.truncate_metrics(size + 100)
    assert run.metrics_size() == size


def test_a_changed_environment_is_reported(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert store_environment(run.path, device="cpu") == []
    assert store_environment(run.path, device="cpu") == []
    (remark,) = store_environment(run.path, device="cuda")
    assert remark.startswith("device was cpu and is now cuda")


def test_the_average_of_checkpoints_is_their_mean_and_counters_are_left_alone(tmp_path: Path) -> None:
    for name, value, count in (("a", 1.0, 5), ("b", 2.0, 6), ("c", 6.0, 7)):
        save_file({"w": torch.full((2,), value), "n": torch.tensor(count)}, tmp_path / f"{name}.safetensors")
    mean = average([tmp_path / f"{name}.safetensors" for name in "abc"])
    assert mean["w"].tolist() == [3.0, 3.0]
    assert mean["n"].item() == 5
    save_file({"w": torch.zeros(3)}, tmp_path / "d.safetensors")
    with pytest.raises(SeqloomError, match="not checkpoints of one model"):
        average([tmp_path / "a.safetensors", tmp_path / "d.safetensors"])
    with pytest.raises(SeqloomError, match="nothing to average"):
        average([])


def test_skipping_initialisation_draws_no_random_numbers_and_ends_with_its_block() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with skip_initialisation():
        nn.LSTM(3, 4), nn.Linear(3, 4), nn.Embedding(3, 4)
    assert torch.equal(torch.get_rng_state(), before)
    nn.Linear(3, 4)
    assert not torch.equal(torch.get_rng_state(), before)
