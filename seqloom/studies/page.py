"""docs/results.md from results/*.json: one table of all single runs, and one section per study of several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seqloom.analysis.compare import Estimate
from seqloom.storage.files import replace_file

Record = dict[str, Any]


def write_page(out: Path) -> None:
    """The page of all studies in a folder; results of benchmarks, attacks and mutations are there, too."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((out / "results").glob("*.json"))]
    records = [each for each in found if str(each.get("command")).startswith("seqloom reproduce")]
    single = [each for each in records if not has_section(each)]
    lines = [
        "# Results",
        "",
        "Made by `seqloom reproduce NAME` from the files in `results/`. Do not edit.",
        "Times are wall times on the machine of the run. Budgets are small on purpose. With several seeds, values are",
        "means with their standard errors.",
        "",
        "| result | measured on the test set | gate | training | published |",
        "|---|---|---|---|---|",
    ]
    lines += [table_row(each, out) for each in single]
    for each in records:
        if has_section(each):
            lines += ["", *section(each, out)]
    signatures = {each["name"]: each["signature"] for each in records if each.get("signature")}
    if signatures:
        lines += ["", "BLEU is sacrebleu's on detokenised, cased text:", ""]
        lines += [f"- {name}: `{signature}`" for name, signature in signatures.items()]
    page = out / "docs" / "results.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    replace_file(page, "\n".join(lines).encode() + b"\n")


def table_row(record: Record, out: Path) -> str:
    (row,) = record["rows"]
    measured = "<br>".join(f"{metric} **{value:.4g}**" for metric, value in row["measured"].items())
    gates = "<br>".join(gate_lines(record)) or "-"
    title = f"`{record['command']}`<br>{record['about']}"
    if has_picture(record, out):
        title += f" ([picture](images/{record['name']}.png))"
    return f"| {title} | {measured} | {gates} | {training(record, row)} | {record['published']} |"


def has_section(record: Record) -> bool:
    """Whether it is a study of several runs, also where only one was made yet."""
    return len(record["rows"]) > 1 or "missing" in record


def section(record: Record, out: Path) -> list[str]:
    """A study of several runs: a table, the gates, and the picture if there is one."""
    metrics = list(dict.fromkeys(metric for row in record["rows"] for metric in row["measured"]))
    lines = [f"## {record['name']}", "", f"{record['about']}. `{record['command']}`", ""]
    counted = any("train_flops" in row for row in record["rows"])  # older records have no FLOPs
    heads = [*metrics, *(["training FLOPs"] if counted else []), "training"]
    lines += [f"| | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    for variant, measured in estimates(record).items():
        values = [str(measured.get(metric, "-")) for metric in metrics]
        row = by_variant(record)[variant][0]
        values += [flops(row)] if counted else []
        lines.append(f"| {variant} | {' | '.join(values)} | {training(record, row)} |")
    lines += ["", *(f"- {line}" for line in [*paired_differences(record), *gate_lines(record)])]
    lines += [f"- published: {record['published']}"] if record["published"] != "none" else []
    lines += [f"- not run yet: {', '.join(record['missing'])}"] if "missing" in record else []
    if has_picture(record, out):
        lines += ["", f"![Picture of {record['name']}](images/{record['name']}.png)"]
    return lines


def has_picture(record: Record, out: Path) -> bool:
    return (out / "docs" / "images" / f"{record['name']}.png").exists()


def by_variant(record: Record) -> dict[str, list[Record]]:
    """The rows of each variant, one per seed; if one of them was chosen, only that one."""
    found: dict[str, list[Record]] = {}
    for row in record["rows"]:
        if row.get("chosen", True):
            found.setdefault(row["variant"], []).append(row)
    return found


def estimates(record: Record) -> dict[str, dict[str, Estimate]]:
    """The measures of each variant, with standard errors if there are several seeds."""
    return {
        variant: {metric: Estimate.of([row["measured"][metric] for row in rows]) for metric in rows[0]["measured"]}
        for variant, rows in by_variant(record).items()
    }


def paired_differences(record: Record) -> list[str]:
    """With several seeds: the difference of each variant to the first, paired by seed, in the first metric."""
    variants = by_variant(record)
    base, *others = variants
    if len(variants[base]) < 2:
        return []
    metric = next(iter(variants[base][0]["measured"]))
    lines = []
    for other in others:
        if metric not in variants[other][0]["measured"]:  # another kind of run
            continue
        seeds = {row["seed"]: row["measured"][metric] for row in variants[base]}
        gains = [row["measured"][metric] - seeds[row["seed"]] for row in variants[other]]
        higher = sum(gain > 0 for gain in gains)
        difference = Estimate.of(gains)
        lines.append(f"{other} minus {base}, {metric}: {difference}, higher with {higher} of {len(gains)} seeds")
    return lines


def gate_lines(record: Record) -> list[str]:
    """Each gate, whether it is met, and the same of its stricter bound; with several runs, its figure."""
    lines = []
    for gate in record["gates"]:
        line = f"{gate['text']} {gate['gate']}: {verdict(gate['met'])}"
        if "stricter" in gate:
            line += f", {gate['stricter']}: {verdict(gate['stricter_met'])}"
        lines.append(line + (f" ({gate['value']:.4g})" if len(record["rows"]) > 1 else ""))
    return lines


def verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def flops(row: Record) -> str:
    return f"{row['train_flops']:.2g}" if "train_flops" in row else "-"


def training(record: Record, row: Record) -> str:
    of_variant = [str(each["seed"]) for each in record["rows"] if each["variant"] == row["variant"]]
    seeds = f"seed{'s' if len(of_variant) > 1 else ''} {', '.join(of_variant)}"
    if "baseline" in row:
        return "none: a baseline"
    if "ensemble" in row:
        return f"none: the runs of {' and '.join(row['ensemble'])}, {row['parameters'] / 1e6:.2f} M parameters, {seeds}"
    threads = row.get("threads", record["threads"])  # older records have those of the measuring process only
    return (
        f"{row['train_examples']:,} examples, {row['epochs']:g} epochs, {row['train_minutes']:g} min on "
        f"{threads} thread(s), {row['parameters'] / 1e6:.2f} M parameters, {seeds}"
        + (f", {flops(row)} FLOPs" if "train_flops" in row and not has_section(record) else "")
    )
