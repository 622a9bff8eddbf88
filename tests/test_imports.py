"""Who may import whom. The table below is the rule; the syntax tree of every file is held against it.

    errors, arrays             nothing of ours
    types                      errors arrays
    plain_contracts            errors arrays types
    contracts                  these, plain_contracts
    files                      errors
    metrics                    errors, each other
    layers.dropout, .halting, .linear, .packing    these, contracts: the plain layers
    cells, attention           these, the plain layers, each its own folder
    data                       these but contracts, files
    layers                     these, cells attention
    encoders, decoders         these, layers; never each other
    model                      errors types contracts layers.linear: it is given its parts and knows none
    search                     errors arrays types plain_contracts: the Stepper contract, never a decoder
    simultaneous               errors types contracts layers model: a decoder around whatever decoder it is given
    objectives                 errors types contracts metrics model search data.symbols simultaneous, the plain layers
    tasks                      errors arrays types plain_contracts data search
    weights                    errors
    threads                    nothing of ours
    train                      errors types contracts data weights checkpoint threads
    parts                      errors plain_contracts contracts: it finds the rest by name
    explain.explanation        errors
    explain.terminal           these, explanation: what was explained is shown without a model
    explain.page               these, terminal
    explain.plot               errors files: the one file that knows matplotlib
    explain.table              nothing of ours
    config                     imported by the ends of the house only: cli, predict and so on

A folder may import from itself. What is imported inside a function or for type checking alone counts too: a name in
a signature is knowledge. What the table does not name may import what it likes, and none of the above imports it.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import seqloom

ROOT = Path(seqloom.__file__).parent
PLAIN = {"errors", "arrays", "types", "plain_contracts"}
BASE = PLAIN | {"contracts"}
LOW = BASE | {"cells", "attention", "layers"}
PLAIN_LAYERS = {"layers.dropout", "layers.halting", "layers.linear", "layers.packing"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "arrays": set(),
    "types": {"errors", "arrays"},
    "plain_contracts": {"errors", "arrays", "types"},
    "contracts": PLAIN,
    "files": {"errors"},
    "metrics": {"errors"},
    "cells": BASE | PLAIN_LAYERS,
    "attention": BASE | PLAIN_LAYERS,
    "data": PLAIN | {"files"},
    "layers": BASE | {"cells", "attention"},
    **dict.fromkeys(PLAIN_LAYERS, BASE),
    "encoders": LOW,
    "decoders": LOW,
    "model": BASE | {"layers.linear"},
    "search": PLAIN,
    "simultaneous": BASE | {"layers", "model"},
    "objectives": BASE | PLAIN_LAYERS | {"metrics", "model", "search", "data.symbols", "simultaneous"},
    "tasks": PLAIN | {"data", "search"},
    "weights": {"errors"},
    "threads": set(),
    "train": BASE | {"data", "weights", "checkpoint", "threads"},
    "parts": {"errors", "plain_contracts", "contracts"},
    "explain.explanation": {"errors"},
    "explain.page": {"errors", "explain.explanation", "explain.terminal"},
    "explain.plot": {"errors", "files"},
    "explain.table": set(),
    "explain.terminal": {"errors", "explain.explanation"},
}
MAY_IMPORT_CONFIG = {"answering", "awake", "checkpoint", "cli", "demo", "engines", "explain", "fitting", "predict"}
MAY_IMPORT_CONFIG |= {"reproducing", "serve"}


@cache
def modules() -> dict[str, Path]:
    """Every file of the package: {"cells.lstm": path, ...}."""
    paths = {path.relative_to(ROOT).with_suffix(""): path for path in sorted(ROOT.rglob("*.py"))}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in paths.items()}


def imported(source: str, name: str = "", is_package: bool = False) -> set[str]:
    """The modules of ours that a file imports anywhere: at its top, in a function, for type checking."""
    package = ["seqloom", *name.split(".")][: None if is_package else -1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return {each.removeprefix("seqloom.") for each in found if each.startswith("seqloom.")}


@cache
def imports_of(name: str) -> set[str]:
    path = modules()[name]
    return imported(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")


def is_within(name: str, part: str) -> bool:
    """Whether a name is a module or stands in it: "cells.lstm.LSTM" is within "cells"."""
    return name == part or name.startswith(f"{part}.")


def head(name: str) -> str:
    return name.split(".")[0]


@pytest.mark.parametrize("name", [name for name in modules() if head(name) in MAY_IMPORT or name in MAY_IMPORT])
def test_a_file_imports_only_what_stands_below_it(name):
    allowed = MAY_IMPORT[name] if name in MAY_IMPORT else MAY_IMPORT[head(name)] | {head(name)}
    broken = sorted(each for each in imports_of(name) if not any(is_within(each, part) for part in allowed))
    assert broken == [], f"{name} may import {sorted(allowed)} only"


@pytest.mark.parametrize("name", modules())
def test_only_the_ends_of_the_house_know_the_recipe(name):
    if head(name) not in MAY_IMPORT_CONFIG:
        assert not [each for each in imports_of(name) if head(each) == "config"]


@pytest.mark.parametrize("name", modules())
def test_only_one_file_knows_matplotlib(name):
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert any(head(each) == "matplotlib" for each in named) == (name == "explain.plot")


def test_the_table_names_what_exists():
    known = set(modules()) | {head(name) for name in modules()}
    assert set(MAY_IMPORT) <= known
    assert MAY_IMPORT_CONFIG - {"serve"} <= known


def test_no_import_goes_round_in_a_circle_at_the_top_of_files():
    """Imports inside functions may; those at the top would fail or depend on who came first."""
    known = set(modules())

    def at_top(name: str) -> set[str]:
        tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
        top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        found = imported("\n".join(map(ast.unparse, top)), name)
        return {part for each in found for part in (each, each.rpartition(".")[0]) if part in known}

    graph = {name: at_top(name) for name in known}
    while leaves := {name for name, needs in graph.items() if not needs & graph.keys()}:
        graph = {name: needs for name, needs in graph.items() if name not in leaves}
    assert graph == {}


def test_the_reader_of_imports_sees_every_way_to_import():
    source = """
import seqloom.config
from seqloom import model
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from seqloom.search.beam import BeamSearch
def late():
    from . import lstm
    from ..types import State
"""
    found = {"config", "model", "search.beam.BeamSearch", "cells.lstm", "types.State"}
    assert imported(source, "cells.gru") == found


@pytest.mark.parametrize("module", ["seqloom", "seqloom.cli", "seqloom.errors"])
def test_importing_stays_quick_and_leaves_torch_alone(module):
    program = f"import sys, {module}; print([name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_imports_nothing_that_takes_long():
    program = (
        "import sys; sys.argv = ['seqloom', '--help']\n"
        "from seqloom.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'numpy', 'pydantic', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "predict" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
