"""Whether the parts of a recipe fit each other, before any data is read: every part is built once, without memory.

What fits is for the parts to say: `suit` of encoder, decoder, objective and search.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seqloom import metrics
from seqloom.config.assemble import call
from seqloom.config.build import assemble_model, build_objective, build_part, build_task, check_memory, join_models
from seqloom.config.multi_task import tasks_of
from seqloom.config.recipes import Recipe
from seqloom.errors import SeqloomError, show

if TYPE_CHECKING:
    from seqloom.contracts import Codec, Search, Task
    from seqloom.nn.model import Model

COPIES = 4  # of weights in training: they, their gradients, and two moments of Adam
STAND_INS: dict[str, Any] = {  # for codecs, before the data is read
    "symbols": SimpleNamespace(vocabulary=100, features=None),
    "vectors": SimpleNamespace(vocabulary=None, features=2),
}
KINDS = {"symbols": "tokens", "vectors": "vectors", "pictures": "pictures"}


def check_recipe(recipe: Recipe, trust: bool = False) -> None:
    """Build every part of a completed recipe on torch's meta device; parts that do not fit say so in one line."""
    models = {}
    for name, single in tasks_of(recipe).items():
        try:
            models[name] = check_task(single, trust)
        except SeqloomError as error:
            raise SeqloomError(f"tasks.{name}: {error}" if name else str(error)) from error
    if "" not in models:
        check_memory(join_models(models), COPIES)


def check_task(recipe: Recipe, trust: bool) -> Model:
    """The same for one task; returns its model, which has no memory."""
    import torch

    task = build_task(recipe, trust)
    search: Search = build_part("search", recipe["search"], "search", trust)
    source = None if task.source is None else stand_in(task.source)
    target = stand_in(task.target)

    def suit(part: Any, key: str, **given: Any) -> None:
        call(part.suit, f"{key}.type = {show(recipe[key]['type'])}", given)

    with torch.device("meta"):
        model = assemble_model(recipe, source, target, trust)
        objective = build_objective(recipe, task, model.decoder, trust, target)
    check_memory(model, COPIES)
    if model.encoder is not None:
        suit(model.encoder, "encoder", task=task)
    suit(model.decoder, "decoder", task=task, encoder=model.encoder)
    suit(objective, "objective", task=task, decoder=model.decoder, search=search)
    suit(search, "search", decoder=model.decoder)
    check_selection(recipe, task, objective.improves)
    if task.window > recipe["train"]["tokens"]:
        tokens = recipe["train"]["tokens"]
        raise SeqloomError(
            f"task.window = {task.window}: larger than train.tokens = {tokens}, a whole batch; raise that, or cut it"
        )
    return model


def check_selection(recipe: Recipe, task: Task, improves: str) -> None:
    """Metrics fit the targets, and what chooses the best checkpoint is measured and improved by the objective."""
    for name in task.metrics:
        compares = getattr(metrics.find(name), "COMPARES", "symbols")
        if compares != made_of(task.target):
            raise SeqloomError(
                f"task.metrics = {show(name)}: compares {KINDS[compares]}, but task.target is made of "
                f"{KINDS[made_of(task.target)]}; take another metric"
            )
    select_by = recipe["train"]["select_by"]
    if select_by not in ("", "loss", "perplexity"):
        task.higher_is_better(select_by)
    elif improves == "outputs":
        known = ", ".join(task.metrics) or "none yet: add task.metrics"
        name = show(recipe["objective"]["type"])
        raise SeqloomError(f"train.select_by: {name} improves outputs, not the loss; set a metric ({known})")


def made_of(codec: Codec) -> str:
    """What the values of a codec consist of, known before it is fitted."""
    return "pictures" if codec.shape is not None else "vectors" if codec.is_vectors else "symbols"


def stand_in(codec: Codec) -> Any:
    """In place of a codec before it is fitted. The shape of pictures is known by then."""
    if codec.canvas is not None:
        return codec
    if codec.shape is not None:
        return SimpleNamespace(vocabulary=None, features=None, shape=codec.shape, parts=codec.parts)
    return STAND_INS[made_of(codec)]
