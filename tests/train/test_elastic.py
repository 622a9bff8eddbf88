"""Any number of processes goes on with any run; one that hangs or ends is named; validations are decoded together."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as distributed

import seqloom
from seqloom.config.build import build_part
from seqloom.errors import SeqloomError
from seqloom.inference import find
from seqloom.storage import weights
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.display import Display
from seqloom.train.shared_decoding import SharedDecoding
from tests.cli.conftest import TRANSLATOR, pairs
from tests.train.test_processes import train, train_text
from tests.train.test_trainer import tiny_run

CPU = torch.device("cpu")


def in_processes(count: int, work: Callable[[], Any], folder: Path, victims: tuple[int, ...] = ()) -> list[str]:
    """What the work returns in each of so many forked processes, or its error. Victims are killed in the end."""
    torch.set_num_threads(1)
    children, pipes = [], []
    for rank in range(count):
        pipes.append(os.pipe())
        child = os.fork()
        if child == 0:
            try:
                port = os.read(pipes[rank][0], 16).decode()
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count)}
                os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
                try:
                    said = json.dumps(work())
                except SeqloomError as error:
                    said = str(error)
                (folder / f"said-{rank}").write_text(said)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    # As torchrun keeps it. Its thread must not run yet when a process is forked, which would inherit its locks.
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for reader, writer in pipes:
        os.write(writer, str(store.port).encode())
        os.close(writer)
        os.close(reader)
    codes = {}
    for rank in sorted(range(count), key=lambda rank: rank in victims):
        if rank in victims:
            with suppress(ProcessLookupError):
                os.kill(children[rank], signal.SIGKILL)
        _, status = os.waitpid(children[rank], 0)
        codes[rank] = os.waitstatus_to_exitcode(status)
    assert all(code == 0 for rank, code in codes.items() if rank not in victims), codes
    return [(folder / f"said-{rank}").read_text() if rank not in victims else "" for rank in range(count)]


def distance(one: Path, other: Path) -> float:
    """Between the newest weights of two runs."""
    ours, theirs = (Run.open(path).newest() for path in (one, other))
    assert ours is not None
    assert theirs is not None
    assert ours.step == theirs.step
    mine, yours = ours.model(), theirs.model()
    return max(float((mine[name] - yours[name]).abs().max()) for name in mine)


def test_two_four_three_and_one_processes_train_as_one_does(tmp_path: Path) -> None:
    train(tmp_path / "one", 16)
    for count, steps in ((2, 4), (4, 8), (3, 12)):
        in_processes(count, lambda steps=steps: train(tmp_path / "many", steps), tmp_path)  # type: ignore[misc]
        assert Run.open(tmp_path / "many").newest().step == steps  # type: ignore[union-attr]
    train(tmp_path / "many", 16)
    assert distance(tmp_path / "one", tmp_path / "many") < 1e-5
    fresh = weights.read(Run.open(tmp_path / "one").weights)
    assert max(float(value.abs().max()) for value in fresh.values()) > 0.1
    assert json.loads((tmp_path / "many" / "environment.json").read_text())["processes"] == 1


def test_a_running_text_goes_on_with_any_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process keeps the state of its own columns, of which some have one more than others, or none."""
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    train_text(tmp_path / "one", 12)
    in_processes(2, lambda: train_text(tmp_path / "many", 3), tmp_path)
    in_processes(3, lambda: train_text(tmp_path / "many", 6, resume=True), tmp_path)
    in_processes(5, lambda: train_text(tmp_path / "many", 9, resume=True), tmp_path)
    train_text(tmp_path / "many", 12, resume=True)
    assert distance(tmp_path / "one", tmp_path / "many") < 1e-5


def test_unequal_shares_are_told(tmp_path: Path) -> None:
    def resume() -> list[str]:
        processes.begin(CPU, minutes=1)
        return processes.unequal_shares(4)

    assert json.loads(in_processes(2, resume, tmp_path)[0]) == []
    assert "4 micro-batches per update, 3 processes" in in_processes(3, resume, tmp_path)[0]


@pytest.mark.parametrize("rank", [0, 2])
def test_a_process_that_hangs_is_named_by_all_others_in_time(tmp_path: Path, rank: int) -> None:
    def work() -> None:
        processes.begin(CPU, minutes=0.02)
        processes.wait()
        if processes.rank() == rank:
            os.kill(os.getpid(), signal.SIGSTOP)
        processes.sums([1.0], CPU)

    began = time.monotonic()
    said = in_processes(3, work, tmp_path, victims=(rank,))
    assert time.monotonic() - began < 10
    for each in range(3):
        if each != rank:
            assert said[each].startswith(f"process {rank + 1} of 3 has "), said


def test_a_process_that_ends_is_named_at_once(tmp_path: Path) -> None:
    def work() -> None:
        processes.begin(CPU, minutes=1)
        processes.wait()
        if processes.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        processes.sums([1.0], CPU)

    began = time.monotonic()
    said = in_processes(3, work, tmp_path, victims=(1,))
    assert said[0] == said[2] == "process 2 of 3 has ended: the others end too; go on with --resume=auto"
    assert time.monotonic() - began < 20


def test_a_lead_that_prepares_for_longer_than_the_limit_is_waited_for(tmp_path: Path) -> None:
    def work() -> str:
        processes.begin(CPU, minutes=0.02)
        with processes.lead_first():
            if processes.is_lead():
                time.sleep(2.5)
                (tmp_path / "file").write_text("made")
            return (tmp_path / "file").read_text()

    assert in_processes(2, work, tmp_path) == ['"made"', '"made"']


def test_outputs_decoded_together_are_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    model = seqloom.fit(pairs(), TRANSLATOR, out=tmp_path / "run", settings="train.steps=3", display=Display.quiet())
    monkeypatch.setattr(find, "TOKENS", 24)
    sources = [str(3**power) for power in range(24)] + ["", "7"]
    greedy = build_part("search", {"type": "beam", "beam_size": 1, "maximum_length": 30}, "search", False)
    decoded = []

    class Counting(SharedDecoding):
        def decode(self, system: Any, sources: Any) -> list[Any]:
            decoded.extend(sources)
            return super().decode(system, sources)

    def work() -> tuple[list[str], int]:
        processes.begin(CPU, minutes=1)
        return Counting(sources, search=greedy).predictions(model.system), len(decoded)

    alone = SharedDecoding(sources, search=greedy).predictions(model.system)
    assert len(set(alone)) > 3
    for count in (2, 3):
        found = [json.loads(said) for said in in_processes(count, work, tmp_path)]
        assert all(outputs == alone for outputs, _ in found)
        assert sum(share for _, share in found) == len(sources)
        assert all(share > 2 for _, share in found)


def test_validations_of_several_processes_have_the_metrics_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    changes = {"train.steps": 4, "train.validate_every": 2, "train.accumulate": 2}

    def work(name: str) -> None:
        seqloom.fit(pairs(), TRANSLATOR, out=tmp_path / name, settings=changes, display=Display.quiet())

    work("one")
    in_processes(2, lambda: work("two"), tmp_path)
    one, two = (
        [json.loads(line) for line in tiny_run(tmp_path / name).metrics.read_text().splitlines()]
        for name in ("one", "two")
    )
    assert [line["kind"] for line in one] == [line["kind"] for line in two]
    measured = [(line["exact"], line["cer"]) for line in one if line["kind"] == "valid"]
    assert len(measured) >= 2
    assert measured == [(line["exact"], line["cer"]) for line in two if line["kind"] == "valid"]
