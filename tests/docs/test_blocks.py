"""Commands, programs and recipes printed in the README and the guide work, and print what the page says.

See pages.py for what a page may ask for. Trainings make two updates here (fast.py).
"""

from __future__ import annotations
import __future__

import os
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, packaged, read_recipe
from seqloom.errors import SeqloomError
from tests.docs.fast import make_fast
from tests.docs.pages import PAGES, ROOT, RUN, Block, blocks, matches, same_keys

CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["SEQLOOM_SERVER"])
    socket.send_fds(server, [json.dumps([sys.argv[1:], os.getcwd()]).encode()], [0, 1, 2])
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""
MICROPHONE = f"""#!{sys.executable} -IS
import sys, wave
with wave.open(sys.stdout.buffer, "wb") as sound:
    sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(8000)
    sound.writeframes(bytes(8000))
"""
NOT_RUN = 8  # blocks of all pages that may be left out


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where `seqloom` is a client of a server that has everything imported, and `arecord` half a second of silence."""
    folder = tmp_path_factory.mktemp("bin")
    for name, program in (("seqloom", CLIENT), ("arecord", MICROPHONE)):
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    address = str(folder / "server")
    known = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SEQLOOM_SERVER": address}
    known |= {"OMP_NUM_THREADS": "1", "SEQLOOM_CACHE": str(folder / "cache"), "LC_ALL": "C.UTF-8"}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "tests.docs.server", address]
    with subprocess.Popen(command, cwd=ROOT, env={**known, "PYTHONPATH": path}) as server:
        deadline = time.monotonic() + 120
        while not Path(address).exists():
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield known
        server.terminate()


def shell(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A script in the current folder; both outputs together."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    command = ["bash", "-e", "-c", script]
    return subprocess.run(command, env=environment, **streams, text=True, check=False, timeout=300)


def run_console(block: Block, environment: dict[str, str]) -> None:
    for command, expected in block.commands:
        done = shell(command, environment)
        fails = any(line.startswith(("seqloom: ", "FAIL ")) for line in expected)
        assert (done.returncode != 0) == fails, f"{block}: $ {command}\n{done.stdout}"
        if block.mark == "outputs vary":
            assert same_keys(expected, done.stdout), f"{block}: $ {command}\n{done.stdout}"
        elif expected:
            assert matches(expected, done.stdout), f"{block}: $ {command} prints\n{done.stdout}"


def run_python(block: Block, names: dict[str, Any]) -> None:
    lines = "\n" * block.line + block.text  # so that a traceback names the line of the page
    try:
        code = compile(lines, block.page, "exec", flags=__future__.annotations.compiler_flag)
        exec(code, names)
    except Exception:
        pytest.fail(f"{block}\n{traceback.format_exc(limit=-3)}")


def check_toml(block: Block) -> None:
    """A whole recipe, or keys that some packaged recipe can take."""
    table = tomllib.loads(block.text)
    complaints = []
    for name in ("", *packaged()):
        try:
            given = override(read_recipe(name), table) if name else table
            check_recipe(complete(given, str(block)))
        except SeqloomError as error:
            complaints.append(str(error))
        else:
            return
    pytest.fail(f"{block}: neither a recipe nor keys that a packaged one takes: {'; '.join(complaints[:3])}")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_work(
    page: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SEQLOOM_CACHE", environment["SEQLOOM_CACHE"])
    make_fast(monkeypatch.setattr)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.mark == "not run" or block.language not in RUN:
            continue
        if block.mark == "file":
            Path(block.reason).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            run_console(block, environment)
        elif block.language == "sh":
            done = shell(block.text, environment)
            assert done.returncode == 0, f"{block}\n{done.stdout}"
        elif block.language == "python":
            run_python(block, names)
        else:
            check_toml(block)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left = [block for page in PAGES for block in blocks(page) if block.mark == "not run"]
    assert len(left) <= NOT_RUN, "\n".join(f"{block}: {block.reason}" for block in left)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_hides_in_a_block_that_is_not_run(page: Path) -> None:
    hidden = [
        str(block) for block in blocks(page) if block.language not in RUN and block.text.startswith(("$ ", "seqloom "))
    ]
    assert hidden == [], "call these blocks console or sh"


# -- the runner itself


def test_outputs_are_compared_line_by_line_and_dots_stand_for_anything() -> None:
    assert matches(["a ... c", "...", "d"], "a bb c\nx\ny\nd\n")
    assert matches(["a", "...", "d"], "a\nd\n")
    assert not matches(["a", "d"], "a\nx\nd\n")
    assert not matches(["a.c"], "abc\n")
    assert same_keys(['{"exact": 93.8, "cer": 1.06}'], 'note\n{"exact": 0.0, "cer": 80.0}\n')
    assert not same_keys(['{"exact": 93.8, "cer": 1.06}'], '{"exact": 0.0}\n')


def test_a_page_is_read_with_its_marks_hidden_blocks_and_continued_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n<!--\n```sh\ntouch hidden\n```\n-->\n<!-- not run: it is red -->\n\n```sh\nexit 1\n```\n"
        "- in a list\n\n  ```console\n  $ for x in 1 2; do\n  > echo $x; done\n  1\n  2\n  $ true\n  ```\n"
    )
    hidden, red, console = blocks(page)
    assert (hidden.text, hidden.mark, hidden.line) == ("touch hidden\n", "", 3)
    assert (red.mark, red.reason) == ("not run", "it is red")
    assert console.commands == [("for x in 1 2; do\necho $x; done", ["1", "2"]), ("true", [])]
