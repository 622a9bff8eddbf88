"""The command line: seqloom VERB. One mistake, one line, exit code 2."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom import __version__
from seqloom.awake import fail, in_one_line, note, predict_lines, search_settings
from seqloom.errors import SeqloomError

app = typer.Typer(
    help="Sequence-to-sequence learning: from a file of pairs to a trained, explained, reusable model.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: to import rich takes longer than all the rest
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

Run = Annotated[Path, typer.Argument(help="A run folder, as `seqloom train` writes.")]
Runs = Annotated[list[Path], typer.Argument(help="Run folders; several are an ensemble.")]
Models = Annotated[list[Path], typer.Argument(help="Run folders, several are an ensemble; or an exported one.")]
Geometric = Annotated[
    bool, typer.Option("--geometric", help="Average several runs by the geometric mean, not the arithmetic one.")
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="Pairs: a TSV or JSONL file, - for stdin, or given twice two line-aligned files; also .gz."
    ),
]
Threads = Annotated[
    int, typer.Option(min=0, help="Of a processor; 0: what a short measurement finds best, of an exported model 1.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run code that is not Seqloom's (module:Class parts), found in this folder too.",
        callback=lambda trust: trust and import_from_here(),
    ),
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe.")]
Pictures = Annotated[
    list[Path] | None, typer.Option("--out", help="The picture to write, PNG or SVG; may be given again.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Count bad lines and go on.")]
BeamSize = Annotated[int | None, typer.Option("--beam-size", help="Hypotheses kept; 1 is greedy.")]
Wait = Annotated[
    int | None, typer.Option(min=1, help="Write while reading, from the k-th symbol on, one for one: wait-k.")
]
LanguageModel = Annotated[
    Path | None, typer.Option("--lm", help="A run without a source that helps to choose every symbol: shallow fusion.")
]
LanguageModelWeight = Annotated[float | None, typer.Option("--lm-weight", help="How much it counts; 0.3 unless told.")]
Channel = Annotated[
    Path | None,
    typer.Option(help="A run the other way round: outputs must explain their source, too (noisy channel)."),
]
ChannelWeight = Annotated[float | None, typer.Option("--channel-weight", help="How much it counts; 0.5 unless told.")]
LengthBonus = Annotated[
    float | None, typer.Option("--length-bonus", help="With a channel: what each symbol of an output is worth.")
]
Rescore = Annotated[
    Path | None,
    typer.Option(
        "--rescore", help="A run that ranks the outputs of the beam anew: without a source, or the other way round."
    ),
]
RescoreWeight = Annotated[float | None, typer.Option("--rescore-weight", help="How much it counts; 0.3 unless told.")]
NBest = Annotated[int | None, typer.Option("--n-best", help="Outputs a source.")]
ReplaceUnknown = Annotated[
    bool,
    typer.Option("--replace-unknown", help="Write unknown words, too: as the word of the source most looked at."),
]


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Say which version this is.", is_eager=True)] = False,
) -> None:
    if show:
        print(f"seqloom {__version__}")
        raise typer.Exit


@app.command()
def train(
    recipe: Annotated[
        str | None, typer.Argument(help="A packaged recipe or a TOML file; without one the data decides.")
    ] = None,
    data: Data = None,
    valid: Annotated[
        list[Path] | None, typer.Option("--valid", help="Validation pairs; without them some are held out.")
    ] = None,
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
    interrupted = model.summary is not None and model.summary.stopped == "interrupted"
    if processes.is_lead() and not interrupted:
        verb = "echo ... | seqloom predict" if model.task.source is not None else "seqloom generate"
        note(f"The run is in {out}. Try: {verb} {out}")
    processes.end()
    if interrupted:
        note(f"Interrupted and saved. Continue with --resume: seqloom train --resume --out {out}")
        raise typer.Exit(130)


@app.command()
def predict(
    runs: Models,
    n_best: NBest = None,
    beam_size: BeamSize = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines with scores and tokens; so are n-best lists.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="JSON lines with where each output looked, too.")
    ] = False,
    replace_unknown: ReplaceUnknown = False,
    wait: Wait = None,
    lm: LanguageModel = None,
    lm_weight: LanguageModelWeight = None,
    channel: Channel = None,
    channel_weight: ChannelWeight = None,
    length_bonus: LengthBonus = None,
    rescore: Rescore = None,
    rescore_weight: RescoreWeight = None,
    prefix: Annotated[str | None, typer.Option(help="Every output begins with this.")] = None,
    ban: Annotated[list[str] | None, typer.Option(help="No output contains this; may be given again.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="Every output contains this; may be given again.")] = None,
    geometric: Geometric = False,
    settings: Set = None,
    device: Device = "auto",
    threads: Threads = 0,
    trust: Trust = False,
) -> None:
    """Predict: a source a line on stdin, an output a line on stdout. An empty line stays one."""
    from seqloom import load

    mean: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=mean, threads=threads)
    predict_lines(
        model,
        n_best=n_best,
        beam_size=beam_size,
        as_json=as_json,
        attention=attention,
        replace_unknown=replace_unknown,
        wait=wait,
        prefix=prefix,
        ban=ban,
        require=require,
        settings=settings,
        **helpers(
            model,
            length_bonus,
            lm=(lm, lm_weight),
            channel=(channel, channel_weight),
            rescore=(rescore, rescore_weight),
        ),
    )


@app.command()
def evaluate(
    runs: Models,
    data: Data = None,
    beam_size: BeamSize = None,
    replace_unknown: ReplaceUnknown = False,
    wait: Wait = None,
    lm: LanguageModel = None,
    lm_weight: LanguageModelWeight = None,
    channel: Channel = None,
    channel_weight: ChannelWeight = None,
    length_bonus: LengthBonus = None,
    rescore: Rescore = None,
    rescore_weight: RescoreWeight = None,
    geometric: Geometric = False,
    settings: Set = None,
    device: Device = "auto",
    threads: Threads = 0,
    skip_bad: SkipBad = False,
    trust: Trust = False,
) -> None:
    """Measure a run on pairs, by the metrics of its task; prints JSON."""
    from seqloom import load

    mean: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=mean, threads=threads)
    examples = read_examples(model, data, skip_bad)
    helping = helpers(
        model, length_bonus, lm=(lm, lm_weight), channel=(channel, channel_weight), rescore=(rescore, rescore_weight)
    )
    wishes = {"wait": wait, "replace_unknown": replace_unknown, **helping, **search_settings(settings, beam_size)}
    measured = model.evaluate(examples, **wishes)
    note_unknown(model, examples, model.task.source is None)
    print(json.dumps({"examples": len(examples), **{name: round(value, 4) for name, value in measured.items()}}))


@app.command()
def stream(
    run: Run,
    wait: Wait = None,
    beam_size: BeamSize = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON line at each change: final, provisional, times.")
    ] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Say at the end how long it took.")] = False,
    settings: Set = None,
    device: Device = "auto",
    threads: Threads = 1,
    trust: Trust = False,
) -> None:
    """Write while the input is still arriving: a WAV stream of sound, or text, a source a line."""
    from seqloom.live import live
    from seqloom.predict import Predictor
    from seqloom.threads import choose_threads

    choose_threads(threads)
    model = Predictor.load(run, device, trust)
    chosen = search_settings(settings, beam_size)
    sound = model.task.source is not None and model.task.source.seconds is not None
    live(lambda: model.stream(wait=wait, **chosen), sound, as_json, note if timing else None)


@app.command()
def score(
    runs: Runs,
    data: Data = None,
    geometric: Geometric = False,
    device: Device = "auto",
    threads: Threads = 0,
    skip_bad: SkipBad = False,
    trust: Trust = False,
) -> None:
    """The log-probability of each pair, one a line."""
    from seqloom.predict import Predictor
    from seqloom.threads import choose_threads

    choose_threads(threads)
    model = Predictor.load(runs, device, trust, "geometric" if geometric else "arithmetic")
    examples = read_examples(model, data, skip_bad)
    for value in model.score(examples):
        print(f"{value:.6f}")
    note_unknown(model, examples, True)


@app.command()
def generate(
    runs: Runs,
    prefix: Annotated[str | None, typer.Option(help="Text to go on from.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many texts.")] = 1,
    temperature: Annotated[float | None, typer.Option(help="Below 1 safer, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", min=0, help="Draw from the k likeliest only.")] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Draw from the likeliest of this joint probability.")
    ] = None,
    argmax_every: Annotated[
        int | None, typer.Option("--argmax-every", min=0, help="Each n-th symbol is the likeliest.")
    ] = None,
    maximum_length: Annotated[
        int | None, typer.Option("--maximum-length", min=1, help="Symbols at most, the prefix counted.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For the same texts again.")] = None,
    geometric: Geometric = False,
    device: Device = "auto",
    threads: Threads = 0,
    trust: Trust = False,
) -> None:
    """Texts from a language model."""
    from seqloom.predict import Predictor
    from seqloom.threads import choose_threads

    choose_threads(threads)
    model = Predictor.load(runs, device, trust, "geometric" if geometric else "arithmetic")
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "argmax_every": argmax_every}
    options |= {"maximum_length": maximum_length, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for text in model.generate(count, prefix=prefix, **given):
        print(text)


@app.command()
def explain(
    run: Run,
    text: Annotated[str | None, typer.Argument(help="A source; none for a language model.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    truth: Annotated[
        str | None, typer.Option(help='Of points in the plane: the true places, drawn below the output, as "0 3 2 0".')
    ] = None,
    n_best: NBest = None,
    beam_size: BeamSize = None,
    device: Device = "auto",
    threads: Threads = 0,
    trust: Trust = False,
) -> None:
    """Show why a run answers as it does: here in plain text, and on a page with --out."""
    from seqloom.explain.page import page
    from seqloom.explain.terminal import render
    from seqloom.files import replace_file
    from seqloom.predict import Predictor
    from seqloom.threads import choose_threads

    if out is not None:
        check_file(out, "page.html")
    choose_threads(threads)
    model = Predictor.load(run, device, trust)
    known: dict[str, Any] = {} if truth is None else {"truth": truth}
    found = model.explain(text, n_best=n_best or 5, **known, **search_settings(None, beam_size))
    if out is not None:
        replace_file(out, page(found).encode())
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else 100
    print(render(found, width=max(columns, 40), colour=sys.stdout.isatty()))
    if out is not None:
        note(f"The page is {out}.")


@app.command()
def check(recipe: str, settings: Set = None, trust: Trust = False) -> None:
    """Read a recipe, say what is wrong with it or print it with every default filled in."""
    import tomli_w

    from seqloom import config

    full = config.complete(config.override(config.read(recipe, trust), settings or []), recipe, trust)
    config.rehearse(full, trust)
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
def gradcheck(recipe: str, settings: Set = None, trust: Trust = False) -> None:
    """Hold every gradient of a recipe's model, made small, against finite differences; exit code 1 if one is wrong."""
    from seqloom import config
    from seqloom.explain.gradcheck import report, small

    full = config.complete(config.override(config.read(recipe, trust), settings or []), recipe, trust)
    checked = small(full, trust)
    if checked.changes:
        note(f"Made small: {', '.join(checked.changes)}.")
    if not report(checked, lambda line: print(line, flush=True)):
        raise typer.Exit(1)


@app.command()
def gradients(
    names: Annotated[list[str], typer.Argument(metavar="RUN|RECIPE...", help="Run folders and recipes.")],
    out: Pictures = None,
    length: Annotated[int, typer.Option(min=2, help="Steps to go back.")] = 100,
    settings: Set = None,
    trust: Trust = False,
) -> None:
    """How far back a recurrent cell learns: the norm of dL/dh against the steps between."""
    from seqloom.explain import plot
    from seqloom.explain.gradients import gradients, picture, table

    plot.check(out or [])
    found = gradients(names, settings or [], length=length, trust=trust)
    print(table(found))
    for path in out or []:
        plot.save(picture(found), path)
        note(f"The picture is {path}.")


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; those that differ in their seed alone are one.")],
    out: Pictures = None,
    by: Annotated[
        str | None, typer.Option(help="The measure that decides; else what the runs were selected by.")
    ] = None,
) -> None:
    """Runs side by side: what differs in their recipes, what they came to, and their learning curves."""
    from seqloom.explain import plot
    from seqloom.explain.compare import compare

    plot.check(out or [])
    found = compare(runs, by)
    print(found)
    for path in out or []:
        found.save(path)
        note(f"The picture is {path}.")


@app.command()
def average(
    run: Run,
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    count: Annotated[int, typer.Option(min=2, help="How many of the newest checkpoints.")] = 5,
) -> None:
    """A run whose weights are the mean of its newest checkpoints."""
    from seqloom import checkpoint

    ours = checkpoint.Run.open(run)
    found = ours.checkpoints()[-count:]
    if len(found) < 2:
        count_found = f"{run} has {len(found)} checkpoint{'s' * (len(found) != 1)}"
        raise SeqloomError(f"{count_found}: averaging takes two or more (train.keep = N keeps them)")
    checkpoint.Run.refuse_existing(out)
    ours.copy(out, checkpoint.average([each.path for each in found]))
    note(f"The mean of steps {', '.join(str(each.step) for each in found)} is in {out}.")


@app.command()
def export(
    run: Run,
    to: Annotated[str, typer.Option(help="ctranslate2 for Transformers, onnx for recurrent decoders.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write; else RUN-ctranslate2 or RUN-onnx.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Weights of 8 bits; what that loses is measured.")] = False,
    data: Data = None,
    allow: Annotated[float, typer.Option(help="How much of the first metric --int8 may lose.")] = 1.0,
    force: Annotated[bool, typer.Option("--force", help="Write it whatever it loses.")] = False,
    trust: Trust = False,
) -> None:
    """Write a run as a folder that predicts without torch, and awakes in half a second."""
    from seqloom.engines.exporting import export as write

    found = write(run, to, out, int8=int8, data=paths(data), allow=allow, force=force, trust=trust, note=note)
    note(f"The exported model is in {found}. Try: echo ... | seqloom predict {found}")


@app.command()
def demo(out: Annotated[Path, typer.Option(help="The run folder to write.")] = Path("runs/dates")) -> None:
    """Train on people's dates in twelve languages, in about two minutes, and look at the result."""
    from seqloom.demo import run_demo

    run_demo(out)


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="Which generator; none lists them.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; else standard output.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many examples.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="For the same examples again.")] = 1,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first so many: for others than a file has.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the generator.")
    ] = None,
) -> None:
    """Make data on the spot: dates, sums, hulls, tours and more; without a name it lists them."""
    from seqloom import config
    from seqloom.generating import as_lines, generated, list_generators

    if name is None:
        return list_generators()
    lines = as_lines(generated(name, count, seed, config.override({}, settings or []), skip))
    if out is None:
        print(lines, end="")
        return None
    from seqloom.files import replace_file

    check_file(out, "pairs.tsv")
    replace_file(out, lines.encode())
    note(f"{count:,} examples are in {out}.")
    return None


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which result; none lists them.")] = None,
    out: Annotated[Path, typer.Option(help="Where runs and results are written.")] = Path("."),
    settings: Set = None,
) -> None:
    """Train a published result anew and write results/NAME.json: gate, measured, time."""
    from seqloom.reproducing.reproduce import list_results, reproduce_result

    if name is None:
        list_results()
    else:
        reproduce_result(name, out, settings or [])


# -- what the verbs share


def check_file(out: Path, such_as: str) -> None:
    """Refuse what cannot be written, before anything is computed for it."""
    if not out.parent.is_dir():
        raise SeqloomError(f"{out}: there is no folder {out.parent}; make it, or choose another --out")
    if out.is_dir():
        raise SeqloomError(f"{out} is a folder; expected the name of a file, such as {out / such_as}")


def import_from_here() -> bool:
    """Parts of one's own are looked for in the working folder, where an installed command does not look by itself."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return True


def paths(given: list[Path] | None) -> list[str] | None:
    if given and len(given) > 2:
        raise SeqloomError(f"{len(given)} files were given; expected one file of pairs or two line-aligned files")
    return [str(path) for path in given] if given else None


def helpers(model: Any, length_bonus: float | None, **asked: tuple[Path | None, float | None]) -> dict[str, Any]:
    """Runs that were asked to help, loaded once, and their weights."""
    found: dict[str, Any] = {}
    for name, (run, weight) in asked.items():
        if run is None and weight is not None:
            raise SeqloomError(f"--{name}-weight = {weight}: there is nothing to weigh; give a run with --{name}")
        if run is not None:
            from seqloom.predict import Predictor

            place = getattr(model, "device", None)
            found[name] = Predictor.load(run, place.type if place else "cpu", model.trust)
            found |= {} if weight is None else {f"{name}_weight": weight}
    if length_bonus is not None:
        if "channel" not in found:
            raise SeqloomError(f"--length-bonus = {length_bonus}: goes with a noisy channel; give a run with --channel")
        found["length_bonus"] = length_bonus
    return found


def read_examples(model: Any, data: list[Path] | None, skip_bad: bool) -> list[Any]:
    from seqloom.data.readers import Tally

    tally = Tally()
    found = list(model.examples(paths(data) or ["-"], skip_bad=skip_bad, tally=tally))
    if tally.skipped:
        note(tally.sentence("bad"))
    return found


def note_unknown(model: Any, examples: list[Any], scored: bool) -> None:
    """Say what the model has never seen in sources, and what counted as one symbol in targets that were scored."""
    if model.task.source is not None and (number := sum(model.has_unknown(each.source) for each in examples)):
        note(f"{number:,} of {len(examples):,} sources have symbols that this model has never seen.")
    if scored and (number := sum(map(model.lacks, examples))):
        note(
            f"{number:,} of {len(examples):,} targets have symbols that this model lacks: all count as the unknown one."
        )


def main() -> None:
    """All commands, however many words they are given."""

    def run() -> None:
        code = app(sys.argv[1:] or ["--help"], prog_name="seqloom", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)  # an Exit comes back as its code

    try:
        in_one_line(run)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # Known by what they can do: some versions of typer bring a click of their own.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        verb = context.command_path if context else "seqloom"
        fail(f"{error.format_message()} (see {verb} --help)")
