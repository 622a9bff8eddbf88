"""`seqloom reproduce`: list the studies, or run one and write its record."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, nearest
from seqloom.studies.catalogue import STUDIES
from seqloom.studies.page import estimates, gate_lines, write_page
from seqloom.studies.study import Row, Study, command


def list_results() -> None:
    width = max(map(len, STUDIES))
    for name, study in STUDIES.items():
        gates = ", ".join(f"{gate.text} {gate.bounds()}" for gate in study.gates)
        print(f"{name:{width}}  {study.about}; gate: {gates or 'none'}")


def reproduce_result(name: str, out: Path, settings: list[str], only: Collection[str] = ()) -> dict[str, Any]:
    """Train if needed, measure, and write the record, the picture and the page; with `only`, just these variants."""
    from seqloom.storage.files import replace_file, to_json

    if name not in STUDIES:
        raise SeqloomError(f'no result is called "{name}"{nearest(name, STUDIES)}')
    study = STUDIES[name]
    for label in only:
        if label not in study.variants:
            raise SeqloomError(f'{name} has no variant "{label}"{nearest(label, study.variants)}')
    path = out / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)

    def keep(record: dict[str, Any]) -> None:
        replace_file(path, to_json(record))

    record = study.reproduce(name, out, settings, only, rows_before(path, command(name, settings)), keep)
    keep(record)
    if "missing" not in record and (study.picture or len(study.variants) > 1):
        draw(study, record, out)
    write_page(out)
    for variant, measured in estimates(record).items():
        values = "  ".join(f"{metric} {value}" for metric, value in measured.items())
        print(f"{variant}: {values}" if variant else values)
    for line in gate_lines(record):
        print(line.replace("**not met**", "NOT MET"))
    if "missing" in record:
        print(f"not run yet: {', '.join(record['missing'])}")
    return record


def rows_before(path: Path, typed: str) -> list[Row]:
    """The rows that an earlier call of the same command has measured."""
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    return list(record["rows"]) if record.get("command") == typed else []


def draw(study: Study, record: dict[str, Any], out: Path) -> None:
    """The picture of a study: its own, or the learning curves side by side."""
    from seqloom.analysis import plot
    from seqloom.analysis.compare import compare

    folder, name = out / "docs" / "images", record["name"]
    folder.mkdir(parents=True, exist_ok=True)
    if not study.picture and (gone := [run for run in study.folders(name, out) if not run.is_dir()]):
        print(f"The learning curves are not drawn again: {', '.join(map(str, gone))} of an earlier call are not here.")
        return
    made = study.picture(record) if study.picture else compare(study.folders(name, out)).figure()
    for suffix in ("png", "svg"):
        plot.save(made, folder / f"{name}.{suffix}")
