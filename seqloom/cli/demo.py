"""`seqloom demo`: dates in twelve languages, from nothing to an explained model in about two minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from seqloom.cli import options
from seqloom.errors import SeqloomError

TRAIN, TEST, SEED = 30_000, 2_000, 1
SHOWN = (
    "Friday, 13th of March 2026",
    "le 1er août 1999",
    "24.12.2031",
    "donnerstag, den 9. juli 2048",
    "[en-GB] 04/05/26",
)


@click.command()
@click.option("--out", type=options.FILE, default=Path("runs/dates"), help="The run folder to write.")
def demo(out: Path) -> None:
    """Train on dates in twelve languages, in about two minutes, and look at the result."""
    run_demo(out)


def write_dates(folder: Path) -> tuple[Path, Path]:
    """Generated pairs to train on and to test with; no string stands in both."""
    from seqloom.data.generators.catalogue import as_lines, make_examples

    folder.mkdir(parents=True, exist_ok=True)
    examples = make_examples("dates", TRAIN + TEST, SEED, {})
    files = folder / "dates-train.tsv", folder / "dates-test.tsv"
    for path, part in zip(files, (examples[:TRAIN], examples[TRAIN:]), strict=True):
        path.write_text(as_lines(part), encoding="utf-8")
    return files


def run_demo(out: Path) -> None:
    """Generate, train, measure, explain, and say where everything is."""
    from seqloom.data.readers import read
    from seqloom.explain.page import page
    from seqloom.explain.terminal import render
    from seqloom.storage.run import Run
    from seqloom.train.fit import fit

    Run.refuse_existing(out)
    train, test = write_dates(out.parent / "data")
    print(f"Generated {TRAIN:,} dates to train on ({train}) and {TEST:,} others to test with.", file=sys.stderr)
    model = fit([str(train)], "dates", out=out)
    if model.summary is None or model.summary.stopped == "interrupted":
        raise SeqloomError(f"the demo was interrupted; continue with: seqloom train --resume --out {out}")
    results = model.evaluate(read([str(test)]))
    print()
    for source, answer in zip(SHOWN, model.predict(SHOWN), strict=True):
        print(f"{source:32} -> {answer}")
    explanation = model.explain(SHOWN[0])
    picture = out / "explain.html"
    picture.write_text(page(explanation), encoding="utf-8")
    print()
    print(render(explanation, width=100, colour=sys.stdout.isatty()))
    print()
    minutes = model.summary.seconds / 60
    print(f"Exact match on {TEST:,} held-out dates: {results['exact']:.2f} % after {minutes:.1f} minutes of training.")
    print(f"The run is in {out}, the page that explains an answer is {picture}.")
    print(f'Now try: echo "Friday, 13th of March 2026" | seqloom predict {out}')
