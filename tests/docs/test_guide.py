"""Quotations in the guide that can be checked without training: recipes, their keys and their defaults."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.discovery import parameters, parts
from seqloom.config.recipes import describe, override, packaged, read_recipe
from seqloom.errors import SeqloomError
from seqloom.studies.catalogue import STUDIES

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guide"
RECIPES = (GUIDE / "recipes.md").read_text(encoding="utf-8")
KINDS = {
    "search": "search",
    "encoder": "encoders",
    "decoder": "decoders",
    "cell": "cells",
    "attention": "attention",
    "objective": "objectives",
}
ROWS = re.findall(
    rf"^\| `?({'|'.join(KINDS)})`? `(\w+)` \| (.*) \|$",
    RECIPES + (GUIDE / "objectives.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
ERRORS = [
    quoted
    for page in sorted(GUIDE.glob("*.md"))
    for quoted in re.findall(r"^\$ seqloom check (.+)\nseqloom: (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_a_quoted_error_of_check_is_the_error(arguments, message):
    recipe, *settings = shlex.split(arguments)
    with pytest.raises(SeqloomError) as caught:
        check_recipe(complete(override(read_recipe(recipe), settings[1::2]), recipe))
    assert str(caught.value) == message


def test_the_list_of_recipes_is_what_the_command_prints():
    width = max(map(len, packaged()))
    lines = [f"{name:{width}}  {describe(path)}" for name, path in packaged().items()]
    assert "\n".join(["$ seqloom recipes", *lines, "```"]) in RECIPES


def keys_of(table: dict[str, Any]) -> set[str]:
    return set(table).union(*(keys_of(value) for value in table.values() if isinstance(value, dict)))


def test_the_recipe_with_every_key_is_the_packaged_one_and_has_every_key():
    (text,) = re.findall(r"^```toml\n(# Letters to phonemes.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)
    full = complete(read_recipe("g2p-lstm"), "g2p-lstm")
    assert complete(tomllib.loads(text), "guide") == full
    assert keys_of(full) - set(re.findall(r"(\w+)(?: =|\])", text)) == set()


@pytest.mark.parametrize(("kind", "name", "keys"), ROWS, ids=lambda value: value[:20])
def test_the_table_of_parts_has_the_defaults_of_their_constructors(kind, name, keys):
    known = parameters(parts(KINDS[kind])[name])
    quoted = {key: tomllib.loads(f"value = {value}")["value"] for key, value in re.findall(r"`(\w+) = ([^`]+)`", keys)}
    for key, value in quoted.items():
        default = known[key].default
        assert (list(default) if isinstance(default, tuple) else default) == value, key
    if "the same" not in keys:
        plain = {key for key, each in known.items() if isinstance(each.default, (int, float, str))}
        assert {key for key in plain if f"`{key}" not in keys} <= {"vocabulary", "features"}


def test_every_part_that_a_recipe_can_name_is_in_the_table_or_written_out():
    rows = {(kind, name) for kind, name, _ in ROWS}
    for kind, folder in KINDS.items():
        left = {name for name in parts(folder) if (kind, name) not in rows}
        assert left <= {"recurrent", "beam", "marginal", "squared_error", "likelihood"}, kind


def test_every_study_has_a_note():
    notes = (GUIDE.parent / "results-notes.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (\S+)$", notes, re.MULTILINE)) == set(STUDIES)


OBJECTIVES = re.findall(
    r"^\| `(\w+)` \|", (GUIDE / "objectives.md").read_text(encoding="utf-8").partition("## ")[0], re.MULTILINE
)


def check_with(recipe: str, objective: str, *settings: str) -> None:
    ranked = ["search.rank_by=last", "search.coverage_penalty=0.0"] if objective == "margin" else []
    full = complete(override(read_recipe(recipe), [f"objective.type={objective}", *ranked, *settings]), recipe)
    check_recipe(full)


def test_the_first_eleven_objectives_train_decoders_that_read_their_whole_source():
    assert len(OBJECTIVES) >= 11
    for objective in OBJECTIVES[:11]:
        for recipe, metric in (("g2p-small", "per"), ("g2p-transformer", "exact"), ("gnmt", "bleu")):
            check_with(recipe, objective, f"train.select_by={metric}")


@pytest.mark.parametrize("recipe", ["speech-transducer", "speech-ctc", "g2p-ssnt"])
def test_transducers_take_marginal_alone(recipe):
    check_with(recipe, "marginal")
    for objective in {*parts("objectives")} - {"marginal", "margin", "squared_error", "likelihood"}:
        with pytest.raises(SeqloomError, match=r'take objective.type = "marginal"'):
            check_with(recipe, objective)


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES[:11] if name not in ("cross_entropy", "raml")])
def test_heads_refuse_objectives_that_write_token_by_token(objective):
    with pytest.raises(SeqloomError, match=r"answers at once|not running text or single answers"):
        check_with("labels", objective, "train.select_by=accuracy")
