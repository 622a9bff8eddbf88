"""A recipe's model made small enough for a check of every gradient, with random examples of its task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import getitem
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from seqloom.config.build import build_model, build_objective, build_task
from seqloom.config.check import check_recipe, made_of
from seqloom.config.discovery import find
from seqloom.config.recipes import difference
from seqloom.contracts import Codec, Objective
from seqloom.data.special_tokens import EOS, SPECIAL
from seqloom.errors import SeqloomError
from seqloom.nn.model import Model
from seqloom.types import Batch, Composite, Encoded

WIDE, NARROW, NARROWEST = 8, 6, 4  # an integer above WIDE is a width, made NARROW or less
SOURCES, TARGETS = (5, 3, 1), (3, 4, 1)  # lengths of three examples: ragged, and not in the same order
WORDS = (3,)  # of a sentence, where sources are stories
# One object each, so that source and target may share embeddings.
TOKENS: Any = SimpleNamespace(vocabulary=11, features=None, shape=None)
VECTORS: Any = SimpleNamespace(vocabulary=None, features=2, shape=None)
PICTURE, CANVAS = (16, 16), (3, 2)  # height and width of a picture, as a source and as an output
FRAMES = 2  # of a film as an output


@dataclass(frozen=True)
class SmallModel:
    """What is checked in place of a recipe's own model."""

    model: Model
    objective: Objective
    batch: Batch
    changes: list[str]  # "encoder.size = 4": how it differs from the recipe


def make_small(recipe: dict[str, Any], trust: bool = False) -> SmallModel:
    """A model of a completed recipe with few weights: the same parts, layers and options, but narrow."""
    if "tasks" in recipe:
        raise SeqloomError("the recipe has several tasks: check the gradients of a recipe with one of them")
    changes, kind = [], recipe["objective"]["type"]
    objective: Any = find("objectives", kind, "objective.type", trust)
    if objective.improves == "outputs":
        changes = [f"objective = cross_entropy ({kind} follows an estimate, not the gradient of its loss)"]
        recipe = {**recipe, "objective": {"type": "cross_entropy"}}
    if recipe["task"].get("answers_after"):
        changes.append('task.answers_after = "" (random tokens have no answers)')
        recipe = {**recipe, "task": {**recipe["task"], "answers_after": ""}}
    check_recipe(recipe, trust)
    task = build_task(recipe, trust)
    source, target = stand_in(task.source), stand_in(task.target)
    task.stand_in(target)
    nested = task.source is not None and bool(task.source.nested)
    divided = task.source is not None and bool(task.source.divided)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # Some widths fit only if all are scaled alike; some decoders write only one token, or one per source token.
        for most, lengths in product((NARROW, None), (TARGETS, (1,) * len(TARGETS), SOURCES)):
            torch.manual_seed(recipe["seed"])
            narrow, examples = (
                narrow_recipe(recipe, most),
                Examples(source, target, lengths, task.target.chooses, nested, divided=divided),
            )
            batch = task.collate(examples, task.in_order(examples.lengths, tokens=1000)[0])
            try:
                model = build_model(narrow, source, target, trust)
                model(batch)  # some parts notice only now that they do not fit
            except (SeqloomError, ValueError) as error:
                problem = error
                continue
            for parameter in model.parameters():  # zeros and ones would hide mistakes
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
            for key in difference(recipe, narrow):
                changes.append(f"{key} = {reduce(getitem, key.split('.'), narrow)}")
            objective = build_objective(narrow, task, model.decoder, trust, target)
            return SmallModel(model, objective, objective.prepare(batch, np.random.default_rng(1)), changes)
    raise SeqloomError(f"the recipe cannot be made small enough to check ({problem}); set smaller sizes with --set")


def stand_in(codec: Codec | None) -> Any:
    """In place of a codec that has not been fitted: a few tokens, vectors of two components, or small pictures."""
    if codec is not None and codec.canvas is not None:
        frames = None if codec.frames is None else FRAMES
        return SimpleNamespace(**vars(TOKENS), canvas=(*CANVAS, codec.canvas[2]), frames=frames)
    if codec is not None and codec.shape is not None:
        parts = {name: stand_in(part) for name, part in codec.parts.items()}
        return SimpleNamespace(
            vocabulary=None, features=None, shape=(*PICTURE, codec.shape[2]), moving=codec.moving, parts=parts
        )
    return None if codec is None else VECTORS if made_of(codec) == "vectors" else TOKENS


class Examples:
    """Random examples, read as a corpus is. `chooses`, `nested` and `divided` are those of a Codec."""

    def __init__(
        self,
        source: Any,
        target: Any,
        lengths: Sequence[int],
        chooses: str = "",
        nested: bool = False,
        sources: Sequence[int] = SOURCES,
        divided: bool = False,
    ):
        self.targets = [random_value(target, length) for length in lengths]
        self.sources = [source and random_value(source, length, WORDS if nested else ()) for length in sources]
        for output, value in zip(self.targets, self.sources):
            if divided:  # into parts of two tokens
                value[2::3] = EOS
            if chooses == "places":
                output[:] = target.vocabulary + torch.randint(len(value), (len(output),)).numpy()
            elif chooses == "copies":  # the first word of each is in no vocabulary
                output[0], value[0] = target.vocabulary, source.vocabulary
        self.lengths = np.array([[length, len(target)] for length, target in zip(sources, self.targets)])

    def __getitem__(self, row: int) -> tuple[Encoded | None, np.ndarray]:
        return self.sources[row], self.targets[row]

    def stream(self, begin: int, end: int) -> np.ndarray:
        return np.concat(self.targets)[begin:end]


def random_value(codec: Any, length: int, words: tuple[int, ...] = ()) -> Encoded:
    """Tokens (T,), sentences of them (T, W), vectors (T, F), a picture (H, W, C), or a film (T, H, W, C)."""
    if getattr(codec, "shape", None) is not None:
        shape = (length, *codec.shape) if codec.moving else codec.shape
        pixels = torch.randint(256, shape, dtype=torch.uint8).numpy()
        parts = {name: random_value(part, length) for name, part in codec.parts.items()}
        return Composite(pixels, parts) if parts else pixels
    if codec.features is not None:
        return torch.randn(length, codec.features).numpy()
    return torch.randint(len(SPECIAL), codec.vocabulary, (length, *words)).numpy()


def narrow_recipe(recipe: dict[str, Any], most: int | None) -> dict[str, Any]:
    """The recipe with its widths in proportion: the smallest becomes 4, the others even and at most `most`."""
    parts: dict[str, Any] = {name: recipe[name] for name in ("encoder", "decoder") if name in recipe}
    least = min(widths(parts), default=1)

    def narrow(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: entry if is_unused(key, value) else narrow(key, entry) for key, entry in value.items()}
        if name == "heads" and isinstance(value, int):
            return min(value, 2)
        if not is_width(name, value):
            return value
        scaled = 2 * round(value * NARROWEST / least / 2)
        return scaled if most is None else min(scaled, most)

    return {**recipe, **{name: narrow(name, part) for name, part in parts.items()}}


def widths(table: dict[str, Any]) -> Iterator[int]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from widths(value)
        elif is_width(name, value) and not is_unused(name, table):
            yield value


def is_unused(name: str, table: dict[str, Any]) -> bool:
    """Whether a key says how wide something is that the part does not have."""
    return name == "expert_hidden" and not table.get("experts")


def is_width(name: str, value: Any) -> bool:
    """Whether a key of a part is a width: any large integer may be, except numbers of layers, experts and lengths."""
    counts = name in ("layers", "experts", "active_experts") or name.startswith(("length_", "unfold_"))
    return isinstance(value, int) and value > WIDE and not counts
