"""Whether the parts of a recipe fit each other, before any data is read: every part is built once, without memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seqloom import metrics
from seqloom.config.build import build_model, build_objective, build_part, build_task
from seqloom.config.discovery import find, parts
from seqloom.config.recipes import Recipe
from seqloom.errors import SeqloomError, show

if TYPE_CHECKING:
    from seqloom.contracts import Codec, Task
    from seqloom.nn.model import Model

CHOOSES = {"places": 'task.target.type = "places"', "copies": "task.copy = true", "": "a target of its own tokens"}


def check_recipe(recipe: Recipe, trust: bool = False) -> None:
    """Build every part of a completed recipe once, without memory for it: parts that do not fit say so."""
    import torch

    task = build_task(recipe, trust)
    name = recipe["objective"]["type"]
    objective: Any = find("objectives", name, "objective.type", trust)
    refuse_misfits(task, objective.compares, f"objective.type = {show(name)}")
    if objective.improves == "outputs" and task.source is None:
        raise SeqloomError(
            f"objective.type = {show(name)}: improves answers to sources, which a language model has not"
        )
    if objective.improves == "outputs" and recipe["train"]["select_by"] in ("", "loss", "perplexity"):
        known = ", ".join(task.metrics) or "none yet: add task.metrics"
        raise SeqloomError(f"train.select_by: {show(name)} improves outputs, not the loss; set a metric ({known})")
    for key, value in objective.searched.items():
        if (found := recipe["search"].get(key)) != value:
            raise SeqloomError(f"search.{key} = {show(found)}: models of {show(name)} are searched with {show(value)}")
    for name in task.metrics:
        compares = getattr(metrics.find(name), "COMPARES", "symbols")
        refuse_misfits(task, compares, f"task.metrics = {show(name)}")
    build_part("search", recipe["search"], "search", trust)
    if recipe["train"]["select_by"] not in ("", "loss", "perplexity"):
        task.higher_is_better(recipe["train"]["select_by"])
    stand_ins: Any = {  # the data is not read yet
        "symbols": SimpleNamespace(vocabulary=100, features=None),
        "vectors": SimpleNamespace(vocabulary=None, features=2),
    }
    refuse_tables(recipe, task, trust)
    source = None if task.source is None else stand_ins[made_of(task.source)]
    with torch.device("meta"):
        model = build_model(recipe, source, stand_ins[made_of(task.target)], trust)
        build_objective(recipe, task, model.decoder, trust, stand_ins[made_of(task.target)])
    refuse_choices(recipe, task, model)
    refuse_strangers(recipe, model.decoder, trust)
    refuse_windows(task, model.decoder, recipe["train"]["tokens"])


def refuse_strangers(recipe: Recipe, decoder: Any, trust: bool = False) -> None:
    """Decoders with blanks are trained and searched in ways of their own."""
    objective, search = recipe["objective"]["type"], recipe["search"]["type"]
    if decoder.trained_by and objective not in decoder.trained_by:
        known = " or ".join(map(show, decoder.trained_by))
        raise SeqloomError(f"objective.type = {show(objective)}: this decoder is trained by {known}")
    part: Any = find("objectives", objective, "objective.type", trust)
    if part.needs and not hasattr(decoder, part.needs):
        able = " or ".join(show(name) for name, each in parts("decoders").items() if hasattr(each, part.needs))
        raise SeqloomError(f"objective.type = {show(objective)}: trains decoders of type {able} only")
    if bool(decoder.blanks) != (search == "prefix_beam"):
        expected = '"prefix_beam"' if decoder.blanks else "a search without blanks"
        raise SeqloomError(f"search.type = {show(search)}: this decoder needs {expected}")


def refuse_choices(recipe: Recipe, task: Task, model: Model) -> None:
    """What is chosen from a source needs a decoder that does, and the other way round; both a state for each token."""
    decoder: Any = model.decoder
    if decoder.chooses != task.target.chooses:
        able = " or ".join(
            show(name)
            for name, part in parts("decoders").items()
            if part.chooses == task.target.chooses  # type: ignore[attr-defined]
        )
        found, wanted = CHOOSES[task.target.chooses], CHOOSES[decoder.chooses]
        name = recipe["decoder"]["type"]
        hint = f"; with {found} set decoder.type = {able}" if task.target.chooses else ""
        raise SeqloomError(f"decoder.type = {show(name)}: needs {wanted}{hint}")
    if decoder.reads_source and model.encoder is not None and model.encoder.stride != 1:
        name = recipe["encoder"]["type"]
        raise SeqloomError(
            f"encoder.type = {show(name)}: makes a state of {model.encoder.stride} tokens; "
            'what is chosen from a source needs a state for each, such as "recurrent" has'
        )


def refuse_tables(recipe: Recipe, task: Task, trust: bool = False) -> None:
    """Stories, a row a sentence, are read by encoders of stories; and what has no end is said at once, by a head."""
    if task.source is None:
        return
    from seqloom.contracts import Head

    encoder: Any = find("encoders", recipe["encoder"]["type"], "encoder.type", trust)
    if encoder.nested != task.source.nested:
        readers = [name for name, part in parts("encoders").items() if part.nested]  # type: ignore[attr-defined]
        able = " or ".join(map(show, readers)) if task.source.nested else 'task.source.type = "story"'
        raise SeqloomError(
            f"encoder.type = {show(recipe['encoder']['type'])}: does not fit the source; expected {able}"
        )
    decoder: Any = find("decoders", recipe["decoder"]["type"], "decoder.type", trust)
    if task.source.nested and decoder.reads_source:
        name = show(recipe["decoder"]["type"])
        raise SeqloomError(f"decoder.type = {name}: chooses elements of a source, and a story has none; set another")
    if task.eos is None and not issubclass(decoder, Head):
        heads = " or ".join(show(name) for name, part in parts("decoders").items() if issubclass(part, Head))
        name = show(recipe["decoder"]["type"])
        raise SeqloomError(f"decoder.type = {name}: an answer is said at once; expected {heads}")


def refuse_windows(task: Task, decoder: Any, tokens: int) -> None:
    """Say which window of a running text the decoder or the budget does not allow."""
    if task.carry and decoder.grows:
        raise SeqloomError("task.carry = true: this decoder keeps all it has read; set task.carry = false")
    if task.window > tokens:
        raise SeqloomError(f"task.window = {task.window}: train.tokens = {tokens} holds no window; raise it, or cut it")
    longest = getattr(decoder, "longest", None)
    if longest is not None and task.window > longest:
        raise SeqloomError(f"task.window = {task.window}: raise decoder.longest = {longest}, the positions it learns")


def made_of(codec: Codec) -> str:
    """What a side consists of, known before its codec is fitted."""
    return "vectors" if (getattr(type(codec), "features", None) or vars(codec).get("features")) else "symbols"


def refuse_misfits(task: Task, compares: str, what: str) -> None:
    """Tokens and vectors are not measured alike."""
    if (found := made_of(task.target)) != compares:
        raise SeqloomError(f"{what}: compares {compares}, but task.target is made of {found}; choose another")
