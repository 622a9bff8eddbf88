"""Shell completion: the script that click makes for bash, zsh and fish, and where each shell looks for it."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from seqloom.cli.messages import note
from seqloom.errors import SeqloomError
from seqloom.storage.files import replace_file, saving


def shell() -> str:
    """The user's shell, by $SHELL."""
    name = Path(os.environ.get("SHELL", "")).name
    if name not in ("bash", "zsh", "fish"):
        raise SeqloomError(f"completion: unknown shell {name or '(no $SHELL)'}; expected bash, zsh or fish")
    return name


def script(app: click.Command, name: str = "") -> str:
    """The completion script of a shell."""
    kind = get_completion_class(name or shell())
    assert kind is not None
    return kind(app, {}, "seqloom", "_SEQLOOM_COMPLETE").source()


def install(app: click.Command) -> None:
    """Write the script where the shell finds it; bash and zsh get one line in their start-up file."""
    name, home = shell(), Path.home()
    if name == "fish":
        path = home / ".config" / "fish" / "completions" / "seqloom.fish"
    else:
        path = home / f".{name}_completions" / f"seqloom.{name}"
    with saving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, script(app, name).encode())
        if name != "fish":
            start, line = home / f".{name}rc", f'source "{path}"'
            text = start.read_text(encoding="utf-8") if start.exists() else ""
            if line not in text:
                with start.open("a", encoding="utf-8") as file:
                    file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n")
    note(f"Completion for {name} is in {path}. Open a new terminal to use it.")
