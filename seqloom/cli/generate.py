"""`seqloom generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from seqloom.cli import options


@click.command()
@options.runs
@options.task
@click.option("--prefix", help="Text to continue from.")
@click.option("--count", type=click.IntRange(min=1), default=1, help="How many texts.")
@click.option("--temperature", type=float, help="Below 1 safer, above 1 more varied.")
@click.option("--top-k", type=click.IntRange(min=0), help="Draw from the k likeliest tokens only.")
@click.option("--top-p", type=float, help="Draw from the likeliest tokens of this joint probability.")
@click.option("--argmax-every", type=click.IntRange(min=0), help="Every n-th token is the likeliest.")
@click.option("--maximum-length", type=click.IntRange(min=1), help="Tokens at most, the prefix included.")
@click.option("--seed", type=int, help="For the same texts again.")
@options.geometric
@options.device
@options.threads()
@options.trust
def generate(
    runs: tuple[Path, ...],
    task: str,
    prefix: str | None,
    count: int,
    geometric: bool,
    device: str,
    threads: int,
    trust: bool,
    **given: Any,
) -> None:
    """Generate texts with a language model."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor

    choose_threads(threads)
    model = Predictor.load(runs, device, trust, "geometric" if geometric else "arithmetic", task)
    chosen = {name: value for name, value in given.items() if value is not None}
    for text in model.generate(count, prefix=prefix, **chosen):
        print(text)
