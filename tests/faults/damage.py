"""Damage to one file of a folder: of its kind, its bytes, or the values in it. All choices are those of a generator."""

from __future__ import annotations

import json
import os
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

Damage = Callable[[Path, Random], None]


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"type": value}
    return value


HOSTILE: list[Any] = [
    *(None, True, False, -1, 0, 1, 3.5, 10**6, 10**9, 2**31, 2**63, 10**30, 1e308, -1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "none", "../../../etc/passwd", "/dev/zero", "os:system"),
    *("\x1b[2J\x9b31m\u202e", "a" * 10_000, "\x00", "\ud800", "5", "1e9", "cpu\n\nx", [], [[]], {}, {"type": "x"}),
    *({"type": None}, {"type": "os:system"}, [1, 2], ["x"] * 1000, [None], deep(40), deep(400), {"": {}}, [{}]),
]


# -- of another kind


def links_to_zero(path: Path, chance: Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def links_to_itself(path: Path, chance: Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def links_to_a_file_of_ours(path: Path, chance: Random) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def becomes_a_pipe(path: Path, chance: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def becomes_a_folder(path: Path, chance: Random) -> None:
    path.unlink()
    path.mkdir()


def is_missing(path: Path, chance: Random) -> None:
    path.unlink()


def becomes_sparse(path: Path, chance: Random) -> None:
    os.truncate(path, 200 << 20)


# -- other bytes


def bits_flip(path: Path, chance: Random) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    for _ in range(chance.choice([1, 1, 1, 8, 100])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def beginning_flips(path: Path, chance: Random) -> None:
    """Where headers are."""
    content = bytearray(path.read_bytes() or b"\0")
    content[chance.randrange(min(64, len(content)))] = chance.randrange(256)
    path.write_bytes(content)


def is_cut(path: Path, chance: Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size + 1))


def is_zeroed(path: Path, chance: Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def is_noise(path: Path, chance: Random) -> None:
    path.write_bytes(chance.randbytes(chance.choice([1, 8, 100, path.stat().st_size])))


def gets_a_tail(path: Path, chance: Random) -> None:
    path.write_bytes(path.read_bytes() + chance.choice([b"\n", b"{}", b"\xff" * 9, chance.randbytes(50)]))


def is_another_text(path: Path, chance: Random) -> None:
    texts = [
        "null",
        "[]",
        "{}",
        "3",
        '"x"',
        "NaN",
        "[" * 100_000,
        '{"a":' * 2000,
        "a" + ".a" * 5000 + " = 1",
        "9" * 5000,
    ]
    path.write_text(chance.choice(texts))


# -- other values


def change_value(value: Any, chance: Random) -> Any:
    """The structure with one of its values, keys or entries changed, anywhere in it."""
    places = list(places_in(value))
    if not places:
        return chance.choice(HOSTILE)
    owner, key = chance.choice(places)
    change = chance.random()
    if change < 0.7:
        owner[key] = chance.choice(HOSTILE)
    elif change < 0.85:
        del owner[key]
    elif isinstance(owner, dict):
        owner[chance.choice(["x", "", "type", "\x1b[31m", "a" * 500, str(key) * 2])] = owner.pop(key)
    else:
        owner.append(owner[key])
    return value


def places_in(value: Any) -> Any:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(entries):
        yield value, key
        yield from places_in(each)


def json_changes(path: Path, chance: Random) -> None:
    path.write_text(json.dumps(change_value(json.loads(path.read_bytes()), chance)))


def line_changes(path: Path, chance: Random) -> None:
    lines = path.read_text().splitlines()
    place = chance.randrange(len(lines))
    lines[place] = json.dumps(change_value(json.loads(lines[place]), chance))
    path.write_text("\n".join(lines) + "\n")


def toml_changes(path: Path, chance: Random) -> None:
    before = path.read_text()
    while True:
        try:
            path.write_bytes(tomli_w.dumps(change_value(tomllib.loads(before), chance)).encode())
            return
        except (TypeError, ValueError, AttributeError, RecursionError):  # TOML has no null, and no halves of pairs
            continue


def a_key_is_there_twice(path: Path, chance: Random) -> None:
    lines = path.read_text().splitlines(keepends=True)
    place = chance.randrange(len(lines))
    path.write_text("".join([*lines[: place + 1], *lines[place:]]))


def tensors_change(path: Path, chance: Random) -> None:
    """Of a safetensors file: the header, or the number that says how long it is."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    name, change = chance.choice(names), chance.randrange(8)
    if change == 0:
        header[name + chance.choice(["x", "\x1b[2J", "/weight", "\u202e"])] = header.pop(name)
    elif change == 1:
        header[name]["dtype"] = chance.choice(["I64", "F16", "BF16", "F64", "U8", "BOOL", "F8_E4M3", "C64", "X", 3])
    elif change == 2:
        header[name]["shape"] = header[name]["shape"][::-1] + chance.choice([[], [1]])
    elif change == 3:
        other = chance.choice(names)
        header[name], header[other] = header[other], header[name]
    elif change == 4:  # the same number of bytes
        header[name] |= {"dtype": "I32" if header[name]["dtype"] == "F32" else "F32"}
    elif change == 5:
        del header[name]
    elif change == 6:
        header[f"{name}/extra"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    else:
        header = change_value(header, chance)
    text = json.dumps(header).encode()
    size = chance.choice([len(text)] * 6 + [2**40, 0])
    path.write_bytes(struct.pack("<Q", size) + text + body)


ANY: list[Damage] = [
    *(links_to_zero, links_to_itself, links_to_a_file_of_ours, becomes_a_pipe, becomes_a_folder, is_missing),
    *(becomes_sparse, bits_flip, bits_flip, beginning_flips, is_cut, is_cut, is_zeroed, is_noise, gets_a_tail),
    is_another_text,
]
BY_SUFFIX: dict[str, list[Damage]] = {
    ".json": [json_changes, json_changes, a_key_is_there_twice],
    ".jsonl": [line_changes, line_changes, a_key_is_there_twice],
    ".toml": [toml_changes, toml_changes, a_key_is_there_twice],
    ".safetensors": [tensors_change],
}


def damage(path: Path, chance: Random) -> str:
    """Damage a file; returns how."""
    own = BY_SUFFIX.get(path.suffix, [])
    chosen = chance.choice(own if own and chance.random() < 0.7 else ANY)
    chosen(path, chance)
    return f"{path.name} {chosen.__name__.replace('_', ' ')}"
