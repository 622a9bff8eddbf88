"""`seqloom explain`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError


@click.command()
@options.run
@options.task
@click.argument("text", required=False)
@click.option("--out", type=options.FILE, help="The page to write.")
@click.option("--truth", help='For points in the plane: the true places, drawn below the output, as "0 3 2 0".')
@click.option("--target", help="For a model of pixels: the picture or film to explain, else one is drawn.")
@options.n_best
@options.beam_size
@options.limits
@options.device
@options.threads()
@options.trust
def explain(
    run: Path,
    task: str,
    text: str | None,
    out: Path | None,
    truth: str | None,
    target: str | None,
    n_best: int | None,
    beam_size: int | None,
    truncate: bool,
    max_characters: int | None,
    device: str,
    threads: int,
    trust: bool,
) -> None:
    """Show why a run answers as it does, in the terminal and with --out on a page.

    TEXT is a source; a language model takes none.
    """
    from seqloom.compute.threads import choose_threads
    from seqloom.explain.page import page
    from seqloom.explain.terminal import render
    from seqloom.predictor import Predictor
    from seqloom.storage.files import replace_file

    if out is not None:
        options.check_file(out, "page.html")
        if target is not None and out.resolve() == Path(target).resolve():
            raise SeqloomError(f"--out {out}: this is what is read; choose another name, such as page.html")
    choose_threads(threads)
    model = Predictor.load(run, device, trust, task=task)
    options.set_limit(model, max_characters)
    given = {"truth": truth, "target": target}
    known: dict[str, Any] = {
        "truncate": truncate,
        **{name: value for name, value in given.items() if value is not None},
    }
    found = model.explain(text, n_best=n_best or 5, **known, **options.search_settings((), beam_size))
    if out is not None:
        replace_file(out, page(found).encode())
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else 100
    print(render(found, width=max(columns, 40), colour=sys.stdout.isatty()))
    if out is not None:
        note(f"The page is {out}.")
