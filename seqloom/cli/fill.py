"""`seqloom fill`: what may stand in the places of [MASK]."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from seqloom.cli import options
from seqloom.cli.predict import chunks


@click.command()
@options.run
@options.task
@click.argument("text", required=False)
@click.option("--n-best", type=click.IntRange(min=1), default=5, help="How many words for each place.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines with the words and their probabilities.")
@options.device
@options.threads()
@options.trust
def fill(
    run: Path, task: str, text: str | None, n_best: int, as_json: bool, device: str, threads: int, trust: bool
) -> None:
    """Find the words that a text has masked.

    TEXT has [MASK] where a word is to be found; without it, one text per line is read from stdin.
    """
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor

    choose_threads(threads)
    model = Predictor.load([run], device, trust, task=task)
    given = chunks(sys.stdin.buffer, model.max_characters) if text is None else [[text]]
    for line in (line for lines in given for line in lines):
        found = model.fill(line, n_best=n_best)
        if as_json:
            print(json.dumps({"text": found.text, "candidates": found.candidates}, ensure_ascii=False))
            continue
        print(found.text)
        for place, candidates in enumerate(found.candidates, start=1):
            words = "  ".join(f"{word} {share:.1%}" for word, share in candidates)
            print(f"  {f'{place}. ' if len(found.candidates) > 1 else ''}{words}")
