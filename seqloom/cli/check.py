"""`seqloom check` and `seqloom recipes`."""

from __future__ import annotations

import click

from seqloom.cli import options


@click.command()
@click.argument("recipe")
@options.settings
@options.trust
def check(recipe: str, settings: tuple[str, ...], trust: bool) -> None:
    """Check a recipe and print it with every default filled in."""
    import tomli_w

    from seqloom.config.check import check_recipe
    from seqloom.config.complete import complete
    from seqloom.config.recipes import override, read_recipe

    full = complete(override(read_recipe(recipe, trust), list(settings)), recipe, trust)
    check_recipe(full, trust)
    print(tomli_w.dumps(full), end="")


@click.command()
def recipes() -> None:
    """List the recipes that come with Seqloom."""
    from seqloom.config.recipes import describe, packaged

    found = packaged()
    width = max(map(len, found))
    for name, path in found.items():
        print(f"{name:{width}}  {describe(path)}")
