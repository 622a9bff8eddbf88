"""Files of examples in every format with random damage, as files and as standard input: read, skipped or one line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
from pyarrow import parquet

from seqloom.config.automatic import recipe_for
from seqloom.contracts import Codec
from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import Places
from seqloom.data.codecs.story import Story
from seqloom.data.codecs.text import Text
from seqloom.data.codecs.words import Words
from seqloom.data.dataset import prepare
from seqloom.data.layout import Layout
from seqloom.data.readers import Tally, read
from seqloom.data.survey import survey
from seqloom.types import Example
from tests.faults.calls import problem_of
from tests.faults.command import seqloom
from tests.faults.texts import damaged
from tests.faults.untrained import untrained, untrained_run

SHORT, LONG = 300, 30_000
EVERY = 1000  # one of so many is a command
Pair = tuple[str, str]
WORDS = ("a", "bc", "def", "g'h", "語", "naïve", "x.", "The", "1", "-2.5", "🙂")
TEXTS: list[Callable[[random.Random], str]] = [
    lambda chance: " ".join(chance.choices(WORDS, k=chance.randint(1, 8))),
    lambda chance: " ".join(f"{chance.random():.2f},{chance.random():.2f}" for _ in range(chance.randint(1, 5))),
    lambda chance: " ".join(str(chance.randrange(5)) for _ in range(chance.randint(1, 5))),
    lambda chance: f"{chance.choice(WORDS)} is here. It rains. Where is {chance.choice(WORDS)}?",
    lambda chance: chance.choice(("yes", "no", "0", "1.5")),
]
LAYOUTS: list[tuple[str | int, ...]] = [
    (),
    (),
    (),
    (1, 2),
    (2, 1),
    ("source", "target"),
    (3, 1),
    ("text",),
    (1,),
    (10**9, 1),
]


def attack(number: int, folder: Path) -> str | None:
    chance = random.Random(number)
    form = chance.choice(list(FORMATS))
    pairs = some_pairs(chance)
    if number % 10 == 0:
        return problem_of(lambda: read_whole(form, pairs, folder))
    if number % 10 == 1:
        return problem_of(lambda: skip_bad_lines(chance, pairs, folder))
    paths = write(form, pairs, chance, folder)
    if number % EVERY == 2:
        verb, options = chance.choice(("score", "evaluate")), chance.choice(([], ["--skip-bad"]))
        run = untrained_run("recurrent", folder)
        return seqloom(verb, run, "--data", *paths, *options, folder=folder).problem()
    door = chance.choice(DOORS)
    problem = problem_of(lambda: door(paths, chance, folder))
    return problem and f"{form}, {door.__name__}: {problem}"


def some_pairs(chance: random.Random) -> list[Pair]:
    sides = chance.choice(TEXTS), chance.choice(TEXTS)
    return [(sides[0](chance), sides[1](chance)) for _ in range(chance.choice((1, 2, 12, 30)))]


# -- files


def tsv(pairs: Iterable[Pair]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode()


def comma_separated(pairs: Iterable[Pair], separator: str = ",") -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter=separator).writerows(pairs)
    return file.getvalue().encode()


def records(pairs: Iterable[Pair]) -> list[dict[str, str]]:
    return [{"source": source, "target": target} for source, target in pairs]


def columnar(pairs: Iterable[Pair]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(records(pairs)), file)
    return file.getvalue()


FORMATS: dict[str, Callable[[list[Pair]], bytes]] = {
    "tsv": tsv,
    "csv": comma_separated,
    "jsonl": lambda pairs: "".join(f"{json.dumps(each)}\n" for each in records(pairs)).encode(),
    "json": lambda pairs: json.dumps([*pairs, *records(pairs)], ensure_ascii=False, indent=1).encode(),
    "parquet": columnar,
    "txt": lambda pairs: "".join(f"{source}\n" for source, _ in pairs).encode(),
}


def write(form: str, pairs: list[Pair], chance: random.Random, folder: Path) -> list[str]:
    """Damaged files: one, or two that are aligned; plain, packed and then damaged, or damaged and then packed."""
    content = FORMATS[form](pairs)
    if form == "csv" and chance.random() < 0.3:
        content = comma_separated(pairs, ";")
    if form in ("csv", "tsv") and chance.random() < 0.3:
        content = chance.choice((b"source\ttarget\n", b"source,target\r\n", b"id,text,label\n")) + content
    packed = form != "parquet" and chance.random() < 0.2
    if packed and chance.random() < 0.5:
        content = damaged(gzip.compress(content), chance)
    else:
        content = damaged(content, chance)
        content = gzip.compress(content) if packed else content
    path = folder / f"data.{form}{'.gz' * packed}"
    path.write_bytes(content)
    if form == "txt" and chance.random() < 0.5:
        other = folder / "other.txt"
        other.write_bytes(damaged(FORMATS["txt"](pairs), chance))
        return [str(path), str(other)]
    return [str(path)]


# -- what must be read


def read_whole(form: str, pairs: list[Pair], folder: Path) -> str | None:
    """What is not damaged is read as it was written."""
    path = folder / f"whole.{form}"
    path.write_bytes(FORMATS[form](pairs))
    columns = 1 if form == "txt" else 2
    layout = Layout(header=False) if form in ("csv", "tsv") else Layout()
    found = [(example.source, example.target) for example in read([path], columns, layout=layout)]
    expected: list[Any] = (
        [(None, source) for source, _ in pairs] if form == "txt" else pairs * (2 if form == "json" else 1)
    )
    return None if found == expected else f"{form}: {expected} was read as {found}"


def skip_bad_lines(chance: random.Random, pairs: list[Pair], folder: Path) -> str | None:
    """Damage within some lines leaves the others as they were."""
    form = chance.choice(("tsv", "jsonl"))
    lines = FORMATS[form](pairs).removesuffix(b"\n").split(b"\n")
    bad = {chance.randrange(len(lines)) for _ in range(chance.randint(1, 3))}
    for place in bad:
        changed = damaged(lines[place], chance).replace(b"\n", b" ").replace(b"\r", b" ")
        lines[place] = changed.replace(b'"', b"'") if form == "tsv" else changed  # where quotes enclose lines
    path = folder / f"lines.{form}"
    path.write_bytes(b"\n".join(lines) + b"\n")
    tally = Tally()
    layout = Layout(header=False) if form == "tsv" else Layout(("source", "target"))
    found = {each.line: each for each in read([path], layout=layout, skip_bad=True, tally=tally)}
    for place, (source, target) in enumerate(pairs):
        each = found.get(place + 1)
        if place not in bad and (each is None or (each.source, each.target) != (source, target)):
            return f"{form}, line {place + 1}, {(source, target)}, was read as {each}; {sorted(bad)} were damaged"
    return None if tally.read - tally.skipped == len(found) else f"{form}: {tally} of {len(found)} examples"


# -- doors


def options_of(chance: random.Random) -> dict[str, Any]:
    layout = Layout(
        chance.choice(LAYOUTS), chance.choice((None, None, True, False)), chance.choice((None, None, True, False))
    )
    return {"layout": layout, "skip_bad": chance.random() < 0.5, "max_characters": chance.choice((1, 20, 500, 20_000))}


def read_file(paths: list[str], chance: random.Random, folder: Path) -> str | None:
    given = options_of(chance)
    columns = chance.choice((1, 2, 2)) if len(paths) == 1 else 2
    running = columns == 1 and chance.random() < 0.5
    located = ("target" if columns == 1 else "source",) if chance.random() < 0.1 else ()
    found = list(read(paths, columns, running=running, located=located, **given))
    for example in found:
        for value in (example.source, example.target):
            if isinstance(value, str) and len(value) > given["max_characters"] + len(str(folder)) + 1:
                return f"{len(value)} characters of at most {given['max_characters']}"
    return None


def read_standard_input(paths: list[str], chance: random.Random, folder: Path) -> str | None:
    with open(paths[0], "rb") as file, patch.object(sys, "stdin", io.TextIOWrapper(file)):
        for _ in read(["-"], chance.choice((1, 2)), **options_of(chance)):
            pass
    return None


def choose_recipe(paths: list[str], chance: random.Random, folder: Path) -> str | None:
    recipe_for(survey(read(paths, **{**options_of(chance), "max_characters": 20_000})))
    return None


def prepare_training(paths: list[str], chance: random.Random, folder: Path) -> str | None:
    """Hold out, fit codecs, encode."""
    source = chance.choice(CODECS)() if chance.random() < 0.9 or len(paths) == 2 else None
    target = chance.choice((Text(units="char"), Text(units="word"), Text(units="byte"), Numbers(), Places()))
    data = prepare(paths, source=source, target=target, seed=1, cache=folder / "cache", **options_of(chance))
    return None if len(data.train) else "nothing to train on"


def evaluate(paths: list[str], chance: random.Random, folder: Path) -> str | None:
    model = untrained(chance.choice(("recurrent", "transformer", "ctc")))
    examples: list[Example] = list(islice(model.examples(paths, skip_bad=chance.random() < 0.5), 3))
    short = [(each.source[:20], each.target[:20]) for each in examples]
    model.evaluate(short) if chance.random() < 0.5 else model.score(short)
    return None


CODECS: list[Callable[[], Codec]] = [
    lambda: Text(units="char"),
    lambda: Text(units="bpe", size=300),
    Numbers,
    Story,
    Words,
]
DOORS = (read_file, read_file, read_file, read_standard_input, choose_recipe, prepare_training, evaluate)
