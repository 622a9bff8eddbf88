"""docs/results.md from results/*.json: one table of single results, and one a study of several runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seqloom.files import replace_file

Record = dict[str, Any]


def write_page(out: Path) -> None:
    """The page of all studies in a folder; benchmarks have a page of their own."""
    paths = [path for path in sorted((out / "results").glob("*.json")) if not path.name.startswith("bench-")]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    single = [each for each in records if len(each["rows"]) == 1]
    lines = [
        "# Results",
        "",
        "Made by `seqloom reproduce NAME` from the files in `results/`. Do not edit.",
        "Times are wall times of the machine that ran them; the budgets are small on purpose, and one seed each.",
        "",
        "| result | measured on the test set | gate | training | published |",
        "|---|---|---|---|---|",
    ]
    lines += [table_row(each) for each in single]
    for each in records:
        if len(each["rows"]) > 1:
            lines += ["", *section(each, out)]
    signatures = {each["name"]: each["signature"] for each in records if each.get("signature")}
    if signatures:
        lines += ["", "BLEU is sacrebleu's on detokenised, cased text:", ""]
        lines += [f"- {name}: `{signature}`" for name, signature in signatures.items()]
    page = out / "docs" / "results.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    replace_file(page, "\n".join(lines).encode() + b"\n")


def table_row(record: Record) -> str:
    (row,) = record["rows"]
    measured = "<br>".join(f"{metric} **{value:.4g}**" for metric, value in row["measured"].items())
    gates = "<br>".join(gate_lines(record)) or "-"
    title = f"`{record['command']}`<br>{record['about']}"
    return f"| {title} | {measured} | {gates} | {training(record, row)} | {record['published']} |"


def section(record: Record, out: Path) -> list[str]:
    """A study of several runs: what each came to, the gates, and the picture where there is one."""
    metrics = list(dict.fromkeys(metric for row in record["rows"] for metric in row["measured"]))
    lines = [f"## {record['name']}", "", f"{record['about']}. `{record['command']}`", ""]
    lines += [f"| | {' | '.join(metrics)} | training |", f"|{'---|' * (len(metrics) + 2)}"]
    for row in record["rows"]:
        values = [f"{row['measured'][metric]:.4g}" if metric in row["measured"] else "-" for metric in metrics]
        lines.append(f"| {row['variant']} | {' | '.join(values)} | {training(record, row)} |")
    lines += ["", *(f"- {line}" for line in gate_lines(record))]
    lines += [f"- published: {record['published']}"] if record["published"] != "none" else []
    if (out / "docs" / "images" / f"{record['name']}.png").exists():
        lines += ["", f"![Learning curves of {record['name']}](images/{record['name']}.png)"]
    return lines


def gate_lines(record: Record) -> list[str]:
    return [
        f"{gate['text']} {gate['gate']}: {'met' if gate['met'] else '**not met**'}"
        + (f" ({gate['value']:.4g})" if len(record["rows"]) > 1 else "")
        for gate in record["gates"]
    ]


def training(record: Record, row: Record) -> str:
    return (
        f"{row['train_examples']:,} examples, {row['epochs']:g} epochs, {row['train_minutes']:g} min on "
        f"{record['threads']} thread(s), {row['parameters'] / 1e6:.2f} M parameters, seed {row['seed']}"
    )
