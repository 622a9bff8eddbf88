"""Training: resumed equals unbroken, faults are named, limits and signals end it."""

import json
import math
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqloom.config.settings import Settings
from seqloom.contracts import Objective
from seqloom.data import batching
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders import recurrent as recurrent_decoder
from seqloom.nn.encoders import recurrent as recurrent_encoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.rollouts import Rollouts
from seqloom.storage import weights
from seqloom.storage.history import Summary
from seqloom.storage.lock import WriteLock
from seqloom.storage.run import Run
from seqloom.train import processes, schedule
from seqloom.train.display import Display
from seqloom.train.trainer import Trainer
from seqloom.types import Batch, Loss, Padded

SPECIAL = 12


class Rows:
    """A corpus in memory: random targets of different lengths."""

    def __init__(self, rows: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        sizes = torch.randint(2, 9, (rows,), generator=generator)
        self.targets = [torch.randint(4, SPECIAL, (int(size),), generator=generator) for size in sizes]
        self.lengths = np.array([[0, len(target)] for target in self.targets], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[None, Tensor]:
        return None, self.targets[index]


def collate(corpus: Any, rows: np.ndarray) -> Batch:
    targets = [corpus[int(row)][1] for row in rows]
    inputs = [torch.cat([torch.tensor([2]), target]) for target in targets]
    outputs = [torch.cat([target, torch.tensor([3])]) for target in targets]
    return Batch(None, Padded.stack(inputs), Padded.stack(outputs), tuple(int(row) for row in rows))


class Tiny(nn.Module):
    """The next token from this one, through drop-out; the output projection is tied to the embedding."""

    def __init__(self, dropout: float = 0.3):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(SPECIAL, 8)
        self.hidden = nn.Linear(8, 8)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(8, SPECIAL)
        self.output.weight = self.embedding.weight

    def forward(self, batch: Batch) -> Tensor:
        return self.output(self.dropout(torch.tanh(self.hidden(self.embedding(batch.inputs.values)))))


class Likelihood(Objective):
    """Cross-entropy, with a parameter of its own that is saved with the run, not with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        real = batch.targets.mask
        scores = model(batch)[real] * self.temperature
        total = nn.functional.cross_entropy(scores, batch.targets.values[real], reduction="sum")
        return Loss(total, real.sum(), {"nll": total.detach()})


def tiny_run(path: Path) -> Run:
    """A run folder without a recipe: the trainer needs none."""
    if not (path / "format.json").exists():
        path.mkdir(parents=True, exist_ok=True)
        (path / "format.json").write_text('{"format": 1, "seqloom": "0"}')
    with WriteLock() as lock:
        return Run.open(path, lock if processes.is_lead() else None)


def trainer(path: Path, **changes: Any) -> Trainer:
    given = {name: changes.pop(name) for name in list(changes) if name in ("model", "objective", "evaluate", "display")}
    defaults: dict[str, Any] = {"tokens": 40, "warmup": 5, "learning_rate": 0.01, "validate_every": 8, "log_every": 3}
    return Trainer(
        model=given.get("model") or Tiny(),
        objective=given.get("objective") or Likelihood(),
        train=changes.pop("train", None) or Rows(60, 1),  # type: ignore[arg-type]
        valid=changes.pop("valid", None) or Rows(20, 2),  # type: ignore[arg-type]
        collate=changes.pop("collate", collate),
        plan=lambda lengths, tokens, seed, epoch, accumulate: batching.plan(lengths, tokens, seed, epoch),
        settings=Settings(**{**defaults, **changes}),
        seed=7,
        run=tiny_run(path),
        evaluate=given.get("evaluate"),
        display=given.get("display") or Display.quiet(),
    )


def metrics(run: Run) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without wall times."""
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in ("seconds", "rate")} for line in lines]


def state(run: Run) -> dict[str, Any]:
    """All of the newest checkpoint but wall times."""
    newest = run.newest()
    assert newest is not None
    numbers = newest.trainer()["standing"]
    for name in ("seconds", "metrics"):
        numbers.pop(name)
    numbers["window"].pop("since", None)
    tensors = {f"model {name}": value for name, value in newest.model().items()}
    tensors |= {f"optimiser {name}": value for name, value in newest.optimiser().items()}
    return {**numbers, **{name: (str(value.dtype), value.tolist()) for name, value in tensors.items()}}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimiser": "sgd", "schedule": "plateau", "learning_rate": 0.2, "clip": 0.0},
        {"optimiser": "adam", "ema": 0.9, "accumulate": 3, "weight_decay": 0.1},
    ],
)
def test_a_resumed_training_equals_an_unbroken_one_bit_for_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    trainer(tmp_path / "unbroken", steps=32, **changes).fit()
    trainer(tmp_path / "broken", steps=16, **changes).fit()
    trainer(tmp_path / "broken", steps=32, **changes).fit()
    unbroken, broken = tiny_run(tmp_path / "unbroken"), tiny_run(tmp_path / "broken")
    assert state(unbroken) == state(broken)
    assert metrics(unbroken) == metrics(broken)
    assert unbroken.weights.read_bytes() == broken.weights.read_bytes()


def test_the_names_in_trainer_json_are_those_of_earlier_checkpoints(tmp_path: Path) -> None:
    trainer(tmp_path, steps=2, validate_every=1).fit()
    stored = tiny_run(tmp_path).newest().trainer()  # type: ignore[union-attr]
    assert stored.keys() == {"standing", "scalars", "order"}
    assert stored["standing"].keys() == {
        *("step", "epoch", "batch", "seconds", "validated", "stale", "halvings", "faults", "best", "window", "metrics"),
        *("budget", "first_phase", "first_loss"),
    }
    assert stored["standing"]["window"].keys() >= {"total", "count", "symbols", "since", "first"}
    assert stored["order"].keys() == {"optimiser", "ema", "seed", "tokens", "accumulate", "examples", "symbols"}


def test_drop_out_is_on_and_the_seed_matters(tmp_path: Path) -> None:
    trainer(tmp_path / "a", steps=4, model=Tiny(dropout=0.3)).fit()
    trainer(tmp_path / "b", steps=4, model=Tiny(dropout=0.0)).fit()
    assert state(tiny_run(tmp_path / "a")) != state(tiny_run(tmp_path / "b"))


def interrupt_at(step: int, number: int = signal.SIGTERM) -> Display:
    """A display that sends this process a signal in the middle of a step."""
    display = Display.quiet()

    def update(**values: Any) -> None:
        if values["step"] == step:
            os.kill(os.getpid(), number)

    display.update = update  # type: ignore[method-assign, assignment]
    return display


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_after_the_update_and_resuming_goes_on_as_if_nothing_was(
    tmp_path: Path, number: int
) -> None:
    before = signal.getsignal(number)
    trainer(tmp_path / "unbroken", epochs=3, schedule="cosine").fit()
    summary = trainer(tmp_path / "broken", epochs=3, schedule="cosine", display=interrupt_at(11, number)).fit()
    assert (summary.stopped, summary.steps, summary.signal) == ("interrupted", 12, number)
    assert signal.getsignal(number) is before
    assert trainer(tmp_path / "broken", epochs=3, schedule="cosine").fit().stopped == "epochs"
    assert state(tiny_run(tmp_path / "unbroken")) == state(tiny_run(tmp_path / "broken"))
    assert metrics(tiny_run(tmp_path / "unbroken")) == metrics(tiny_run(tmp_path / "broken"))


@pytest.fixture
def _ctrl_c_counts() -> Iterator[None]:
    """Ctrl-C counts: the background jobs of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_counts")
def test_a_second_signal_aborts_at_once(tmp_path: Path) -> None:
    display = Display.quiet()

    def update(**values: Any) -> None:
        for _ in range(2):  # in this thread, and one after the other: two that come together are one
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.01)

    display.update = update  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path, steps=5, display=display).fit()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_outside_the_main_thread_no_handler_is_set(tmp_path: Path) -> None:
    summaries: list[Summary] = []
    thread = threading.Thread(target=lambda: summaries.append(trainer(tmp_path, steps=2).fit()))
    thread.start()
    thread.join()
    assert summaries[0].steps == 2


def test_killed_at_any_moment_and_resumed_it_ends_as_an_unbroken_training(tmp_path: Path) -> None:
    changes = {"steps": 32, "checkpoint_every": 2, "keep": 2, "ema": 0.9}
    seconds = trainer(tmp_path / "unbroken", **changes).fit().seconds
    chance, kills = random.Random(5), 0
    for _ in range(60):
        child = os.fork()
        if child == 0:
            try:
                trainer(tmp_path / "broken", **changes).fit()
                os._exit(0)
            finally:
                os._exit(1)
        if kills < 5:
            time.sleep(chance.uniform(0.0, seconds / 4))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        if not os.WIFSIGNALED(status):
            break
        kills += 1
    assert kills >= 2
    unbroken, broken = tiny_run(tmp_path / "unbroken"), tiny_run(tmp_path / "broken")
    assert state(unbroken) == state(broken)
    assert metrics(unbroken) == metrics(broken)
    assert unbroken.weights.read_bytes() == broken.weights.read_bytes()
    assert not list((tmp_path / "broken").rglob(".*"))


@pytest.mark.parametrize(
    ("limits", "stopped"), [({"steps": 3}, "steps"), ({"epochs": 0.5}, "epochs"), ({"minutes": 0.002}, "minutes")]
)
def test_the_first_limit_reached_ends_training(tmp_path: Path, limits: dict[str, Any], stopped: str) -> None:
    summary = trainer(tmp_path, **{"minutes": 5.0, **limits}).fit()
    assert summary.stopped == stopped
    assert summary.best["loss"] > 0
    assert (tmp_path / "model.safetensors").exists()


def test_the_budget_of_minutes_goes_on_after_a_resume(tmp_path: Path) -> None:
    trainer(tmp_path, minutes=0.004, schedule="cosine").fit()
    steps = trainer(tmp_path, minutes=0.004).fit().steps
    assert steps == tiny_run(tmp_path).newest().step  # type: ignore[union-attr]


def test_training_without_gain_ends_by_patience_and_the_best_weights_are_kept(tmp_path: Path) -> None:
    values = iter([1.0, 3.0, 2.0, 2.5, 9.0])
    own = Tiny()
    summary = trainer(
        tmp_path,
        model=own,
        steps=100,
        patience=2,
        select_by="accuracy",
        evaluate=lambda model: ({"accuracy": next(values)}, []),
    ).fit()
    assert (summary.stopped, summary.steps, summary.best["accuracy"]) == ("patience", 32, 3.0)
    best = tiny_run(tmp_path).checkpoint(16).model()
    published = weights.read(tmp_path / "model.safetensors")
    assert all(torch.equal(published[name], value) for name, value in best.items())
    assert all(torch.equal(weights.weights_of(own)[name], value) for name, value in best.items())


def test_only_the_newest_and_the_best_checkpoints_stay(tmp_path: Path) -> None:
    values = iter([5.0, 9.0, 8.0, 1.0, 2.0])
    trainer(
        tmp_path, steps=40, keep=2, select_by="accuracy", evaluate=lambda model: ({"accuracy": next(values)}, [])
    ).fit()
    assert [checkpoint.step for checkpoint in tiny_run(tmp_path).checkpoints()] == [16, 24, 40]


def test_the_average_is_kept_only_if_it_is_better(tmp_path: Path) -> None:
    for better in (True, False):
        values = iter([1.0, 2.0, 3.0, 4.0 if better else 0.0])
        path = tmp_path / str(better)
        trainer(
            path,
            steps=24,
            average=3,
            select_by="accuracy",
            evaluate=lambda model, values=values: ({"accuracy": next(values)}, []),
        ).fit()
        run = tiny_run(path)
        checkpoints = [checkpoint.path for checkpoint in run.checkpoints()]
        expected = weights.average(checkpoints) if better else weights.average(checkpoints[-1:])
        published = weights.read(run.weights)
        assert all(torch.allclose(published[name], value, atol=1e-7) for name, value in expected.items())


def test_an_unmeasured_metric_to_select_by_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SeqloomError, match=r'select_by = "los".*did you mean "loss"'):
        trainer(tmp_path, steps=8, select_by="los").fit()


def test_an_update_is_the_gradient_of_all_its_micro_batches_together(tmp_path: Path) -> None:
    rows = Rows(12, 3)
    rows.lengths[:, 1] = 8  # as the plan sees it: equal lengths, so that the budget alone decides
    trainer(tmp_path / "one", train=rows, tokens=108, steps=1, model=Tiny(0.0), optimiser="sgd").fit()
    trainer(tmp_path / "four", train=rows, tokens=27, accumulate=4, steps=1, model=Tiny(0.0), optimiser="sgd").fit()
    one, four = (tiny_run(tmp_path / name).newest().model() for name in ("one", "four"))  # type: ignore[union-attr]
    assert all(torch.allclose(one[name], four[name], atol=1e-7) for name in one)
    initial = weights.weights_of(Tiny())
    assert not torch.allclose(one["hidden.weight"], initial["hidden.weight"], atol=1e-7)


class Breaking(Tiny):
    """Its hidden layer gives NaN in some of the calls."""

    def __init__(self, calls: range):
        super().__init__()
        self.calls, self.count = calls, 0
        self.hidden.register_forward_hook(self.spoil)

    def spoil(self, module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        self.count += self.training
        return output * float("nan") if self.training and self.count in self.calls else output


def test_a_loss_that_is_not_finite_is_skipped_and_the_first_module_named(tmp_path: Path) -> None:
    display, lines = Display.quiet(), []
    display.say = lines.append  # type: ignore[method-assign]
    # the third update breaks, and breaks again when it is examined
    summary = trainer(tmp_path, steps=6, model=Breaking(range(3, 5)), display=display).fit()
    assert summary.steps == 6
    assert lines == ['step 3 was skipped: the output of "model.hidden" (Linear) was not finite']
    assert all(value.isfinite().all() for value in weights.read(tmp_path / "model.safetensors").values())


def test_five_faults_in_a_row_end_training_with_advice(tmp_path: Path) -> None:
    with pytest.raises(
        SeqloomError, match=r'step 7: 5 updates in a row .*"model.hidden".*learning_rate.*rows \d+'
    ) as caught:
        trainer(tmp_path, steps=50, model=Breaking(range(3, 100))).fit()
    assert "\n" not in str(caught.value)


def test_a_gradient_that_is_not_finite_is_named_by_its_parameter(tmp_path: Path) -> None:
    display, lines, model = Display.quiet(), [], Tiny()
    display.say = lines.append  # type: ignore[method-assign]
    seen: list[int] = []

    def spoil(gradient: Tensor) -> Tensor:
        seen.append(1)
        return gradient * float("inf") if len(seen) == 2 else gradient

    model.hidden.bias.register_hook(spoil)
    trainer(tmp_path, steps=4, model=model, display=display).fit()
    assert lines == ['step 2 was skipped: the gradient of "model.hidden.bias" was not finite']


def test_bf16_trains_close_to_fp32_and_keeps_fp32_weights(tmp_path: Path) -> None:
    losses = [
        trainer(tmp_path / name, steps=16, precision=name, model=Tiny(0.0)).fit().best["loss"]
        for name in ("fp32", "bf16")
    ]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert weights.read(tmp_path / "bf16" / "model.safetensors")["hidden.weight"].dtype == torch.float32


def test_the_moving_average_is_what_is_validated_and_published(tmp_path: Path) -> None:
    model, seen = Tiny(), []
    fitting = trainer(
        tmp_path, steps=8, ema=0.99, model=model, evaluate=lambda m: (seen.append(m.hidden.weight.clone()) or {}, [])
    )
    fitting.fit()
    newest = tiny_run(tmp_path).newest()
    assert newest is not None
    assert torch.equal(seen[0], newest.model()["hidden.weight"])
    assert not torch.equal(seen[0], newest.optimiser()["model.hidden.weight/weight"])
    assert torch.equal(seen[0], weights.read(tmp_path / "model.safetensors")["hidden.weight"])


def test_resuming_with_another_optimiser_is_refused_in_one_line(tmp_path: Path) -> None:
    trainer(tmp_path, steps=2).fit()
    with pytest.raises(SeqloomError, match="trained with optimiser adamw"):
        trainer(tmp_path, steps=4, optimiser="sgd").fit()


def test_training_learns(tmp_path: Path) -> None:
    corpus = Rows(60, 1)
    for target in corpus.targets:
        target[:] = torch.arange(len(target)) + 4  # each token follows from the one before, but for the end
    fitting = trainer(
        tmp_path,
        train=corpus,
        valid=corpus,
        steps=200,
        schedule="constant",
        learning_rate=0.05,
        model=Tiny(0.0),
        validate_every=200,
    )
    loss = fitting.fit().best["loss"]
    pairs = Counter(pair for target in corpus.targets for pair in pairwise([2, *target.tolist(), 3]))
    firsts: Counter[int] = Counter()
    for (first, _), count in pairs.items():
        firsts[first] += count
    chances = {pair: count / firsts[pair[0]] for pair, count in pairs.items()}
    least = -sum(count * math.log(chances[pair]) for pair, count in pairs.items()) / pairs.total()
    assert least < loss < least + 0.1


def test_schedules_reach_one_at_the_end_of_the_warm_up() -> None:
    assert schedule.rsqrt(50, 100) == 0.5
    assert schedule.rsqrt(100, 100) == 1.0
    assert schedule.rsqrt(400, 100) == 0.5
    assert schedule.rsqrt(4, 0) == 0.5
    assert schedule.warm_up(7, 0) == 1.0
    assert schedule.cosine(10, 10, 0.0) == 1.0
    assert schedule.cosine(10, 10, 0.5) == pytest.approx(0.5)
    assert schedule.cosine(10, 10, 1.0) == 0.0
    assert schedule.factor("plateau", step=10, warmup=0, progress=0.1, halvings=3) == 0.125
    quarters = [schedule.factor("quarters", step=9, warmup=0, progress=p, halvings=3) for p in (0, 0.24, 0.25, 0.8, 1)]
    assert quarters == [1.0, 1.0, 0.5, 0.125, 0.125]
    assert schedule.factor("constant", step=5, warmup=10, progress=0.9, halvings=3) == 0.5


def test_the_plateau_schedule_halves_at_each_validation_without_gain(tmp_path: Path) -> None:
    values = iter([3.0, 2.0, 4.0, 1.0])
    fitting = trainer(
        tmp_path, steps=33, log_every=1, warmup=0, schedule="plateau", select_by="accuracy",
        evaluate=lambda model: ({"accuracy": next(values, 0.0)}, []),
    )  # fmt: skip
    fitting.fit()
    rates = {line["step"]: line["learning_rate"] for line in metrics(fitting.run) if line["kind"] == "train"}
    assert [rates[step] / 0.01 for step in (8, 9, 16, 17, 25, 33)] == [1, 1, 1, 0.5, 0.5, 0.25]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 0}, "train.tokens = 0 "),
        ({"steps": -1}, "train.steps = -1 "),
        ({"optimiser": "adamww"}, 'did you mean "adamw"'),
        ({"learning_rate": float("nan")}, "train.learning_rate"),
        ({"betas": (0.9, 1.0)}, "train.betas"),
        ({"average": 5, "keep": 2}, "at most keep = 2"),
        ({"device": "gpu"}, 'train.device = "gpu" is unknown'),
        ({"ema": 1.0}, "train.ema"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SeqloomError, match=message) as caught:
        Settings(**changes)
    assert "\n" not in str(caught.value)


def test_tensorboard_curves_are_written_when_asked(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    trainer(tmp_path, steps=4, tensorboard=True).fit()
    assert list((tmp_path / "tensorboard").glob("events*"))


def real_model() -> Model:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"embedding_size": 8, "size": 8, "dropout": 0.2}
    encoder = recurrent_encoder.Recurrent(vocabulary=SPECIAL, bidirectional=True, **sizes)
    decoder = recurrent_decoder.Recurrent(
        vocabulary=SPECIAL, memory_size=16, bos=2, eos=3, attention=Additive, tied=True, **sizes
    )
    return Model(encoder, decoder, share_embeddings=True)


def with_sources(corpus: Any, rows: np.ndarray) -> Batch:
    return replace(collate(corpus, rows), source=Padded.stack([corpus[int(row)][1] for row in rows]))


def test_an_encoder_and_decoder_with_tied_embeddings_resume_bit_for_bit(tmp_path: Path) -> None:
    def fit(name: str, steps: int) -> None:
        objective = CrossEntropy(label_smoothing=0.1)
        trainer(tmp_path / name, steps=steps, model=real_model(), objective=objective, collate=with_sources).fit()

    fit("unbroken", 16)
    fit("broken", 8)
    fit("broken", 16)
    unbroken, broken = tiny_run(tmp_path / "unbroken"), tiny_run(tmp_path / "broken")
    assert state(unbroken) == state(broken)
    assert metrics(unbroken) == metrics(broken)
    valid = next(line for line in metrics(broken) if line["kind"] == "valid")
    assert valid["perplexity"] == pytest.approx(math.exp(valid["loss"]))  # no smoothing in a validation


def test_an_objective_that_keeps_earlier_weights_resumes_bit_for_bit(tmp_path: Path) -> None:
    def fit(name: str, display: Display | None = None) -> None:
        given: dict[str, Any] = {"model": real_model(), "objective": Rollouts(rounds=3), "display": display}
        trainer(tmp_path / name, steps=16, collate=with_sources, **given).fit()

    fit("unbroken")
    fit("broken", interrupt_at(10))  # in the third of four parts
    fit("broken")
    unbroken, broken = tiny_run(tmp_path / "unbroken"), tiny_run(tmp_path / "broken")
    assert any("past.2." in name for name in state(unbroken))
    assert state(unbroken) == state(broken)
    assert metrics(unbroken) == metrics(broken)


# -- prefetching


class Noise(Objective):
    """Replaces some tokens of a batch at random, and notes in which thread."""

    def __init__(self) -> None:
        super().__init__()
        self.likelihood, self.workers = Likelihood(), set[str]()

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        self.workers.add(threading.current_thread().name)
        values = batch.targets.values.clone()
        values[torch.from_numpy(chance.random(values.shape)) < 0.2] = int(chance.integers(4, SPECIAL))
        return replace(batch, targets=Padded(values, batch.targets.lengths))

    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        return self.likelihood(model, batch, progress)


def test_prefetched_batches_are_the_same_in_a_run_that_was_resumed(tmp_path: Path) -> None:
    objective = Noise()
    trainer(tmp_path / "unbroken", steps=30, objective=objective).fit()
    assert any(name.startswith("batches") for name in objective.workers)
    for steps in (11, 30):
        trainer(tmp_path / "broken", steps=steps, objective=Noise()).fit()
    unbroken, broken = tiny_run(tmp_path / "unbroken"), tiny_run(tmp_path / "broken")
    assert state(unbroken) == state(broken)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_nothing_is_prefetched_for_an_objective_that_prepares_nothing(tmp_path: Path) -> None:
    fitting = trainer(tmp_path, steps=3)
    fitting.batches.prefetch.begin = lambda *key: pytest.fail("prefetched")  # type: ignore[method-assign]
    fitting.fit()


def test_an_error_while_prefetching_ends_the_training(tmp_path: Path) -> None:
    class Refusing(Noise):
        def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
            if threading.current_thread().name.startswith("batches"):
                raise SeqloomError("cannot sample this")
            return batch

    with pytest.raises(SeqloomError, match="cannot sample this"):
        trainer(tmp_path, steps=9, objective=Refusing()).fit()


def test_the_rate_counts_tokens_whatever_the_loss_counts(tmp_path: Path) -> None:
    class BySource(Likelihood):
        def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
            loss = super().forward(model, batch, progress)
            return replace(loss, count=torch.tensor(len(batch.targets.lengths)))

    fitting = trainer(tmp_path, steps=2, objective=BySource(), log_every=100)
    fitting.fit()
    rows = [fitting.batches.plan_of(0)[number] for number in range(2)]
    tokens = sum(len(fitting.batches.corpus[int(row)][1]) + 1 for one in rows for row in one)
    assert fitting.state.window["symbols"] == tokens
    assert fitting.state.window["count"] == sum(len(one) for one in rows)
    lines = [json.loads(line) for line in tiny_run(tmp_path).metrics.read_text().splitlines()]
    assert not any("symbols" in line for line in lines)


def test_parameters_of_the_objective_do_not_slow_the_model(tmp_path: Path) -> None:
    class Judging(Likelihood):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.judge, self.scale = nn.Parameter(torch.tensor(3.0)), scale
            self.temperature.requires_grad_(False)  # the model's learning depends on it

        def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
            loss = super().forward(model, batch, progress)
            return replace(loss, total=loss.total + self.scale * self.judge**2)

    weights_after, norms = [], []
    for scale in (0.0, 1e6):
        fitting = trainer(tmp_path / str(scale), steps=3, objective=Judging(scale), log_every=1, optimiser="sgd")
        fitting.fit()
        weights_after.append(torch.cat([value.flatten() for value in fitting.training.model.parameters()]))
        norms.append([line["gradient_norm"] for line in metrics(tiny_run(tmp_path / str(scale))) if "nll" in line])
    assert torch.equal(*weights_after)
    assert norms[0] == norms[1]
