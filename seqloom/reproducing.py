"""Published results trained anew: what is run, what must come out, and what did.

`seqloom reproduce NAME` trains (or continues) the run, measures the test set and writes results/NAME.json;
docs/results.md is made of those files. Data sets are looked for under $SEQLOOM_DATA, one folder each.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, nearest

Paths = list[str]


@dataclass(frozen=True)
class Data:
    """Where a result's examples are."""

    train: Paths
    valid: Paths | None
    test: Paths


@dataclass(frozen=True)
class Result:
    """One row of the results page."""

    recipe: str
    data: Callable[[Path], Data]  # given a folder for files it has to make
    gates: dict[str, tuple[str, float]]  # metric -> (">=", 99.0)
    published: str  # what others reached, with the source
    about: str


def list_results() -> None:
    width = max(map(len, RESULTS))
    for name, result in RESULTS.items():
        gates = ", ".join(f"{metric} {sign} {value:g}" for metric, (sign, value) in result.gates.items())
        print(f"{name:{width}}  {result.about}; gate: {gates or 'none'}")


def reproduce_result(name: str, out: Path, settings: list[str]) -> dict[str, Any]:
    """Train if need be, measure, write."""
    import torch

    from seqloom.data.readers import read
    from seqloom.fitting import fit
    from seqloom.metrics import bleu

    if name not in RESULTS:
        raise SeqloomError(f'no result is called "{name}"{nearest(name, RESULTS)}')
    result = RESULTS[name]
    folder = out / "runs" / name
    data = result.data(out / "runs" / "data")
    resume = (folder / "format.json").exists()
    model = fit(data.train, result.recipe, out=folder, valid=data.valid, settings=settings, resume=resume)
    if model.summary is None or model.summary.stopped == "interrupted":
        raise SeqloomError(f"{name} was interrupted and saved: the same command continues it")

    examples = list(read(data.test, 1 if model.task.source is None else 2))
    count = len(examples)
    began = time.monotonic()
    if model.task.source is None:
        measured = model.evaluate(examples)
    else:
        sources, references = model.task.references(examples)
        count = len(sources)
        predictions = model.predict(sources)
        measured = model.task.measure(predictions, references)
    seconds = time.monotonic() - began
    gates = {
        metric: {
            "gate": f"{sign} {value:g}",
            "met": measured[metric] >= value if sign == ">=" else measured[metric] <= value,
        }
        for metric, (sign, value) in result.gates.items()
    }
    record = {
        "name": name,
        "about": result.about,
        "command": " ".join(["seqloom reproduce", name, *(f"--set {each}" for each in settings)]),
        "seed": model.recipe["seed"],
        "parameters": sum(value.numel() for value in model.model.parameters()),
        "train_examples": model.summary.examples,
        "epochs": round(model.summary.epochs, 2),
        "steps": model.summary.steps,
        "train_minutes": round(model.summary.seconds / 60, 1),
        "test_examples": count,
        "test_seconds": round(seconds, 1),
        "search": model.recipe["search"],
        "measured": {metric: round(value, 4) for metric, value in measured.items()},
        "gates": gates,
        "published": result.published,
        "signature": bleu.signature(predictions, references) if "bleu" in measured else "",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    from seqloom.checkpoint import replace_file, to_json

    (out / "results").mkdir(parents=True, exist_ok=True)
    replace_file(out / "results" / f"{name}.json", to_json(record))
    write_page(out)
    for metric, value in measured.items():
        verdict = (
            ""
            if metric not in gates
            else f"  ({gates[metric]['gate']}: {'met' if gates[metric]['met'] else 'NOT MET'})"
        )
        print(f"{metric} {value:.4g}{verdict}")
    return record


def write_page(out: Path) -> None:
    """docs/results.md from results/*.json."""
    records = [json.loads(path.read_text()) for path in sorted((out / "results").glob("*.json"))]
    lines = [
        "# Results",
        "",
        "Made by `seqloom reproduce NAME` from the files in `results/`. Do not edit.",
        "Times are wall times of the machine that ran them; the budgets are small on purpose.",
        "",
        "| result | measured on the test set | gate | training | published |",
        "|---|---|---|---|---|",
    ]
    for each in records:
        if "gates" not in each:
            continue
        measured = "<br>".join(f"{metric} **{value:.4g}**" for metric, value in each["measured"].items())
        gates = "<br>".join(
            f"{metric} {gate['gate']}: {'met' if gate['met'] else '**not met**'}"
            for metric, gate in each["gates"].items()
        )
        trained = (
            f"{each['train_examples']:,} examples, {each['epochs']:g} epochs, {each['train_minutes']:g} min on "
            f"{each['threads']} thread(s), {each['parameters'] / 1e6:.2f} M parameters, seed {each['seed']}"
        )
        title = f"`{each['command']}`<br>{each['about']}, {each['test_examples']:,} test examples"
        lines.append(f"| {title} | {measured} | {gates or '-'} | {trained} | {each['published']} |")
    signatures = {each["name"]: each["signature"] for each in records if each.get("signature")}
    if signatures:
        lines += ["", "BLEU is sacrebleu's on detokenised, cased text:", ""]
        lines += [f"- {name}: `{signature}`" for name, signature in signatures.items()]
    page = out / "docs" / "results.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- the data


def shared(*names: str) -> Path:
    """A file under $SEQLOOM_DATA."""
    root = os.environ.get("SEQLOOM_DATA")
    if not root:
        raise SeqloomError("SEQLOOM_DATA is not set: it names the folder that holds the data sets")
    path = Path(root).joinpath(*names)
    if not path.exists():
        raise SeqloomError(f"{path} is missing: this result needs the data set {names[0]} under SEQLOOM_DATA")
    return path


def multi30k(folder: Path) -> Data:
    def pair(split: str) -> Paths:
        return [str(shared("multi30k", f"{split}.{language}.gz")) for language in ("en", "de")]

    return Data(pair("train"), pair("val"), pair("test_2016_flickr"))


def cmudict(folder: Path) -> Data:
    """WORD<two spaces>PH PH PH as TSV."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for split in ("train", "dev", "test"):
        path = folder / f"cmudict-{split}.tsv"
        with gzip.open(shared("cmudict-g2p", f"cmudict-0.7b.{split}.gz"), "rt", encoding="ascii") as lines:
            path.write_text("".join(line.replace("  ", "\t", 1) for line in lines), encoding="utf-8")
        made[split] = [str(path)]
    return Data(made["train"], made["dev"], made["test"])


def generated_dates(folder: Path) -> Data:
    """Drawn by the package; the test strings stand in neither of the others."""
    from seqloom.demo import write_dates

    train, test = write_dates(folder)
    return Data([str(train)], None, [str(test)])


def tiny_shakespeare(folder: Path) -> Data:
    """The first nine tenths of the lines to train on, the last to test; empty lines left out."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(shared("tinyshakespeare", "input.txt.gz"), "rt", encoding="ascii") as file:
        text = file.read()
    cut = int(len(text) * 0.9)
    made = {"train": text[:cut], "test": text[cut:]}
    for split, part in made.items():
        lines = [line for line in part.split("\n") if line.strip()]
        (folder / f"shakespeare-{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Data([str(folder / "shakespeare-train.txt")], None, [str(folder / "shakespeare-test.txt")])


RESULTS = {
    "dates": Result(
        "dates",
        generated_dates,
        {"exact": (">=", 99.0)},
        "none",
        "People's dates in twelve languages to ISO 8601 (test strings are unseen, their days may be known)",
    ),
    "g2p-lstm": Result(
        "g2p-lstm",
        cmudict,
        {"exact": (">=", 70.0), "per": ("<=", 7.5)},
        "exact 76.45 (bidirectional LSTM that is given alignments, Yao & Zweig 2015, nearly the same split)",
        "CMUdict letters to phonemes; WER is 100 - exact, any listed pronunciation counts",
    ),
    "g2p-transformer": Result(
        "g2p-transformer",
        cmudict,
        {"exact": (">=", 70.0), "per": ("<=", 7.5)},
        "exact 79.8 (Transformer 2 x 256, table of the g2p-seq2seq project, nearly the same split)",
        "CMUdict letters to phonemes; WER is 100 - exact, any listed pronunciation counts",
    ),
    "multi30k-transformer": Result(
        "multi30k-transformer",
        multi30k,
        {"bleu": (">=", 32.0)},
        "36.5 for German to English, tokenised and lower-cased (Transformer of a tutorial series)",
        "Multi30k English to German, test 2016",
    ),
    "multi30k-lstm": Result(
        "multi30k-lstm",
        multi30k,
        {"bleu": (">=", 28.0)},
        "about 28 for German to English, tokenised and lower-cased (attention RNN of a tutorial series)",
        "Multi30k English to German, test 2016",
    ),
    "char-lm": Result("char-lm", tiny_shakespeare, {}, "none for single lines", "Tiny Shakespeare, line by line"),
}
