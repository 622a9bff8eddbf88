"""The command line: seqloom VERB. One mistake, one line, exit code 2."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.errors import SeqloomError

app = typer.Typer(
    help="Sequence-to-sequence learning: from a file of pairs to a trained, explained, reusable model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Run = Annotated[Path, typer.Argument(help="A run folder, as `seqloom train` writes.")]
Data = Annotated[
    list[Path] | None,
    typer.Option("--data", help="Pairs: a TSV or JSONL file, - for stdin, or given twice two line-aligned files; also .gz."),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run code of the run's own (module:Class parts).")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Count bad lines and go on.")]
BeamSize = Annotated[int | None, typer.Option("--beam-size", help="Hypotheses kept; 1 is greedy.")]
NBest = Annotated[int, typer.Option("--n-best", help="Outputs a source.")]


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(help="A packaged recipe or a TOML file; without one the data decides.")] = None,
    data: Data = None,
    valid: Annotated[list[Path] | None, typer.Option("--valid", help="Validation pairs; without them some are held out.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to write.")] = None,
    settings: Set = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps or auto.")] = None,
    init: Annotated[Path | None, typer.Option(help="Start from the weights of a trained run.")] = None,
    skip_bad: SkipBad = False,
    trust: Trust = False,
) -> None:
    """Train a model on pairs."""
    from seqloom.fitting import fit
    from seqloom.train import processes

    if out is None:
        name = Path(recipe).stem if recipe else Path(data[0]).name.split(".")[0] if data else "run"
        out = Path("runs") / name
    changes = list(settings or [])
    for key, value in (("train.device", device), ("init", init)):
        if value is not None:
            changes.append(f"{key}={json.dumps(str(value))}")
    if skip_bad:
        changes.append("data.skip_bad=true")
    model = fit(paths(data), recipe, out=out, valid=paths(valid), settings=changes, resume=resume, trust=trust)
    if processes.is_lead():
        note(f"The run is in {out}. Try: echo ... | seqloom predict {out}")
    processes.end()
    if model.summary is not None and model.summary.stopped == "interrupted":
        note(f"Interrupted and saved. Continue with: seqloom train --resume --out {out}")
        raise typer.Exit(130)


@app.command()
def predict(
    run: Run,
    n_best: NBest = 1,
    beam_size: BeamSize = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines with scores and tokens.")] = False,
    attention: Annotated[bool, typer.Option("--attention", help="With --json: where each output looked.")] = False,
    prefix: Annotated[str | None, typer.Option(help="Every output begins with this.")] = None,
    ban: Annotated[list[str] | None, typer.Option(help="No output contains this; may be given again.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="Every output contains this; may be given again.")] = None,
    settings: Set = None,
    device: Device = "auto",
    trust: Trust = False,
) -> None:
    """Predict: a source a line on stdin, an output a line on stdout. An empty line stays one."""
    from seqloom.predict import Predictor

    model = Predictor.load(run, device, trust)
    options = {**search_settings(settings), **({"beam_size": beam_size} if beam_size else {}), "n_best": n_best}
    options |= {"prefix": prefix, "banned": ban or (), "required": require or (), "attention": attention and as_json}
    if n_best > 1:
        as_json = True
    for sources in chunks(sys.stdin.buffer):
        asked = [source for source in sources if source.strip()]
        answers = iter(model.candidates(asked, **options))
        for source in sources:
            found = next(answers) if source.strip() else []
            if not found and source.strip():
                raise SeqloomError(f"no output for {source!r} meets the constraints within the length limit")
            if as_json:
                print(json.dumps({"source": source, "outputs": [vars(one) for one in found]}, ensure_ascii=False))
            else:
                print(found[0].text if found else "")
        sys.stdout.flush()


@app.command()
def evaluate(
    run: Run,
    data: Data = None,
    beam_size: BeamSize = None,
    settings: Set = None,
    device: Device = "auto",
    skip_bad: SkipBad = False,
    trust: Trust = False,
) -> None:
    """Measure a run on pairs, by the metrics of its task; prints JSON."""
    from seqloom.predict import Predictor

    model = Predictor.load(run, device, trust)
    examples = read_examples(model, data, skip_bad)
    options = {**search_settings(settings), **({"beam_size": beam_size} if beam_size else {})}
    print(json.dumps({"examples": len(examples), **model.evaluate(examples, **options)}))


@app.command()
def score(run: Run, data: Data = None, device: Device = "auto", skip_bad: SkipBad = False, trust: Trust = False) -> None:
    """The log-probability of each pair, one a line."""
    from seqloom.predict import Predictor

    model = Predictor.load(run, device, trust)
    for value in model.score(read_examples(model, data, skip_bad)):
        print(f"{value:.6f}")


@app.command()
def generate(
    run: Run,
    prefix: Annotated[str | None, typer.Option(help="Text to go on from.")] = None,
    count: Annotated[int, typer.Option(help="How many texts.")] = 1,
    temperature: Annotated[float | None, typer.Option(help="Below 1 bolder, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Draw from the k likeliest only.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Draw from the likeliest of this joint probability.")] = None,
    argmax_every: Annotated[int | None, typer.Option("--argmax-every", help="Each n-th symbol is the likeliest.")] = None,
    maximum_length: Annotated[int | None, typer.Option("--maximum-length", help="Symbols at most.")] = None,
    seed: Annotated[int | None, typer.Option(help="For the same texts again.")] = None,
    device: Device = "auto",
    trust: Trust = False,
) -> None:
    """Texts from a language model."""
    from seqloom.predict import Predictor

    model = Predictor.load(run, device, trust)
    options: dict[str, Any] = dict(
        temperature=temperature, top_k=top_k, top_p=top_p, argmax_every=argmax_every, maximum_length=maximum_length, seed=seed
    )
    for text in model.generate(count, prefix=prefix, **{name: value for name, value in options.items() if value is not None}):
        print(text)


@app.command()
def explain(
    run: Run,
    text: Annotated[str | None, typer.Argument(help="A source; none for a language model.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    n_best: NBest = 5,
    beam_size: BeamSize = None,
    device: Device = "auto",
    trust: Trust = False,
) -> None:
    """Show why a run answers as it does: here in plain text, and on a page with --out."""
    from seqloom.explain.page import page
    from seqloom.explain.terminal import render
    from seqloom.predict import Predictor

    if out is not None and not out.parent.is_dir():
        raise SeqloomError(f"{out}: there is no folder {out.parent}")
    model = Predictor.load(run, device, trust)
    found = model.explain(text, n_best=n_best, **({"beam_size": beam_size} if beam_size else {}))
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else 100
    print(render(found, width=max(columns, 40), colour=sys.stdout.isatty()))
    if out is not None:
        out.write_text(page(found), encoding="utf-8")
        note(f"The page is {out}.")


@app.command()
def check(recipe: str, settings: Set = None, trust: Trust = False) -> None:
    """Read a recipe, say what is wrong with it or print it with every default filled in."""
    import tomli_w

    from seqloom import config

    full = config.complete(config.override(config.read(recipe), settings or []), recipe, trust)
    print(tomli_w.dumps(full), end="")


@app.command()
def recipes() -> None:
    """The recipes that come with Seqloom."""
    from seqloom import config

    found = config.recipes()
    width = max(map(len, found))
    for name, path in found.items():
        print(f"{name:{width}}  {config.describe(path)}")


@app.command()
def average(
    run: Run,
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    count: Annotated[int, typer.Option(help="How many of the newest checkpoints.")] = 5,
) -> None:
    """A run whose weights are the mean of its newest checkpoints."""
    import shutil

    from seqloom import checkpoint

    ours = checkpoint.Run.open(run)
    found = ours.checkpoints()[-count:]
    if len(found) < 2:
        raise SeqloomError(f"{run} has {len(found)} checkpoint(s): averaging takes two or more (train.keep = N keeps them)")
    checkpoint.Run.refuse_existing(out)
    weights = checkpoint.average([each.path for each in found])
    shutil.copytree(run, out, ignore=shutil.ignore_patterns("checkpoints", "model.safetensors", ".*"), dirs_exist_ok=True)
    checkpoint.Run.open(out).publish(weights)
    note(f"The mean of steps {', '.join(str(each.step) for each in found)} is in {out}.")


@app.command()
def demo(out: Annotated[Path, typer.Option(help="The run folder to write.")] = Path("runs/dates")) -> None:
    """Train on people's dates in twelve languages, in about two minutes, and look at the result."""
    from seqloom.demo import run_demo

    run_demo(out)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which result; none lists them.")] = None,
    out: Annotated[Path, typer.Option(help="Where runs and results are written.")] = Path("."),
    settings: Set = None,
) -> None:
    """Train a published result anew and write results/NAME.json: gate, measured, time."""
    from seqloom.reproducing import list_results, reproduce_result

    if name is None:
        list_results()
    else:
        reproduce_result(name, out, settings or [])


# -- what the verbs share


def note(text: str) -> None:
    """To the person, not into the pipe."""
    print(text, file=sys.stderr)


def paths(given: list[Path] | None) -> list[str] | None:
    return [str(path) for path in given] if given else None


def search_settings(assignments: list[str] | None) -> dict[str, Any]:
    """"length_penalty=0.6" or "search.length_penalty=0.6" as settings of the search."""
    from seqloom import config

    named = [each if each.startswith("search.") else f"search.{each}" for each in assignments or []]
    return dict(config.override({}, named).get("search", {}))


def read_examples(model: Any, data: list[Path] | None, skip_bad: bool) -> list[Any]:
    from seqloom.data.readers import read

    return list(read(paths(data) or ["-"], 1 if model.task.source is None else 2, skip_bad=skip_bad))


def chunks(stream: Any, size: int = 256) -> Iterator[list[str]]:
    """Lines as they come: one by one from a person, many at a time from a file."""
    size = 1 if stream.isatty() else size
    found: list[str] = []
    for number, line in enumerate(stream, start=1):
        try:
            found.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError:
            raise SeqloomError(f"standard input, line {number}: not UTF-8; convert it first, for example with iconv") from None
        if len(found) >= size:
            yield found
            found = []
    if found:
        yield found


def main() -> None:
    """The entry point: a user's mistake is one line."""
    try:
        app(standalone_mode=False)
    except SeqloomError as error:
        note(f"seqloom: {error}")
        sys.exit(2)
    except (typer.Exit, typer.Abort) as stop:
        sys.exit(getattr(stop, "exit_code", 1))
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        import click

        if isinstance(error, click.ClickException):
            note(f"seqloom: {error.format_message()}")
            sys.exit(2)
        raise
