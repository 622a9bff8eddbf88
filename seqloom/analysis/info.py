"""`seqloom info`: how large a recipe or a run is, and what it costs to train and to predict with."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from seqloom.analysis.cost import (
    SAMPLE,
    activation_bytes,
    batches_of,
    epochs_of,
    parameters_by_part,
    ready_of,
    step_flops,
    target_tokens,
    training_cost,
    training_flops,
    training_of,
)
from seqloom.analysis.flops import count_flops
from seqloom.analysis.small_model import Examples, stand_in
from seqloom.analysis.table import align_columns
from seqloom.config.build import build_model, build_objective, build_task
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.discovery import find
from seqloom.config.multi_task import choose_task, tasks_of
from seqloom.config.recipes import Overrides, override, read_recipe
from seqloom.config.settings import build_settings
from seqloom.contracts import Codec, Head
from seqloom.data.lines import paths_of
from seqloom.errors import SeqloomError
from seqloom.inference.system import System, build_search
from seqloom.nn.ops.linear import clear_weight_cache
from seqloom.predictor import Predictor
from seqloom.storage.history import History
from seqloom.train.display import Display
from seqloom.train.forecast import measure_update
from seqloom.train.planning import Ready
from seqloom.train.prepare import prepare_training
from seqloom.train.recipe import Data
from seqloom.train.training import Training
from seqloom.types import Batch

LENGTH, ROWS = 20, 8  # of random examples, where there is no data
LABELS = 20  # of a head
VOCABULARY = 100  # of units without a size in the recipe, such as characters
SECONDS = 1.0  # of measuring the speed
COPIES = {"sgd": 3}  # weights, gradients and the state of the optimiser; Adam has two numbers per weight


@dataclass(frozen=True)
class Info:
    """Sizes and costs. FLOPs are those of matrix products; None: not known."""

    name: str
    measured_on: str
    parameters: int
    parts: dict[str, int]
    weights_bytes: int
    training_bytes: int  # weights, gradients and the state of the optimiser
    activation_bytes: int  # kept for the backward pass of the widest batch that was looked at
    train_flops_per_token: float  # of targets
    predict_flops_per_token: float  # of outputs
    train_tokens_per_second: float | None = None
    predict_tokens_per_second: float | None = None
    threads: int = 0
    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    train_flops: float | None = None  # of the whole training

    def json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        rows = [["parameters", f"{self.parameters:,}"]]
        rows += [[f"  {part}", f"{count:,}"] for part, count in self.parts.items()]
        rows += [
            ["memory of weights", megabytes(self.weights_bytes)],
            ["  with gradients and optimiser", megabytes(self.training_bytes)],
            ["  activations of a wide batch", megabytes(self.activation_bytes)],
            ["training FLOPs per target token", f"{self.train_flops_per_token:.3g}"],
            ["prediction FLOPs per output token", f"{self.predict_flops_per_token:.3g}"],
        ]
        if self.train_tokens_per_second is not None:
            rows.append([f"training tokens/s, threads: {self.threads}", f"{self.train_tokens_per_second:,.0f}"])
        if self.predict_tokens_per_second is not None:
            rows.append([f"prediction tokens/s, threads: {self.threads}", f"{self.predict_tokens_per_second:,.0f}"])
        if self.steps is not None:
            rows += [
                ["trained: steps", f"{self.steps:,}"],
                ["  epochs", f"{self.epochs:.4g}"],
                ["  minutes", f"{self.minutes:.4g}"],
            ]
        if self.train_flops is not None:
            rows.append(["  FLOPs", f"{self.train_flops:.3g}"])
        return "\n".join([f"{self.name}, measured on {self.measured_on}", *align_columns(rows)])


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def info(name: str | Path, data: Data = None, settings: Overrides = (), *, trust: bool = False, task: str = "") -> Info:
    """Of a run folder, or of a recipe on its data; without data, on random examples of a typical length.

    `task` is one of several.
    """
    if Path(name).is_dir():
        if settings:
            raise SeqloomError(f"{name} is a run, trained as it is: --set changes a recipe, so name one")
        return info_of_run(Path(name), data, trust, task)
    recipe: str | Path | dict[str, Any] = name
    whole = override(read_recipe(name, trust), settings)
    if data is None or task or "tasks" in whole:
        recipes = tasks_of(complete(whole, str(name), trust))
        recipe, settings = recipes[choose_task(recipes, task, str(name))], ()
    if data is None:
        assert isinstance(recipe, dict)
        return info_of_recipe(str(name), recipe, trust)
    with tempfile.TemporaryDirectory() as folder:
        ready = prepare_training(
            data, recipe, out=Path(folder) / "run", settings=settings, trust=trust, display=Display.quiet()
        )
        return info_on_data(str(name), ready)


def info_of_run(path: Path, data: Data, trust: bool, task: str = "") -> Info:
    """A run as trained, on its own training data or on other data; without any, on random examples."""
    history = History.read(path)
    model = Predictor.load(path, "cpu", trust, task=task)
    trained: dict[str, Any] = {
        "steps": max((line["step"] for line in history.lines), default=0),
        "epochs": epochs_of(history),
        "minutes": max((line["seconds"] for line in history.lines), default=0.0) / 60,
    }
    if data is None and not has_training_data(model.recipe):
        return info_on_random_examples(str(path), model.system, model.task.source, model.task.target, **trained)
    if data is None and not task:  # of several tasks, a part of the updates was this one's
        trained["train_flops"] = training_flops(path, trust)
    elif data is not None:
        model.recipe["data"].pop("valid", None)
        model.recipe["data"]["train"] = data
    return info_on_data(str(path), ready_of(model), **trained)


def has_training_data(recipe: dict[str, Any]) -> bool:
    """Whether a run was trained on files that are still there."""
    train = recipe["data"].get("train")
    return train is not None and all(Path(each).exists() for each in paths_of(train) or [])


def info_on_data(name: str, ready: Ready, **more: Any) -> Info:
    """Counted and timed on batches of the data."""
    corpus, train = ready.data.train, ready.recipe["data"].get("train")
    files = " and ".join(Path(each).name for each in paths_of(train) or []) if train is not None else "given examples"
    cost = training_cost(ready)
    batches = batches_of(ready)
    try:
        _, speed = measure_update(training_of(ready), batches, build_settings(ready.recipe), SECONDS)
    finally:
        batches.close()
    sources = [] if ready.task.source is None else [corpus[row][0] for row in range(min(ROWS, len(corpus)))]
    batch = ready.task.collate(corpus, ready.task.plan(corpus.lengths, 256, ready.recipe["seed"], 0)[0])
    flops, rate = prediction_cost(ready.model, ready.task, ready.recipe, sources, batch, ready.trust)
    return Info(
        name,
        f"{SAMPLE} batches of {files} ({len(corpus):,} examples)",
        **sizes(ready.model, ready.recipe),
        activation_bytes=cost.activations,
        train_flops_per_token=cost.per_token,
        predict_flops_per_token=flops,
        train_tokens_per_second=speed,
        predict_tokens_per_second=rate,
        threads=torch.get_num_threads(),
        **more,
    )


def info_of_recipe(name: str, recipe: dict[str, Any], trust: bool) -> Info:
    """A completed recipe alone: its vocabularies have the sizes that it sets, its examples random tokens."""
    check_recipe(recipe, trust)
    task = build_task(recipe, trust)
    is_head = issubclass(find("decoders", recipe["decoder"]["type"], "decoder.type", trust), Head)
    target = typical(task.target, labels=is_head and not task.reads_itself)
    task.stand_in(target)
    source = target if task.joint else task.source and typical(task.source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe["seed"])
        model = build_model(recipe, source, target, trust)
    try:
        return info_on_random_examples(name, System(model, task, recipe, trust=trust), source, target)
    except SeqloomError as error:  # a reward of words needs a vocabulary
        raise SeqloomError(f"{name}: cannot be measured on random examples ({error}); give --data FILE") from error


def info_on_random_examples(name: str, system: System, source: Any, target: Any, **more: Any) -> Info:
    """Counted on random tokens of codecs, or of what stands in for them."""
    model, task, recipe, trust = system.model, system.task, system.recipe, system.trust
    length = LENGTH if task.per_token or not isinstance(model.decoder, Head) else 1
    if task.target.canvas is not None:  # pictures and films are whole
        length = prod(task.target.canvas) * (task.target.frames or 1)
    nested = task.source is not None and bool(task.source.nested)
    divided = task.source is not None and bool(task.source.divided)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe["seed"])
        lengths, sources = [length] * ROWS, [LENGTH] * ROWS
        examples: Any = Examples(source, target, lengths, task.target.chooses, nested, sources, divided)
        batch = task.collate(examples, task.in_order(examples.lengths, tokens=ROWS * (max(length, LENGTH) + 1))[0])
        objective = build_objective(recipe, task, model.decoder, trust, target)
        training = Training(model, objective, seed=recipe["seed"]).train()
        flops, kept = step_flops(training, batch), activation_bytes(training, batch)
        given = [] if source is None else [examples[row][0] for row in range(ROWS)]
        predicting, _ = prediction_cost(model, task, recipe, given, batch, trust)
    known = [each.vocabulary for each in (source, target) if each is not None and each.vocabulary]
    words = f", vocabularies of {' and '.join(f'{count:,}' for count in known)} tokens" if known else ""
    return Info(
        name,
        f"{ROWS} random examples of {max(length, LENGTH)} tokens{words}: give --data for those of a file",
        **sizes(model, recipe),
        activation_bytes=kept,
        train_flops_per_token=flops / target_tokens(batch),
        predict_flops_per_token=predicting,
        **more,
    )


def typical(codec: Codec, labels: bool = False) -> Any:
    """In place of a codec that has not been fitted: as many tokens as the recipe sets, or a few labels."""
    plain = stand_in(codec)
    if codec.canvas is not None:
        return codec
    if codec.shape is not None:
        parts = {name: typical(part) for name, part in codec.parts.items()}
        return SimpleNamespace(vocabulary=None, features=None, shape=codec.shape, moving=codec.moving, parts=parts)
    if plain.vocabulary is None:
        try:
            return SimpleNamespace(vocabulary=None, features=codec.features or plain.features)
        except SeqloomError:  # known from data only
            return plain
    sized = getattr(codec, "units", "") in ("bpe", "unigram", "wordpiece", "word")
    size = LABELS if labels else getattr(codec, "size", VOCABULARY) if sized else VOCABULARY
    return SimpleNamespace(vocabulary=size, features=None)


def sizes(model: Any, recipe: dict[str, Any]) -> dict[str, Any]:
    count = sum(weight.nbytes for weight in model.parameters())
    return {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "parts": parameters_by_part(model),
        "weights_bytes": count,
        "training_bytes": count * COPIES.get(recipe["train"]["optimiser"], 4),
    }


def prediction_cost(
    model: Any, task: Any, recipe: dict[str, Any], sources: list[Any], batch: Batch, trust: bool
) -> tuple[float, float]:
    """FLOPs per output token, and tokens per second; of a head or a language model, those of a forward pass."""
    model.freeze()
    if isinstance(model.decoder, Head) or not sources:

        def compute() -> int:
            with torch.inference_mode():
                model(batch)
            return target_tokens(batch)
    else:
        search = build_search(System(model, task, recipe, trust=trust))

        def compute() -> int:
            found = model.find([[each] for each in sources], search, details=False)
            return sum(len(each[0].tokens) + 1 for each in found if each)

    tokens: list[int] = []
    flops = count_flops(lambda: tokens.append(compute()))
    began = time.monotonic()
    compute()
    seconds = time.monotonic() - began
    clear_weight_cache()  # copies made while operations were counted are not removed with their weights
    return flops / tokens[0], tokens[0] / seconds
