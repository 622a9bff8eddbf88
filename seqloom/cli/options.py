"""Options that several verbs share, each defined once, and what is done with their values."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seqloom.cli.messages import note
from seqloom.errors import SeqloomError

Decorator = Callable[[Any], Any]
FILE = click.Path(path_type=Path)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which help lists them."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def import_from_here(ctx: click.Context, option: click.Parameter, trust: bool) -> bool:
    """Parts of one's own are imported from the working folder too, which an installed command does not do by itself."""
    if trust and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return trust


run = click.argument("run", type=FILE)
runs = click.argument("runs", type=FILE, nargs=-1, required=True)
out = click.option("--out", type=FILE, help="The run folder to write.")
pictures = click.option(
    "--out", type=FILE, multiple=True, help="The picture to write, PNG or SVG; may be given several times."
)
data = click.option(
    "--data",
    type=FILE,
    multiple=True,
    help="Pairs: TSV, CSV, JSONL, JSON or Parquet, - for stdin, or given twice, two line-aligned files; also .gz.",
)
columns = together(
    click.option(
        "--columns",
        "--keys",
        "columns",
        metavar="SOURCE,TARGET",
        callback=lambda context, option, text: split_columns(text),
        help="Columns of a table, or keys of JSON, by name or by number from 1.",
    ),
    click.option("--header/--no-header", default=None, help="Whether line 1 of a TSV or CSV file names its columns."),
)
settings = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a key of the recipe.")
skip_bad = click.option("--skip-bad", is_flag=True, help="Skip bad lines and count them.")
trust = click.option(
    "--trust",
    is_flag=True,
    callback=import_from_here,
    help="Run code that is not Seqloom's (module:Class parts), also from this folder.",
)
task = click.option("--task", default="", metavar="NAME", help="Which task is meant, of a run that has several.")
device = click.option("--device", default="auto", help="cpu, cuda, mps or auto.")
geometric = click.option("--geometric", is_flag=True, help="Average several runs by the geometric mean.")
beam_size = click.option("--beam-size", type=int, help="Hypotheses kept per source; 1 is greedy search.")
n_best = click.option("--n-best", type=int, help="Outputs per source.")
wait = click.option(
    "--wait", type=click.IntRange(min=1), help="Write while reading: k tokens behind the source (wait-k)."
)
replace_unknown = click.option(
    "--replace-unknown", is_flag=True, help="Replace unknown words by the source words with the most attention."
)

max_characters = click.option(
    "--max-characters",
    type=click.IntRange(min=1, max=100_000_000),
    help="Characters of a source or line at most; by default as in training (data.max_characters).",
)
truncate = click.option("--truncate", is_flag=True, help="Cut sources that are too long instead of refusing them.")
limits = together(truncate, max_characters)


def threads(default: int = 0) -> Decorator:
    about = "CPU threads; 0 measures which number is fastest (exported models take 1)."
    return click.option("--threads", type=click.IntRange(min=0), default=default, help=about)


helpers = together(  # other runs that help to choose an output
    click.option("--lm", type=FILE, help="A language model that scores every token too (shallow fusion)."),
    click.option("--lm-weight", type=float, help="Its weight, by default 0.3."),
    click.option("--channel", type=FILE, help="A run trained the other way round: outputs must explain their source."),
    click.option("--channel-weight", type=float, help="Its weight, by default 0.5."),
    click.option("--length-bonus", type=float, help="With --channel: a bonus for each token of an output."),
    click.option(
        "--rescore", type=FILE, help="A run that ranks the outputs of the beam again: a language model or a channel."
    ),
    click.option("--rescore-weight", type=float, help="Its weight, by default 0.3."),
)


def set_limit(model: Any, characters: int | None) -> None:
    """Take --max-characters for the limit of all sources."""
    if characters is not None:
        model.max_characters = characters


def paths(given: tuple[Path, ...]) -> list[str] | None:
    """The files of --data, if there are any; of several tasks they are NAME=FILE."""
    if len(given) > 2 and not all("=" in str(path) for path in given):
        raise SeqloomError(f"{len(given)} files were given; expected one file of pairs or two line-aligned files")
    return [str(path) for path in given] or None


def split_columns(text: str | None) -> list[str | int] | None:
    """ "text,label" or "1,3" as a list. A name with a comma is put in double quotes, as in CSV."""
    if text is None:
        return None
    cells = [cell.strip() for cell in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(cells) or not cells:
        raise SeqloomError(f'--columns "{text}": expected names or numbers with commas between, such as text,label')
    return [int(cell) if cell.isdecimal() and len(cell) < 10 else cell for cell in cells]


def layout(data: tuple[Path, ...], columns: list[str | int] | None, header: bool | None) -> dict[str, Any]:
    """The options of `columns` as arguments; two aligned files have none to choose."""
    if len(data) == 2 and (columns or header is not None):
        raise SeqloomError("--columns, --header: two aligned files have one column each; leave the options out")
    return {"columns": columns, "header": header}


def check_file(out: Path, such_as: str) -> None:
    """Refuse a file that cannot be written, before anything is computed for it."""
    if not out.parent.is_dir():
        raise SeqloomError(f"{out}: there is no folder {out.parent}; make it, or choose another --out")
    if out.is_dir():
        raise SeqloomError(f"{out} is a folder; expected the name of a file, such as {out / such_as}")


def search_settings(assignments: tuple[str, ...], beam_size: int | None = None) -> dict[str, Any]:
    """ "length_penalty=0.6" or "search.length_penalty=0.6" as settings of the search."""
    from seqloom.config.recipes import override

    named = [each if each.startswith("search.") else f"search.{each}" for each in assignments]
    found = dict(override({}, named).get("search", {}))
    return found if beam_size is None else {**found, "beam_size": beam_size}


def loaded_helpers(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Takes the options of `helpers` out of `given`: the runs, loaded once, and their weights."""
    found: dict[str, Any] = {}
    for name in ("lm", "channel", "rescore"):
        run, weight = given.pop(name), given.pop(f"{name}_weight")
        if run is None and weight is not None:
            raise SeqloomError(f"--{name}-weight = {weight}: there is nothing to weigh; give a run with --{name}")
        if run is not None:
            from seqloom.inference.loading import load_system  # imports torch

            place = getattr(model, "device", None)
            found[name] = load_system(run, place.type if place else "cpu", model.system.trust)
            found |= {} if weight is None else {f"{name}_weight": weight}
    if (bonus := given.pop("length_bonus")) is not None:
        if "channel" not in found:
            raise SeqloomError(f"--length-bonus = {bonus}: goes with a noisy channel; give a run with --channel")
        found["length_bonus"] = bonus
    return found


def read_examples(
    model: Any, data: tuple[Path, ...], skip_bad: bool, columns: list[str | int] | None, header: bool | None
) -> list[Any]:
    """The examples of --data, or of stdin; bad ones that were skipped are counted."""
    from seqloom.data.readers import Tally

    tally, chosen = Tally(), layout(data, columns, header)
    found = list(model.examples(paths(data) or ["-"], skip_bad=skip_bad, tally=tally, **chosen))
    if tally.skipped:
        note(tally.sentence("bad"))
    return found


def note_unknown(model: Any, examples: list[Any], scored: bool) -> None:
    """Say how many sources, and targets that were scored, have tokens that are not in the vocabulary."""
    from seqloom.inference.system import has_unknown_source, has_unknown_target

    system, count = model.system, len(examples)
    if system.task.given is not None:
        number = sum(has_unknown_source(system, each.source) for each in examples)
        if number:
            note(f"{number:,} of {count:,} sources have tokens that this model has never seen.")
    if scored and (number := sum(has_unknown_target(system, each) for each in examples)):
        note(f"{number:,} of {count:,} targets have tokens that are not in the vocabulary: they count as <unk>.")


def picture_paths(out: tuple[Path, ...]) -> list[Path]:
    """The pictures of --out, refused before anything is computed for them."""
    from seqloom.analysis import plot

    plot.check(out)
    return list(out)
