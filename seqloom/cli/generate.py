"""`seqloom generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError


@click.command()
@options.runs
@options.task
@click.option("--source", help="What to write for, where the run reads a source, such as a class.")
@click.option("--prefix", help="Text to continue from.")
@click.option("--count", type=click.IntRange(min=1), default=1, help="How many texts, pictures or series.")
@click.option("--temperature", type=float, help="Below 1 safer, above 1 more varied.")
@click.option("--top-k", type=click.IntRange(min=0), help="Draw from the k likeliest tokens only.")
@click.option("--top-p", type=float, help="Draw from the likeliest tokens of this joint probability.")
@click.option("--argmax-every", type=click.IntRange(min=0), help="Every n-th token is the likeliest.")
@click.option("--maximum-length", type=click.IntRange(min=1), help="Tokens at most, the prefix included.")
@click.option("--seed", type=int, help="For the same texts again.")
@click.option(
    "--out",
    type=options.FILE,
    help="The file to write: pictures in one .png; music as .mid, signals as .wav, where several are numbered.",
)
@options.geometric
@options.device
@options.threads()
@options.trust
def generate(
    runs: tuple[Path, ...],
    task: str,
    source: str | None,
    prefix: str | None,
    count: int,
    geometric: bool,
    device: str,
    threads: int,
    trust: bool,
    out: Path | None,
    **given: Any,
) -> None:
    """Generate texts, pictures, music or signals with a language model."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor
    from seqloom.storage.files import replace_file
    from seqloom.types import Example

    choose_threads(threads)
    model = Predictor.load(runs, device, trust, "geometric" if geometric else "arithmetic", task)
    chosen = {name: value for name, value in given.items() if value is not None}
    codec = model.task.target
    if out is not None:
        options.check_file(out, f"new{codec.suffix or '.txt'}")
        if codec.suffix and out.suffix.lower() != codec.suffix:
            raise SeqloomError(f"--out {out}: this run writes {codec.suffix} files; expected a name that ends so")
    if source is not None:
        options.note_unknown(model, [Example(source, None)], scored=False)
    found = model.generate(count, source=source, prefix=prefix, **chosen)
    lines = [each if isinstance(each, str) else codec.line(each) for each in found]
    if out is None:
        for line in lines:
            print(line)
        return
    if not codec.suffix:
        replace_file(out, "".join(f"{line}\n" for line in lines).encode())
        note(f"{count:,} texts are in {out}.")
        return
    if (together := codec.side_by_side(found)) is not None:
        replace_file(out, codec.to_file(together))
        note(f"{out} shows {count:,} side by side." if count > 1 else f"{out} is written.")
        return
    for number, value in enumerate(found, start=1):
        path = out if count == 1 else out.with_stem(f"{out.stem}-{number}")
        replace_file(path, codec.to_file(value))
        note(f"{path} has {len(codec.encode(value)):,} steps.")
