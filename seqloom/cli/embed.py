"""`seqloom embed` and `seqloom similar`: vectors of lines, and the lines nearest to another."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.cli.predict import chunks
from seqloom.errors import SeqloomError

pooling = click.option(
    "--pooling", default="mean", help="mean of the encoder's states, first of them, or max of each component."
)


@click.command()
@options.run
@options.task
@pooling
@click.option("--normalise", is_flag=True, help="Vectors of length 1.")
@click.option("--out", type=options.FILE, help="The .npy to write, instead of stdout.")
@options.limits
@options.device
@options.threads()
@options.trust
def embed(
    run: Path,
    task: str,
    pooling: str,
    normalise: bool,
    out: Path | None,
    truncate: bool,
    max_characters: int | None,
    device: str,
    threads: int,
    trust: bool,
) -> None:
    """A vector for each line of stdin, as an array of NumPy (float32): with --out a file, else on stdout."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor
    from seqloom.storage.files import replace_file

    if out is not None:
        options.check_file(out, "vectors.npy")
        if out.suffix != ".npy":
            raise SeqloomError(f"--out {out}: expected a name that ends with .npy")
    elif sys.stdout.isatty():
        raise SeqloomError("vectors are not for a terminal: name a file with --out vectors.npy, or redirect the output")
    choose_threads(threads)
    model = Predictor.load([run], device, trust, task=task)
    options.set_limit(model, max_characters)
    vectors = model.embed(
        lines_of(sys.stdin.buffer, model, truncate), pooling=pooling, normalise=normalise, truncate=truncate
    )
    file = io.BytesIO()
    np.save(file, vectors)
    if out is None:
        sys.stdout.buffer.write(file.getvalue())
        return
    replace_file(out, file.getvalue())
    note(f"{out} has {len(vectors):,} vectors of {vectors.shape[1]:,} components.")


@click.command()
@options.run
@options.task
@click.argument("text", required=False)
@click.option("--data", type=options.FILE, required=True, help="The lines to search in.")
@click.option("--n-best", type=click.IntRange(min=1), default=5, help="How many lines.")
@pooling
@options.limits
@options.device
@options.threads()
@options.trust
def similar(
    run: Path,
    task: str,
    text: str | None,
    data: Path,
    n_best: int,
    max_characters: int | None,
    device: str,
    threads: int,
    trust: bool,
    **given: Any,
) -> None:
    """The lines of a file that are nearest to TEXT, with the cosine of their vectors.

    Without TEXT to each line of stdin.
    """
    from seqloom.compute.threads import choose_threads
    from seqloom.data.lines import open_file
    from seqloom.inference.embedding import nearest_of
    from seqloom.predictor import Predictor

    choose_threads(threads)
    model = Predictor.load([run], device, trust, task=task)
    options.set_limit(model, max_characters)
    with open_file(str(data)) as file:
        lines = [line for line in lines_of(file, model, given["truncate"], str(data)) if line.strip()]
    if not lines:
        raise SeqloomError(f"{data} has no lines; expected at least one text")
    vectors = model.embed(lines, normalise=True, **given)
    queries = [text] if text is not None else lines_of(sys.stdin.buffer, model, given["truncate"])
    for query, own in zip(queries, model.embed(queries, normalise=True, **given)):
        if text is None:
            print(query)
        for cosine, number in nearest_of(own, vectors, n_best):
            print(f"{cosine:7.4f}  {lines[number]}")


def lines_of(stream: Any, model: Any, truncate: bool, name: str = "standard input") -> list[str]:
    return [line for lines in chunks(stream, model.max_characters, truncate, name=name) for line in lines]
