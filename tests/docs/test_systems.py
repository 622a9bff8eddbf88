"""docs/systems.md: a row for every packaged recipe, and no row that names what does not exist."""

import importlib.util
import shlex
import sys
from pathlib import Path

import pytest

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, packaged, read_recipe
from seqloom.studies.catalogue import STUDIES

ROOT = Path(__file__).parent.parent.parent
spec = importlib.util.spec_from_file_location("systems", ROOT / "docs" / "systems.py")
assert spec is not None
assert spec.loader is not None
systems = importlib.util.module_from_spec(spec)
sys.modules["systems"] = systems  # dataclasses look their module up
spec.loader.exec_module(systems)
ROWS = [system for subject in systems.subjects().values() for system in subject]


def test_every_packaged_recipe_has_a_row():
    assert set(packaged()) - {row.recipe for row in ROWS} == set()


def test_every_study_has_a_row():
    assert set(STUDIES) - {row.study for row in ROWS} == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_what_exists(row):
    assert (ROOT / "seqloom" / row.file).is_file()
    assert row.recipe in ("", *packaged())
    assert row.study in ("", *STUDIES)
    assert not row.study or not row.variant or row.variant in STUDIES[row.study].variants
    assert not row.image() or (ROOT / "docs" / "images" / row.image()).is_file()
    assert row.study or row.command or row.recipe
    assert row.row().count(" | ") == 7


@pytest.mark.parametrize("row", [row for row in ROWS if row.paper not in ("", "-")], ids=lambda row: row.name)
def test_the_paper_of_a_row_is_cited_in_its_file(row):
    assert any(row.paper in each for each in systems.citations(row.file))


@pytest.mark.parametrize("command", sorted({row.how().strip("`") for row in ROWS if " train " in row.how()}))
def test_a_training_command_names_a_recipe_that_fits(command):
    _, _, recipe, *rest = shlex.split(command)
    assert rest[::2] == ["--set"] * (len(rest) // 2)
    check_recipe(complete(override(read_recipe(recipe), rest[1::2]), recipe))


def test_the_page_is_what_the_script_writes():
    assert systems.PAGE.read_text(encoding="utf-8") == systems.page(), "run python docs/systems.py"
