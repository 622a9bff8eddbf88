"""Recipes: a TOML file that says which parts a system is made of.

`type` names a file of a folder, every other key is an argument of that part's constructor. A completed recipe has
every default written out, so a run that keeps it does not change when a default does.
"""

from __future__ import annotations

import copy
import tomllib
from dataclasses import dataclass
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seqloom.data.symbols import PAD, UNK, correspondence
from seqloom.errors import SeqloomError, nearest
from seqloom.files import replace_file, saving
from seqloom.parts import (
    ABSENT,
    Parameter,
    Section,
    as_table,
    assemble,
    assemble_part,
    call,
    check,
    files,
    find,
    kind,
    one,
    one_line,
    parameters,
    parts,
    plain,
    show,
    slot,
    under,
    untrusted,
)

if TYPE_CHECKING:
    from seqloom.contracts import Codec, Decoder, Objective, Task
    from seqloom.model import Model
    from seqloom.train.settings import Settings

Recipe = dict[str, Any]
FROM_DATA = (
    "vocabulary",
    "features",
    "pad",
    "bos",
    "eos",
    "blank",
    "unk",
    "written",
    "source_vocabulary",
    "source_features",
)  # what the program derives from the data, not a neighbour
OF = {"vocabulary": "symbols", "features": "vectors"}  # what a side is made of that has it
OF_SOURCE = ("source_vocabulary", "source_features")


@dataclass(frozen=True)
class Data:
    """The [data] of a recipe: where examples are read from, each one file or a source file and a target file."""

    train: str | tuple[str, str] | None = None
    valid: str | tuple[str, str] | None = None
    test: str | tuple[str, str] | None = None
    max_characters: int = 20_000  # of a line; as the readers have it
    skip_bad: bool = False


def sections() -> dict[str, Parameter]:
    """The top level of a recipe, in the order it is written."""
    from seqloom.contracts import Decoder, Encoder, Objective, Search, Task
    from seqloom.train.settings import Settings

    return {
        "seed": Parameter(int, 1),
        "init": Parameter(str | None, None),
        "share_embeddings": Parameter(bool, False),
        "objective": Parameter(Objective, {"type": "cross_entropy"}),
        "search": Parameter(Search, {"type": "beam"}),
        "task": Parameter(Task, {"type": "pairs"}),
        "encoder": Parameter(Encoder | None, None),
        "decoder": Parameter(Decoder),
        "train": Parameter(Section(Settings), {}),
        "data": Parameter(Section(Data), {}),
    }


def recipes() -> dict[str, Path]:
    """The packaged recipes by name."""
    found = {path.stem: path for path in (Path(__file__).parent / "recipes").glob("*.toml")}
    return dict(sorted(found.items()))


def describe(path: Path) -> str:
    """The first comment line of a recipe: what it is for."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("#").strip() for line in lines if line.startswith("#")), "")


def read(name_or_path: str | Path, trust: bool = False) -> Recipe:
    """A recipe as written, by the name of a packaged one or by its path."""
    packaged = {name.replace("-", "_"): path for name, path in recipes().items()}
    name = str(name_or_path)
    path = packaged.get(name.replace("-", "_"), Path(name_or_path))
    if not path.exists() and path.suffix != ".toml" and len(path.parts) == 1:
        raise SeqloomError(f"{show(name)}: no such recipe, and no such file{nearest(name, recipes())}")
    recipe = load(path)
    if not trust:
        refuse_own_parts(recipe, f"{path}: ")
    return recipe


def load(path: Path) -> Recipe:
    """The inverse of `write`."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SeqloomError(f"{path}: cannot be read ({error.strerror}); expected a TOML file") from error
    except UnicodeDecodeError as error:
        raise SeqloomError(f"{path}: not UTF-8 at byte {error.start}; expected a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        hint = "" if Path(path).suffix == ".toml" else "; a recipe is a TOML file, examples are given with --data"
        raise SeqloomError(f"{path}: not valid TOML: {one_line(error)}{hint}") from error


def write(recipe: Recipe, path: Path) -> None:
    """Write a recipe, whole or not at all."""
    import tomli_w

    with saving(Path(path)):
        replace_file(Path(path), tomli_w.dumps(recipe).encode())


def override(recipe: Recipe, assignments: list[str]) -> Recipe:
    """The recipe with some keys set: "train.tokens=2048", "decoder.attention.type=additive".

    Another type is another part, which starts from its own defaults; parts are set before what is in them. "none" takes
    a key out.
    """
    recipe = copy.deepcopy(recipe)
    for assignment in sorted(assignments, key=depth):
        key, equals, text = (piece.strip() for piece in assignment.partition("="))
        *tables, last = key.split(".")
        if not equals or not text or not all([*tables, last]):
            raise SeqloomError(f"{show(assignment)}: expected key=value, such as train.tokens=2048")
        table = recipe
        for level, name in enumerate(tables, start=1):
            if isinstance(table.get(name), str):
                table[name] = {"type": table[name]}
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                through = ".".join(tables[:level])
                raise SeqloomError(f"{key}={text}: {through} = {show(table)} is no table; set {through}={{...}} whole")
        value = value_of(text, assignment)
        if last == "type" and table.get("type", value) != value:
            table.clear()
        if text == "none":
            table.pop(last, None)
        else:
            table[last] = value
    return recipe


def depth(assignment: str) -> int:
    """How deep in the recipe a key is; to set a type is to set its part."""
    return assignment.partition("=")[0].strip().removesuffix(".type").count(".")


def value_of(text: str, assignment: str) -> Any:
    """A value as TOML reads it; what TOML cannot read is a string, unless it was meant to be more."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError as error:
        if text[0] in "[{\"'":
            raise SeqloomError(f"{show(assignment)}: not a TOML value: {one_line(error)}") from error
        return text
    # A recipe holds no dates: 2024-05-01 is the name of a file or folder.
    return text if len(parsed) > 1 or isinstance(parsed["value"], (date, datetime, time)) else parsed["value"]


def difference(old: Recipe, new: Recipe, prefix: str = "") -> list[str]:
    """The dotted keys in which two recipes differ."""
    keys = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            keys += difference(before, after, f"{prefix}{name}.")
        elif before != after:
            keys.append(f"{prefix}{name}")
    return keys


def complete(recipe: Recipe, where: str, trust: bool = False) -> Recipe:
    """The recipe, checked, with every default filled in. `where` is the file an error names."""
    full = fill_table(sections(), recipe, f"{where}: ", "a recipe", trust, derive=False)
    if ("encoder" in full) != ("source" in full["task"]):
        there, missing = ("encoder", "task.source") if "encoder" in full else ("task.source", "encoder")
        raise SeqloomError(f"{where}: {missing}: missing, but {there} is set (a language model has neither)")
    if full["seed"] < 0:
        raise SeqloomError(f"{where}: seed = {full['seed']}: expected 0 or more")
    if "metrics" in full["task"]:
        full["task"]["metrics"] = [metric_name(name, where) for name in full["task"]["metrics"]]
    try:
        build_settings(full)  # it checks its own values
    except SeqloomError as error:
        raise SeqloomError(f"{where}: {error}") from error
    return full


def metric_name(name: str, where: str) -> str:
    """The name of a metric: of a file of metrics/ that says which way is better."""
    modules = {file: import_module(f"seqloom.metrics.{file}") for file in files("metrics")}
    known = [file for file, module in modules.items() if hasattr(module, "HIGHER_IS_BETTER")]
    if name.replace("-", "_") not in known:
        raise SeqloomError(f"{where}: task.metrics = {show(name)}: no such metric{nearest(name, known)}")
    return name.replace("-", "_")


def fill(parameter: Parameter, value: Any, key: str, trust: bool) -> Any:
    """One value as a completed recipe has it."""
    annotation = parameter.annotation
    if isinstance(annotation, Section):
        return fill_table(
            parameters(annotation.constructor), value, key, f"[{key.rpartition(': ')[2]}]", trust, derive=False
        )
    place = slot(annotation)
    if place is None:
        return plain(annotation, check(annotation, value, key))
    default = as_table(place.folder, parameter.default)
    return fill_part(place.folder, as_table(place.folder, value), key, trust, default)


def fill_part(folder: str, value: Any, key: str, trust: bool, default: Any = None) -> Recipe:
    """The table of a part; where a recipe names no type, it means the default's."""
    table = {"type": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise SeqloomError(f"{key} = {show(value)}: expected the name or the table of {one(folder)}")
    if "type" not in table and isinstance(default, dict):
        table = {**default, **table}
    if "type" not in table:
        raise SeqloomError(f"{key}.type: missing, expected the name of {one(folder)}{nearest('', parts(folder))}")
    part = find(folder, table["type"], f"{key}.type", trust)
    name = table["type"] if ":" in table["type"] else table["type"].replace("-", "_")
    rest = {name: value for name, value in table.items() if name != "type"}
    return {"type": name, **fill_table(parameters(part), rest, key, f"{kind(folder)} {show(name)}", trust)}


def fill_table(
    known: dict[str, Parameter], table: Any, key: str, owner: str, trust: bool, derive: bool = True
) -> Recipe:
    """A table with every default. With `derive`, what has no default is given by the program, except for parts."""
    if not isinstance(table, dict):
        raise SeqloomError(f"{key} = {show(table)}: expected a table")
    derived = {
        name
        for name, parameter in known.items()
        if derive and is_derived(name, parameter) and not slot(parameter.annotation)
    }
    for name, value in table.items():
        if name not in known:
            hint = nearest(name, set(known) - derived)
            raise SeqloomError(f"{under(key, name)} = {show(value)}: unknown key of {owner}{hint}")
        if name in derived:
            origin = "the data" if name in FROM_DATA else "its neighbour"
            raise SeqloomError(f"{under(key, name)} = {show(value)}: derived from {origin}, take it out of the recipe")
    full = {}
    for name, parameter in known.items():
        if name in table:
            full[name] = fill(parameter, table[name], under(key, name), trust)
        elif parameter.default is not ABSENT and parameter.default is not None:
            full[name] = fill(parameter, parameter.default, under(key, name), trust)
        elif parameter.default is ABSENT and name not in derived:
            raise SeqloomError(f"{under(key, name)}: missing, {owner} needs it")
    return full


def is_derived(name: str, parameter: Parameter) -> bool:
    """Whether the program gives an argument: one without a default, or a fact of the data that not all data have."""
    return parameter.default is ABSENT or (parameter.default is None and name in (*OF, *OF_SOURCE))


def build(folder: str, table: Recipe | str, where: str, trust: bool = False, **given: Any) -> Any:
    """One part from its table, completed or not; `where` is its key, `given` what the program knows."""
    return assemble_part(folder, fill_part(folder, table, where, trust), where, trust, **given)


def build_task(recipe: Recipe, trust: bool = False) -> Task:
    """The task of a completed recipe, its codecs built and not yet fitted."""
    task: Task = build("tasks", {"type": "pairs", **recipe["task"]}, "task", trust)
    return task


def build_settings(recipe: Recipe) -> Settings:
    """The training settings of a completed recipe."""
    return assemble(sections()["train"].annotation, recipe["train"], "train", trust=False)


def build_model(recipe: Recipe, source_codec: Codec | None, target_codec: Codec, trust: bool = False) -> Model:
    """The model of a recipe, its sizes taken from the codecs."""
    from seqloom.model import Model

    if ("encoder" in recipe) != (source_codec is not None):
        raise SeqloomError("encoder and task.source: set both, or neither for a language model")
    encoder, share = None, recipe.get("share_embeddings", False)
    if source_codec is not None:
        if share and (source_codec.vocabulary is None or target_codec.vocabulary is None):
            raise SeqloomError("share_embeddings = true: needs symbols on both sides, and task.joint = true")
        if share and source_codec is not target_codec:  # of one size perhaps, but the same number is another symbol
            sizes = f"task.source has {source_codec.vocabulary} symbols and task.target {target_codec.vocabulary}"
            raise SeqloomError(f"share_embeddings = true: {sizes} of its own; set task.joint = true for one vocabulary")
        given = {"vocabulary": source_codec.vocabulary, "features": source_codec.features, "pad": PAD}
        encoder = build_fitting("encoders", recipe["encoder"], "encoder", "task.source", given, trust)
    memory_size = encoder.output_size if encoder is not None else 0
    task: Any = find("tasks", recipe.get("task", {}).get("type", "pairs"), "task.type", trust)
    offered: Recipe = {"vocabulary": target_codec.vocabulary, "features": target_codec.features}
    offered |= {"memory_size": memory_size, "bos": task.bos, "eos": task.eos, "pad": PAD, "blank": PAD, "unk": UNK}
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
    codec = target or task.target
    offered = {
        "vocabulary": codec.vocabulary,
        "features": codec.features,
        "hidden_size": getattr(decoder, "hidden_size", None),
        "decode": task.decode,
        "constraints": task.constraints,
    }
    objective: Objective = build_fitting("objectives", recipe["objective"], "objective", "task.target", offered, trust)
    call(objective.suit, "objective", {"task": task})
    return objective


def rehearse(recipe: Recipe, trust: bool = False) -> None:
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
        compares = getattr(import_module(f"seqloom.metrics.{name}"), "COMPARES", "symbols")
        refuse_misfits(task, compares, f"task.metrics = {show(name)}")
    build("search", recipe["search"], "search", trust)
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
    """Decoders with silent symbols are trained and searched in ways of their own."""
    objective, search = recipe["objective"]["type"], recipe["search"]["type"]
    if decoder.trained_by and objective not in decoder.trained_by:
        known = " or ".join(map(show, decoder.trained_by))
        raise SeqloomError(f"objective.type = {show(objective)}: this decoder is trained by {known}")
    part: Any = find("objectives", objective, "objective.type", trust)
    if part.needs and not hasattr(decoder, part.needs):
        able = " or ".join(show(name) for name, each in parts("decoders").items() if hasattr(each, part.needs))
        raise SeqloomError(f"objective.type = {show(objective)}: trains decoders of type {able} only")
    if bool(decoder.silent) != (search == "prefix_beam"):
        expected = '"prefix_beam"' if decoder.silent else "a search without silent symbols"
        raise SeqloomError(f"search.type = {show(search)}: this decoder needs {expected}")


CHOOSES = {"places": 'task.target.type = "places"', "copies": "task.copy = true", "": "a target of its own symbols"}


def refuse_choices(recipe: Recipe, task: Task, model: Model) -> None:
    """What is chosen from a source needs a decoder that does, and the other way round; both a state for each symbol."""
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
            f"encoder.type = {show(name)}: makes a state of {model.encoder.stride} symbols; "
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
    """Symbols and vectors are not measured alike."""
    if (found := made_of(task.target)) != compares:
        raise SeqloomError(f"{what}: compares {compares}, but task.target is made of {found}; choose another")


def build_fitting(folder: str, table: Recipe | str, key: str, codec_key: str, offered: Recipe, trust: bool) -> Any:
    """A part given as much of what is offered as its constructor asks for."""
    name = type_of(table)
    part = find(folder, name, f"{key}.type", trust)
    asked = {name for name, parameter in parameters(part).items() if is_derived(name, parameter)}
    works_on = [kind for fact, kind in OF.items() if fact in asked]
    if works_on and all(offered[fact] is None for fact in OF.keys() & asked):
        kinds = " and ".join(works_on)
        raise SeqloomError(f"{key}.type = {show(name)}: works on {kinds}, but the codec of {codec_key} has none")
    return build(folder, table, key, trust, **{name: offered[name] for name in asked & offered.keys()})


def type_of(table: Recipe | str) -> str:
    return table if isinstance(table, str) else table.get("type", "")


def refuse_own_parts(table: Recipe, key: str) -> None:
    """Say no at once to a recipe that names code outside Seqloom."""
    for name, value in table.items():
        if isinstance(value, dict):
            refuse_own_parts(value, under(key, name))
        elif name == "type" and ":" in str(value):
            raise untrusted(value, under(key, name))
