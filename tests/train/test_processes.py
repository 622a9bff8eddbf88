"""Two processes train as one does, drop-out and the short last update of an epoch included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import seqloom
from seqloom.cli.main import leave
from seqloom.errors import SeqloomError
from seqloom.storage import weights
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.display import Display
from tests.exact.test_running_text import LINES
from tests.exact.test_running_text import RECIPE as TEXT
from tests.train.test_trainer import Breaking, metrics, state, tiny_run, trainer

ROOT = Path(__file__).parents[2]
TOKENS = 90


def train(path: Path, steps: int, fault: bool = False) -> None:
    """Four micro-batches per update, and an odd number per epoch: one process has none in the last update."""
    processes.begin(torch.device("cpu"), minutes=2)
    with processes.lead_first():
        tiny_run(path)
    fitting = trainer(
        path, tokens=TOKENS, accumulate=4, steps=steps, validate_every=5, log_every=1, keep=1, optimiser="sgd",
        learning_rate=0.5, model=Breaking(range(1, 10_000)) if fault and processes.rank() == 1 else None,
    )  # fmt: skip
    assert len(fitting.batches.plan_of(0)) % 4 in (1, 3)
    fitting.fit()


def train_text(path: Path, steps: int, resume: bool = False) -> None:
    """A running text: each process keeps the state of its own columns."""
    recipe = {**TEXT, "train": {**TEXT["train"], "accumulate": 4, "optimiser": "sgd", "learning_rate": 0.5}}
    limit = [f"train.steps={steps}"]
    seqloom.fit(LINES, recipe, out=path, resume=resume, settings=limit, display=Display.quiet())


def average() -> None:
    """Gradients of a parameter that both processes used, of one that only the second used, and of one that none did."""
    both, second, none = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    both.grad = torch.full((2,), 1.0 + processes.rank())
    second.grad = torch.ones(2) if processes.rank() == 1 else None
    processes.average_gradients([both, second, none])
    assert both.grad is not None
    assert second.grad is not None
    print(f"averages {both.grad.tolist()} {second.grad.tolist()} {none.grad}", flush=True)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What two processes wrote and printed; see the end of this file. Started once for all tests: it takes long."""
    path = tmp_path_factory.mktemp("two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "tests.train.test_processes", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return path, done.stdout


def test_two_processes_end_with_the_losses_and_weights_of_one(two: tuple[Path, str], tmp_path: Path) -> None:
    path = two[0] / "run"
    torch.set_num_threads(1)
    train(tmp_path, 10)
    ours, theirs = metrics(tiny_run(tmp_path)), metrics(tiny_run(path))
    assert [line["kind"] for line in ours] == [line["kind"] for line in theirs]
    for one, other in zip(ours, theirs, strict=True):
        numbers = {name: value for name, value in one.items() if name != "kind"}
        assert numbers == pytest.approx({name: other[name] for name in numbers}, rel=1e-5)
    one_state, two_state = tiny_run(tmp_path).newest(), tiny_run(path).newest()
    assert one_state is not None
    assert two_state is not None
    initial = weights.weights_of(trainer(tmp_path / "fresh", steps=1).training.model)
    for name, value in one_state.model().items():
        assert torch.allclose(value, two_state.model()[name], rtol=1e-5, atol=1e-6)
        assert not torch.allclose(value, initial[name], rtol=1e-2)  # training has moved it far more than that
    assert state(tiny_run(path))["step"] == 10


def test_two_processes_read_a_running_text_as_one_does(
    two: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)
    train_text(tmp_path / "text", 12)
    ours, theirs = (Run.open(folder / "text") for folder in (tmp_path, two[0]))
    losses, their_losses = (
        [line["loss"] for line in metrics(run) if line["kind"] == "train"] for run in (ours, theirs)
    )
    assert len(losses) == 12
    assert losses == pytest.approx(their_losses, rel=1e-5)
    last, their_last = ([line for line in metrics(run) if line["kind"] == "valid"][-1] for run in (ours, theirs))
    assert last["loss"] == pytest.approx(their_last["loss"], rel=1e-5)
    one, other = ours.newest(), theirs.newest()
    assert one is not None
    assert other is not None
    carried = {name: value for name, value in one.optimiser().items() if name.startswith("carried/")}
    assert {name.split("/")[1] for name in carried} == {"0", "1", "2", "3"}
    for name, value in carried.items():
        assert torch.allclose(value, other.optimiser()[name], atol=1e-5), name


def test_a_parameter_that_some_processes_use_gets_the_mean_and_one_that_none_uses_no_gradient(
    two: tuple[Path, str],
) -> None:
    assert two[1].count("averages [1.5, 1.5] [0.5, 0.5] None") == 2


def test_a_fault_in_one_process_stops_all_of_them_with_its_name(two: tuple[Path, str]) -> None:
    assert two[1].count('5 updates in a row were not finite, last the output of "model.hidden"') == 2


def test_micro_batches_that_cannot_be_shared_are_refused_with_the_number_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SeqloomError, match=r"accumulate = 3 cannot be shared by 2 processes.*accumulate = 4"):
        seqloom.fit(LINES, TEXT, out=tmp_path / "run", settings="train.accumulate=3", display=Display.quiet())
    assert not (tmp_path / "run").exists()


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    train(folder / "run", 5)
    train(folder / "run", 10)  # resumed
    average()
    os.environ["SEQLOOM_CACHE"] = str(folder / "cache")
    train_text(folder / "text", 5)
    train_text(folder / "text", 12, resume=True)
    try:
        train(folder / "fault", 20, fault=True)
    except SeqloomError as problem:
        print(problem, flush=True)
    processes.end()
    leave(0)
