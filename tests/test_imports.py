"""Which room may import from which. The order stands in docs/architecture.py; the syntax tree of every file counts."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("architecture", Path(__file__).parent.parent / "docs" / "architecture.py")
assert spec is not None
assert spec.loader is not None
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)


def test_a_room_imports_only_from_rooms_before_it():
    assert house.upward() == []


def test_no_modules_import_each_other_in_a_circle():
    assert house.cycles() == {}


def test_every_module_is_in_a_room_and_few_stand_at_the_top():
    names = set(house.modules())
    heads = {name.split(".")[0] for name in names} - set(house.ENDS)
    assert heads <= set(house.ROOMS)
    at_the_top = {path.stem for path in house.ROOT.glob("*.py")}
    assert len(at_the_top) <= 8, at_the_top


def test_only_one_file_knows_matplotlib():
    knows = set()
    for name, path in house.modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(each.split(".")[0] == "matplotlib" for each in named):
                knows.add(name)
    assert knows == {"analysis.plot"}


def test_the_picture_of_the_rooms_is_true():
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture(), "run python docs/architecture.py"


def test_the_reader_of_imports_sees_every_way_to_import():
    source = """
import seqloom.config
from seqloom import nn
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from seqloom.search.beam import BeamSearch
def late():
    from . import lstm
    from ...types import State
"""
    found = {"config", "nn", "search.beam.BeamSearch", "nn.cells.lstm", "types.State"}
    assert house.imported(source, "nn.cells.gru") == found


def test_importing_stays_quick_and_leaves_torch_alone():
    for module in ("seqloom", "seqloom.cli.main", "seqloom.errors"):
        program = (
            f"import sys, {module}; print([name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", module


def test_what_the_package_offers_is_listed_before_it_is_imported():
    program = "import sys, seqloom; print(*dir(seqloom)); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, torch_is_there = done.stdout.splitlines()
    assert {"Predictor", "SeqloomError", "__version__", "compare", "fit", "load", "testing"} <= set(names.split())
    assert torch_is_there == "False"


def test_help_imports_nothing_that_takes_long():
    program = (
        "import sys; sys.argv = ['seqloom', '--help']\n"
        "from seqloom.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'numpy', 'pydantic', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "predict" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
