"""`seqloom data`."""

from __future__ import annotations

from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.messages import note


@click.command()
@click.argument("name", required=False)
@click.option("--out", type=options.FILE, help="The file to write; by default standard output.")
@click.option("--count", type=click.IntRange(min=1), default=10_000, help="How many examples.")
@click.option("--seed", type=click.IntRange(min=0), default=1, help="For the same examples again.")
@click.option(
    "--skip", type=click.IntRange(min=0), default=0, help="Skip this many first, for examples that differ from theirs."
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the generator.")
def data(name: str | None, out: Path | None, count: int, seed: int, skip: int, settings: tuple[str, ...]) -> None:
    """Generate data: dates, sums, hulls, tours and more. Without NAME, list the generators."""
    from seqloom.config.recipes import override
    from seqloom.data.generators.catalogue import as_lines, list_generators, make_examples, write_examples

    if name is None:
        list_generators()
        return
    examples = make_examples(name, count, seed, override({}, list(settings)), skip)
    if out is None:
        print(as_lines(examples), end="")
        return
    options.check_file(out, "pairs.tsv")
    write_examples(out, examples, skip)
    note(f"{count:,} examples are in {out}.")
