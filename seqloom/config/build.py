"""The parts of a completed recipe, built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.compute.memory import memory_limit
from seqloom.config.assemble import assemble_part, call
from seqloom.config.complete import OF, OF_SOURCE, fill_part, is_derived
from seqloom.config.discovery import find, parameters
from seqloom.config.recipes import Recipe
from seqloom.data.special_tokens import EOS, PAD, UNK, correspondence
from seqloom.errors import SeqloomError, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seqloom.contracts import Codec, Decoder, Objective, Task
    from seqloom.nn.model import Model
    from seqloom.nn.multi_task import MultiTask


def build_part(kind: str, table: Recipe | str, where: str, trust: bool = False, **given: Any) -> Any:
    """One part from its table, completed or not; `where` is its key, `given` what the program knows."""
    return assemble_part(kind, fill_part(kind, table, where, trust), where, trust, **given)


def build_task(recipe: Recipe, trust: bool = False) -> Task:
    """The task of a completed recipe, its codecs built and not yet fitted."""
    task: Task = build_part("tasks", {"type": "pairs", **recipe["task"]}, "task", trust)
    return task


def build_model(recipe: Recipe, source_codec: Codec | None, target_codec: Codec, trust: bool = False) -> Model:
    """The model of a recipe, its sizes taken from the codecs. First without memory, to count its weights."""
    import torch

    with torch.device("meta"):
        check_memory(assemble_model(recipe, source_codec, target_codec, trust))
    return assemble_model(recipe, source_codec, target_codec, trust)


def join_models(models: Mapping[str, Model]) -> MultiTask:
    """One model for several tasks."""
    from seqloom.nn.multi_task import MultiTask

    joined: MultiTask = call(MultiTask, "the tasks do not fit", {"models": models})
    return joined


def check_memory(model: Model | MultiTask, copies: int = 1) -> None:
    """Refuse a model whose weights, or so many copies of them, do not fit into memory."""
    count = sum(weight.numel() for weight in model.parameters())
    needed, limit = sum(weight.nbytes for weight in model.parameters()) * copies, memory_limit()
    if needed > limit:
        raise SeqloomError(
            f"encoder and decoder have {count:,} weights, which take {needed / 2**30:,.1f} GB "
            f"{'in training' if copies > 1 else 'of memory'}; there are {limit / 2**30:,.1f} GB: set smaller sizes"
        )


def assemble_model(recipe: Recipe, source_codec: Codec | None, target_codec: Codec, trust: bool = False) -> Model:
    """The model, on torch's default device."""
    from seqloom.nn.model import Model

    if ("encoder" in recipe) != (source_codec is not None):
        raise SeqloomError("encoder and task.source: set both, or neither for a language model")
    encoder, share = None, recipe.get("share_embeddings", False)
    if source_codec is not None:
        if share and (source_codec.vocabulary is None or target_codec.vocabulary is None):
            raise SeqloomError("share_embeddings = true: needs tokens on both sides, and task.joint = true")
        if share and source_codec is not target_codec:  # of one size perhaps, but the same number is another token
            sizes = f"task.source has {source_codec.vocabulary} tokens and task.target {target_codec.vocabulary}"
            raise SeqloomError(f"share_embeddings = true: {sizes} of its own; set task.joint = true for one vocabulary")
        given = {**facts(source_codec), "inputs": inputs(source_codec), "pad": PAD, "unk": UNK}
        given["eos"] = EOS  # of the parts of a source, whatever ends an output
        encoder = build_fitting("encoders", recipe["encoder"], "encoder", "task.source", given, trust)
    memory_size = encoder.output_size if encoder is not None else 0
    task: Any = find("tasks", recipe.get("task", {}).get("type", "pairs"), "task.type", trust)
    first = task.first_input(recipe.get("task", {}))
    offered: Recipe = {
        **facts(target_codec),
        "memory_size": memory_size,
        "bos": first,
        "eos": task.eos,
        "pad": PAD,
        "blank": PAD,
        "unk": UNK,
    }
    offered |= {name: getattr(source_codec, name.removeprefix("source_"), None) for name in OF_SOURCE}
    if "written" in parameters(find("decoders", type_of(recipe["decoder"]), "decoder.type", trust)):
        offered["written"] = []
        if source_codec is not None and source_codec.vocabulary is not None:
            offered["written"] = correspondence(source_codec, target_codec)
    decoder = build_fitting("decoders", recipe["decoder"], "decoder", "task.target", offered, trust)
    values = {"encoder": encoder, "decoder": decoder, "share_embeddings": share}
    return call(Model, "encoder and decoder do not fit", values)


def build_objective(
    recipe: Recipe, task: Task, decoder: Decoder, trust: bool = False, target: Codec | None = None
) -> Objective:
    """The objective of a completed recipe, given what it asks for of the task and the decoder."""
    offered = {
        **facts(target or task.target),
        "hidden_size": getattr(decoder, "hidden_size", None),
        "decode": task.decode,
        "constraints": task.constraints,
    }
    objective: Objective = build_fitting("objectives", recipe["objective"], "objective", "task.target", offered, trust)
    return objective


def build_fitting(kind: str, table: Recipe | str, key: str, codec_key: str, offered: Recipe, trust: bool) -> Any:
    """A part given as much of what is offered as its constructor asks for."""
    name = type_of(table)
    part = find(kind, name, f"{key}.type", trust)
    asked = {name for name, parameter in parameters(part).items() if is_derived(name, parameter)}
    works_on = [sort for fact, sort in OF.items() if fact in asked]
    if works_on and all(offered[fact] is None for fact in OF.keys() & asked):
        kinds = " and ".join(works_on)
        take = ': take "image" for pictures, "video" for films' if offered["shape"] is not None else ""
        raise SeqloomError(f"{key}.type = {show(name)}: works on {kinds}, but the codec of {codec_key} has none{take}")
    return build_part(kind, table, key, trust, **{name: offered[name] for name in asked & offered.keys()})


def facts(codec: Codec) -> Recipe:
    """What the values of a codec consist of, as arguments of constructors; None for what they are not."""
    return {name: getattr(codec, name, None) for name in OF}


def inputs(codec: Codec) -> dict[str, Recipe]:
    """The facts of each input of a source by name; the source itself is ""."""
    return {"": facts(codec)} | {name: facts(part) for name, part in getattr(codec, "parts", {}).items()}


def type_of(table: Recipe | str) -> str:
    return table if isinstance(table, str) else table.get("type", "")
