"""`seqloom check` and `seqloom recipes`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.errors import printable


@click.command()
@click.argument("recipe", metavar="RECIPE|MODULE:CLASS")
@options.settings
@options.trust
def check(recipe: str, settings: tuple[str, ...], trust: bool) -> None:
    """Check a recipe, or a part of your own.

    A recipe is printed with every default filled in. A part outside Seqloom, MODULE:CLASS, is put through the contract
    tests of its kind (needs --trust); --set gives arguments of its constructor.
    """
    if ":" in recipe and not Path(recipe).exists():
        check_own_part(recipe, settings, trust)
        return
    import tomli_w

    from seqloom.config.check import check_recipe
    from seqloom.config.complete import complete
    from seqloom.config.recipes import override, read_recipe

    full = complete(override(read_recipe(recipe, trust), settings), recipe, trust)
    check_recipe(full, trust)
    print("\n".join(map(printable, tomli_w.dumps(full).split("\n"))), end="")  # escapes are TOML, too


def check_own_part(name: str, settings: tuple[str, ...], trust: bool) -> None:
    """Print what the contract tests find; exit code 2 if one fails."""
    from seqloom.config.discovery import import_own
    from seqloom.config.recipes import override

    part = import_own(name, "part", trust)
    from seqloom.testing import examine

    report = examine(part, **override({}, settings))
    print(report)
    if report.failed:
        raise click.exceptions.Exit(2)


@click.command()
def recipes() -> None:
    """List the recipes that come with Seqloom."""
    from seqloom.config.recipes import describe, packaged

    found = packaged()
    width = max(map(len, found))
    for name, path in found.items():
        print(f"{name:{width}}  {describe(path)}")
