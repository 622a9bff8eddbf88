"""docs/benchmarks.md and its pictures from results/bench-*.json.

python -m bench.page [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench import gates
from bench.measuring import Record
from seqloom.analysis import plot
from seqloom.storage.files import replace_file

Row = dict[str, Any]


def write_page(folder: Path) -> None:
    """The page of all records in a folder."""
    paths = sorted((folder / "results").glob("bench-*.json"))
    records = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    images = folder / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench` from `results/bench-*.json`. Do not edit. The systems of a table took turns in one run.",
        "Only ratios within a table carry over to other machines, and differences below a tenth are ties. A figure is",
        "a median, with the lowest and the highest value. A ratio above 1 is faster.",
    ]
    for name, record in records.items():
        kind = name.split("-")[1]
        if kind in SECTIONS:
            lines += ["", *SECTIONS[kind](record, name, images)]
    page = folder / "docs" / "benchmarks.md"
    replace_file(page, "\n".join(lines).encode() + b"\n")


def heading(title: str, record: Record) -> list[str]:
    """The title, and command, machine and versions."""
    machine = record.get("machine", {})
    place = (
        f"{machine['processor']}, {machine['processors']} processors, load {machine['load']} before; "
        if machine
        else ""
    )
    versions = record.get("versions", {"torch": record.get("torch", ""), "python": record.get("python", "")})
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"## {title}", "", f"`{record['command']}`: {place}{record['threads']} thread(s); {found}."]
    peers = [f"{name} {peer.get('version', 'failed')}" for name, peer in record.get("peers", {}).items()]
    if peers:
        lines[-1] += f" Peers: {', '.join(peers)}."
    if "data" in record:
        lines[-1] += f" Data: {record['data']}."
    if "rounds" in record:
        lines[-1] += f" {record['rounds']} rounds."
    return [*lines, ""]


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *(f"| {' | '.join(row)} |" for row in rows)]


def spread(figure: dict[str, float], digits: int = 0) -> str:
    low, high = figure["lowest"], figure["highest"]
    return f"{figure['median']:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def failed(row: Row, columns: int) -> list[str]:
    """The reason of a row without figures, as cells; [] for a row with figures."""
    return [f"failed: {row['failed']}", *[""] * (columns - 1)] if "failed" in row else []


def bullets(found: list[gates.Gate]) -> list[str]:
    return ["", *(f"- {gate.line()}" for gate in found)] if found else []


def ratio(row: Row) -> str:
    return f"{row['ratio']:.2f}" if "ratio" in row else "-"


# -- the sections


def training(record: Record, name: str, images: Path) -> list[str]:
    lines = heading(f"Training, {record['threads']} thread(s)", record)
    lines += [
        f"Batches of about 4,096 tokens, {record['batches']} per turn from the narrowest to the widest, a joint BPE"
        f" vocabulary of {record['vocabulary']:,}; {100 * record['padding']:.1f} % of an epoch's batches is padding.",
        "",
    ]
    for model in dict.fromkeys(row["model"] for row in record["rows"]):
        cells = []
        for row in record["rows"]:
            if row["model"] == model:
                figures = failed(row, 4)
                if not figures:
                    figures = [
                        spread(row["speed"]),
                        ratio(row),
                        f"{row['processor_ratio']:.2f}",
                        f"{row['megabytes']:,}",
                    ]
                cells.append([row["system"], *figures])
        lines += [*table([f"**{model}**", "target tokens/s", "ratio", "by processor time", "MB"], cells), ""]
    bars(record["rows"], "model", images / f"{name}.svg")
    lines.append(f"![Speed of training, as a ratio to the bare loop](images/{name}.svg)")
    return lines + bullets(gates.training_gates(record))


def decoding(record: Record, name: str, images: Path) -> list[str]:
    lines = heading(f"Decoding, {record['threads']} thread(s)", record)
    for model in dict.fromkeys(row["model"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["model"] == model]
        for setting in dict.fromkeys(row["setting"] for row in rows):
            cells = []
            for row in rows:
                if row["setting"] == setting:
                    figures = failed(row, 4)
                    if not figures:
                        tokens = f"{row['tokens']['median']:,.0f}"
                        figures = [spread(row["milliseconds"], 2), tokens, ratio(row), f"{row['megabytes']:,}"]
                    cells.append([row["system"], *figures])
            lines += [*table([f"**{model}, {setting}**", "ms per sentence", "tokens/s", "ratio", "MB"], cells), ""]
    bars([row for row in record["rows"] if row["model"] == "transformer"], "setting", images / f"{name}.svg")
    lines.append(f"![Speed of decoding, as a ratio to the bare loop](images/{name}.svg)")
    grown = [row for row in record["growth"] if "failed" not in row]
    if grown:
        figure, (panel,) = plot.figure()
        for number, setting in enumerate(dict.fromkeys(row["setting"] for row in grown)):
            points = [row for row in grown if row["setting"] == setting]
            times = [row["milliseconds"]["median"] for row in points]
            panel.plot([row["produced"] for row in points], times, marker="o", label=setting, **plot.line(number))
        decorate(figure, panel, "tokens already produced", "ms per step of the whole batch")
        plot.save(figure, images / f"{name}-growth.svg")
        rows = [[row["setting"], str(row["produced"]), spread(row["milliseconds"], 2), ratio(row)] for row in grown]
        lines += ["", *table(["Seqloom", "tokens produced", "ms per step", "relative to the first"], rows), ""]
        lines.append(f"![Cost of a step against the tokens produced](images/{name}-growth.svg)")
    return lines + bullets(gates.decoding_gates(record))


def starting(record: Record, name: str, images: Path) -> list[str]:
    rows = []
    for row in record["rows"]:
        figures = failed(row, 3)
        if not figures:
            figures = [spread(row["seconds"], 2), f"{row['over_torch']:+.2f}", f"{row['megabytes']:,}"]
        rows.append([row["command"], *figures])
    lines = heading("Start-up", record)
    lines += table(["", "seconds", "beyond import torch", "MB"], rows)
    return lines + bullets(gates.starting_gates(record))


def scaling(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Scale", record)
    rows = []
    for row in record["corpora"]:
        figures = failed(row, 4)
        if not figures:
            figures = [row["run"], spread(row["starting"], 2), spread(row["speed"]), f"{row['megabytes']:,}"]
        rows.append([f"{row['pairs']:,}", *figures])
    if rows:
        lines += [*table(["pairs", "run", "start-up s", "target tokens/s", "MB"], rows), ""]
        corpora([row for row in record["corpora"] if "failed" not in row], images / f"{name}-corpus.svg")
        lines += [f"![Start-up and memory against the corpus](images/{name}-corpus.svg)", ""]
    exponents = []
    for each in record["sweeps"]:
        figure, (panel,) = plot.figure()
        for number, (kind, found) in enumerate(each["kinds"].items()):
            times = [point["median"] for point in found["microseconds"]]
            label = f"{kind}: exponent {found['exponent']:.2f}"
            panel.plot(each["values"], times, marker="o", label=label, **plot.line(number))
        decorate(figure, panel, each["name"], "microseconds per token")
        plot.save(figure, images / f"{name}-{each['name']}.svg")
        kinds = [each["kinds"].get(kind) for kind in ("training", "decoding")]
        exponents.append([each["name"], *("-" if kind is None else f"{kind['exponent']:.2f}" for kind in kinds)])
    lines += table(["time per token against", "exponent in training", "exponent in decoding"], exponents)
    lines += ["", *(f"![Against {each['name']}](images/{name}-{each['name']}.svg)" for each in record["sweeps"])]
    return lines + bullets(gates.scaling_gates(record))


def cells(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Cells", record)
    lines += ["Forward and backward, processor time relative to `nn.LSTM` on a full batch: lower is faster.", ""]
    shapes = list(record["cells"])
    names = record["cells"][shapes[0]]
    rows = [
        [each, *(f"{record['cells'][shape][each]['ratio']:.2f}" for shape in shapes)]
        for each in names
        if not each.endswith(", before")
    ]
    return lines + table(["", *shapes], rows)


def objectives(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Objectives", record)
    lines += [
        f"The cost of a training step relative to cross-entropy, in brackets the cost expected from its definition; "
        f"{record['shape']}.",
        "",
    ]
    models = list(record["models"])
    rows = [
        [each, *(f"{found['multiple']:.2f} ({found['expected']:.2f})" for found in column)]
        for each in record["models"][models[0]]
        if (column := [record["models"][model][each] for model in models])
    ]
    return lines + table(["", *models], rows)


def lattice(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("The sum over the alignments of a transducer", record)
    lines += [f"Forward and backward over the logits of a lattice, processor time; {record['shape']}.", ""]
    rows = [
        [each, spread(found["milliseconds"], 1), f"{found['ratio']:.2f}", f"{found['megabytes']:,.0f}"]
        for each, found in record["systems"].items()
    ]
    lines += [*table(["", "ms", "time, relative to autograd", "MB beyond the logits"], rows), ""]
    rows = [
        [
            f"{each['name']} = {', '.join(map(str, each['values']))}",
            each["system"],
            ", ".join(f"{found:,.0f}" for found in each["milliseconds"]),
            f"{each['time_exponent']:.2f}",
            ", ".join(f"{found:,.0f}" for found in each["megabytes"]),
            f"{each['memory_exponent']:.2f}",
        ]
        for each in record["growth"]
    ]
    lines += table(["", "", "ms", "exponent", "MB beyond the logits", "exponent"], rows)
    return lines + bullets(gates.lattice_gates(record))


def pointer(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Pointing compared with the recurrence", record)
    lines += [f"Forward and backward of a batch, processor time; {record['shape']}.", ""]
    rows = [
        [each, spread(found["milliseconds"], 1), f"{found['examples_per_second']:,.0f}", f"{found['ratio']:.2f}"]
        for each, found in record["systems"].items()
    ]
    return lines + table(["", "ms", "examples/s", "speed"], rows) + bullets(gates.pointer_gates(record))


def experts(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Mixture of experts", record)
    lines += [
        f"Forward and backward in training mode, processor time; {record['shape']}. The feed-forward layer has as many "
        "operations.",
        "",
    ]
    rows = [
        [hidden, each, spread(figures["milliseconds"], 1), f"{figures['ratio']:.2f}"]
        for hidden, found in record["hidden"].items()
        for each, figures in found.items()
    ]
    lines += table(["hidden units of an expert", "", "ms", "time, relative to feed-forward"], rows)
    return lines + bullets(gates.expert_gates(record))


def convolutions(record: Record, name: str, images: Path) -> list[str]:
    return beside_bare_loop(record, "ConvS2S compared with a bare loop", "tokens")


def captions(record: Record, name: str, images: Path) -> list[str]:
    return beside_bare_loop(record, "Captions compared with a bare loop", "pictures")


def lips(record: Record, name: str, images: Path) -> list[str]:
    return beside_bare_loop(record, "Lip reading with sound compared with a bare loop", "frames")


def pixels(record: Record, name: str, images: Path) -> list[str]:
    return beside_bare_loop(record, "Pictures pixel by pixel compared with a bare loop", "pictures")


def bert(record: Record, name: str, images: Path) -> list[str]:
    return beside_bare_loop(record, "Pre-training compared with transformers", "tokens")


def waves(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Sound sample by sample, early and late", record)
    lines += [f"A WaveNet draws: {record['shape']}.", ""]
    rows = [[part, spread(record[key], 0)] for part, key in (("first", "first_quarter"), ("last", "last_quarter"))]
    lines += table(["quarter of the sound", "microseconds per sample"], rows)
    return lines + bullets(gates.wave_gates(record))


def beside_bare_loop(record: Record, title: str, unit: str) -> list[str]:
    lines = heading(title, record)
    lines += [f"Processor time of a batch; {record['shape']}.", ""]
    rows = [
        [
            setting,
            system,
            spread(found["milliseconds"], 1),
            f"{found[f'{unit}_per_second']:,.0f}",
            f"{found['ratio']:.2f}",
        ]
        for setting, systems in record["settings"].items()
        for system, found in systems.items()
    ]
    return lines + table(["", "", "ms", f"{unit}/s", "speed"], rows) + bullets(gates.bare_loop_gates(record))


def streaming(record: Record, name: str, images: Path) -> list[str]:
    rows, minutes = record["rows"], record["minutes"]
    lines = heading("An endless stream", record)
    lines += [
        f"Spoken digits for {minutes} minutes in chunks of a tenth of a second, decoder {record['decoder']}, beam "
        f"{record['beam_size']}: {record['factor']:.3f} s of work per second of sound.",
        "",
    ]
    shown = sorted({0, 1, len(rows) // 4, len(rows) // 2, len(rows) - 1})
    body = [
        [
            str(at + 1),
            f"{rows[at]['seconds']:.2f}",
            f"{rows[at]['fresh']:.2f}",
            f"{rows[at]['megabytes']:.0f}",
            str(rows[at]["states"]),
        ]
        for at in shown
    ]
    lines += table(["minute", "seconds of work", "with a fresh stream", "MB of the process", "states kept"], body)
    return lines + bullets(gates.stream_gates(record))


def engines(record: Record, name: str, images: Path) -> list[str]:
    lines = heading("Engines", record)
    lines += [f"{record['examples']:,} sentences of Multi30k's test set; processor time, from text to text.", ""]
    for search, systems in record["search"].items():
        rows = []
        for system, found in systems.items():
            share = f"{100 * found['identical']:.1f} %" if "identical" in found else ""
            bleu = f"{found['metrics']['bleu']:.2f}" if "metrics" in found else ""
            hand = f"{found['seconds']['ratio']:.2f}" if "ratio" in found["seconds"] else ""
            rows.append([system, spread(found["seconds"], 1), hand, share, bleu])
        lines += [*table([f"**{search}**", "seconds", "relative to by hand", "same as the run", "BLEU"], rows), ""]
    return lines + [f"- {text}: {'met' if met else '**not met**'}" for text, met in record["gates"].items()]


SECTIONS = {
    "train": training,
    "decode": decoding,
    "start": starting,
    "scale": scaling,
    "cells": cells,
    "objectives": objectives,
    "lattice": lattice,
    "pointer": pointer,
    "experts": experts,
    "conv": convolutions,
    "captions": captions,
    "lips": lips,
    "pixels": pixels,
    "waves": waves,
    "bert": bert,
    "stream": streaming,
    "engines": engines,
}


# -- pictures


def bars(rows: list[Row], by: str, path: Path) -> None:
    """Ratios as bars, one group per model or setting."""
    shown = [row for row in rows if "ratio" in row]
    groups = list(dict.fromkeys(row[by] for row in shown))
    systems = list(dict.fromkeys(row["system"] for row in shown))
    figure, (panel,) = plot.figure()
    height = 0.8 / max(len(systems), 1)
    for number, system in enumerate(systems):
        found = [row for row in shown if row["system"] == system]
        places = [groups.index(row[by]) + number * height for row in found]
        panel.barh(places, [row["ratio"] for row in found], height, label=system, color=plot.line(number)["color"])
    panel.set_yticks([place + 0.4 - height / 2 for place in range(len(groups))], groups)
    panel.invert_yaxis()
    panel.axvline(1, color="#888888", linewidth=0.8)
    panel.set_xlabel("relative speed")
    plot.legend(figure, *panel.get_legend_handles_labels())
    plot.save(figure, path)


def corpora(rows: list[Row], path: Path) -> None:
    figure, (panel,) = plot.figure()
    for number, run in enumerate(("first", "later")):
        found = [row for row in rows if row["run"] == run]
        times = [row["starting"]["median"] for row in found]
        panel.plot([row["pairs"] for row in found], times, marker="o", label=f"{run} run", **plot.line(number))
    decorate(figure, panel, "pairs", "start-up, seconds")
    plot.save(figure, path)


def decorate(figure: Any, panel: Any, across: str, up: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel(across)
    panel.set_ylabel(up)
    plot.legend(figure, *panel.get_legend_handles_labels())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description="Write docs/benchmarks.md.")
    parser.add_argument("--folder", type=Path, default=Path(), help="with results and docs in it")
    write_page(parser.parse_args().folder)


if __name__ == "__main__":
    main()
