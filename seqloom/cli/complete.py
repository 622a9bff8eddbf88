"""`seqloom complete`: the rest of a picture or of a film, drawn pixel by pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError


@click.command()
@options.run
@click.argument("picture", type=options.FILE)
@options.task
@click.option(
    "--keep", help='What is kept: "top", "left", or a mask, a picture that is white there; of a film so many frames.'
)
@click.option("--source", help="What to write for, where the run reads a source, such as a class.")
@click.option("--count", type=click.IntRange(min=1), default=8, help="How many completions.")
@click.option("--temperature", type=float, help="Below 1 safer, above 1 more varied.")
@click.option("--seed", type=int, help="For the same completions again.")
@click.option(
    "--out",
    type=options.FILE,
    required=True,
    help="The .png or .gif to write: the picture or film, what is kept, the rest.",
)
@options.device
@options.threads()
@options.trust
def complete(
    run: Path,
    picture: Path,
    task: str,
    keep: str | None,
    source: str | None,
    count: int,
    out: Path,
    device: str,
    threads: int,
    trust: bool,
    **given: Any,
) -> None:
    """Complete a picture or a film, several times, with the log-probability of each completion."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor
    from seqloom.storage.files import replace_file
    from seqloom.types import Example

    choose_threads(threads)
    model = Predictor.load([run], device, trust, task=task)
    codec = model.task.target
    options.check_file(out, f"completed{codec.suffix or '.png'}")
    if codec.canvas is not None and out.suffix.lower() != codec.suffix:
        raise SeqloomError(f"--out {out}: expected a name that ends with {codec.suffix}")
    if out.resolve() in {Path(each).resolve() for each in (picture, keep or "") if each}:
        raise SeqloomError(f"--out {out}: this is what is read; choose another name")
    if source is not None:
        options.note_unknown(model, [Example(source, None)], scored=False)
    chosen = {name: value for name, value in given.items() if value is not None}
    kept, (whole, *found) = model.complete(str(picture), keep=keep, count=count, source=source, **chosen)
    replace_file(out, codec.to_file(codec.side_by_side([whole.value, kept, *(each.value for each in found)])))
    what = "picture" if codec.frames is None else "film"
    print(f"{f'the {what} itself':18}  {whole.log_prob:10.3f}")
    for number, each in enumerate(found, start=1):
        print(f"completion {number:<8} {each.log_prob:10.3f}")
    note(f"{out} shows the {what}, what is kept, and {count:,} completion{'s' * (count > 1)}.")
