"""Names and values from files that would steer a terminal: none reaches it as it is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w
from safetensors.torch import load_file, save_file

from seqloom.errors import steers
from tests.faults.folders import copy_of, original
from tests.faults.inside import Written, seqloom_inside

HOSTILE = (
    *("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f\x80\x9f", "a\rb", "a\nb", "a\x0bb\x0cc"),
    *("\u202eevil\u202c", "\u2066a\u2069\u202a\u202b\u202d\u2067\u2068", "a\u2028b\u2029c", "\x00", "\x1b(0\x0e"),
)


def in_recipe(it: Path, *keys: str, value: Any) -> None:
    path = it / "config.toml"
    recipe = tomllib.loads(path.read_text())
    table = recipe
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    path.write_text(tomli_w.dumps(recipe))


def in_json(path: Path, *keys: str, value: Any) -> None:
    content = json.loads(path.read_bytes())
    table = content
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    path.write_text(json.dumps(content))


def newest(it: Path) -> Path:
    return sorted((it / "checkpoints").iterdir())[-1]


def resume(it: Path) -> Written:
    return seqloom_inside("train", "--resume", "--out", it, "--set", "train.steps=5")


def predict(it: Path, *more: str | Path) -> Written:
    return seqloom_inside("predict", it, *more, stdin="123\n")


def tensor_name(it: Path, hostile: str) -> Written:
    tensors = load_file(it / "model.safetensors")
    save_file({**tensors, hostile: next(iter(tensors.values())).clone()}, it / "model.safetensors")
    return predict(it)


def optimiser_name(it: Path, hostile: str) -> Written:
    path = newest(it) / "optimiser.safetensors"
    tensors = load_file(path)
    save_file({**tensors, f"{hostile}/exp_avg": next(iter(tensors.values())).clone()}, path)
    return resume(it)


def device(it: Path, hostile: str) -> Written:
    in_recipe(it, "train", "device", value=hostile)
    return resume(it)


def select_by(it: Path, hostile: str) -> Written:
    in_recipe(it, "train", "select_by", value=hostile)
    return seqloom_inside("compare", it)


def metric(it: Path, hostile: str) -> Written:
    in_recipe(it, "task", "metrics", value=[hostile])
    return predict(it)


def unknown_key(it: Path, hostile: str) -> Written:
    in_recipe(it, "decoder", hostile, value=1)
    return predict(it)


def unknown_value(it: Path, hostile: str) -> Written:
    in_recipe(it, "decoder", "type", value=hostile)
    return seqloom_inside("compare", it, original("translator"))


def checked_recipe(it: Path, hostile: str) -> Written:
    in_recipe(it, "data", "train", value=hostile)
    return seqloom_inside("check", it / "config.toml")


def training_data(it: Path, hostile: str) -> Written:
    in_recipe(it, "data", "train", value=hostile)
    return seqloom_inside("diagnose", it)


def measure(it: Path, hostile: str) -> Written:
    with (it / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"kind": "valid", "step": 5, "seconds": 1.0, hostile: 1.0}) + "\n")
    return seqloom_inside("compare", it)


def environment_value(it: Path, hostile: str) -> Written:
    in_json(it / "environment.json", "machine", value=hostile)
    return resume(it)


def optimiser_value(it: Path, hostile: str) -> Written:
    in_json(newest(it) / "trainer.json", "order", "optimiser", value=hostile)
    return resume(it)


def format_value(it: Path, hostile: str) -> Written:
    in_json(it / "format.json", "format", value=hostile)
    return predict(it)


def folder_name(it: Path, hostile: str) -> Written:
    other = it.with_name(f"run {hostile.replace(chr(0), '')}")
    it.rename(other)
    return seqloom_inside("compare", other)


def missing_folder(it: Path, hostile: str) -> Written:
    return predict(it / hostile.replace("\0", ""))


def sample_line(it: Path, hostile: str) -> Written:
    """Sources and targets that a training shows."""
    rows = it.with_name("rows.jsonl")
    rows.write_text(
        "".join(json.dumps({"source": f"{row} {hostile}", "target": f"{hostile}{row}"}) + "\n" for row in range(30))
    )
    small = ["--set", "train.steps=2", "--set", "train.validate_every=1", "--set", "train.device=cpu"]
    return seqloom_inside("train", "dates", "--data", rows, "--out", it.with_name("new"), *small)


def label(it: Path, hostile: str) -> Written:
    rows = it.with_name("rows.jsonl")
    rows.write_text("".join(json.dumps({"source": f"{row}", "target": hostile + "x"}) + "\n" for row in range(30)))
    return seqloom_inside("diagnose", it, "--data", rows)


def data_name(it: Path, hostile: str) -> Written:
    return seqloom_inside("evaluate", it, "--data", it / hostile.replace("\0", ""))


def wrong_option(it: Path, hostile: str) -> Written:
    return seqloom_inside("predict", it, "--set", f"{hostile.replace(chr(0), '')}=1", stdin="123\n")


PLACES: tuple[Callable[[Path, str], Written], ...] = (
    *(tensor_name, device, unknown_key, measure, folder_name, label, sample_line, select_by, metric, unknown_value),
    *(optimiser_name, checked_recipe, training_data, environment_value, optimiser_value, format_value),
    *(missing_folder, data_name, wrong_option),
)
SHORT, LONG = len(PLACES), len(PLACES) * len(HOSTILE)


def attack(number: int, folder: Path) -> str | None:
    place = PLACES[number % len(PLACES)]
    hostile = HOSTILE[(number // len(PLACES) + number) % len(HOSTILE)]
    written = place(copy_of("translator", folder), hostile)
    for stream, text in (("standard output", written.out), ("standard error", written.err)):
        if found := [character for character in text if steers(character) and character not in "\n\t"]:
            return f"{place.__name__} with {hostile!r}: {stream} gets {found}"
    if written.code not in (0, 2):
        return f"{place.__name__} with {hostile!r}: exit code {written.code}: {written.err[-300:]!r}"
    return None
