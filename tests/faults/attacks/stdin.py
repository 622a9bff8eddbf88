"""Lines on standard input with random damage, for every way to predict: as many lines out, or one that names a line."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from seqloom.cli.predict import predict_lines
from seqloom.cli.stream import stream_input
from seqloom.errors import SeqloomError
from tests.faults.calls import problem_of
from tests.faults.command import seqloom
from tests.faults.texts import damaged
from tests.faults.untrained import ALPHABET, untrained, untrained_run

SHORT, LONG = 60, 5_000
EVERY = 500  # one of so many is a command
LIMIT, MOST = 40, 40  # characters of a line; lines: these models answer at length
OPTIONS = {"truncate": False, "maximum_length": 6}
WAYS: dict[str, dict[str, object]] = {
    "plain": {},
    "n-best": {"n_best": 2},
    "attention": {"attention": True},
    "unknown words": {"replace_unknown": True},
    "cut": {"truncate": True},
}


def attack(number: int, folder: Path) -> str | None:
    chance = random.Random(number)
    text = "".join(
        "".join(chance.choices(ALPHABET, k=chance.randint(0, 12))) + chance.choice(("\n", "\n", "\r\n"))
        for _ in range(chance.randint(1, 8))
    )
    content = b"\n".join(damaged(text.encode(), chance).split(b"\n")[:MOST])
    name = chance.choice(("recurrent", "transformer", "ctc", "transducer"))
    if number % EVERY == 1:
        verb = "predict" if name == "transformer" else chance.choice(("predict", "stream"))
        wait = ["--wait", "2"] if verb == "stream" and name == "recurrent" else []
        return seqloom(verb, untrained_run(name, folder), *wait, folder=folder, stdin=content).problem()
    model = untrained(name)
    model.max_characters = LIMIT
    streams = name != "transformer" and chance.random() < 0.3
    possible = [way for way in WAYS if way != "unknown words" or not model.model.decoder.online]  # which need attention
    way = "stream" if streams else chance.choice(possible)

    def call() -> str | None:
        if streams:
            wait = None if model.model.decoder.online else 2
            return lines_match(
                content, folder, lambda: stream_input(lambda: model.stream(wait=wait), None, False, None)
            )
        asked = {**OPTIONS, **WAYS[way]}
        as_json = way in ("n-best", "attention")
        return lines_match(content, folder, lambda: predict_lines(model, as_json, asked), as_json)

    problem = problem_of(call)
    return problem and f"{name}, {way}, {content[:200]!r}: {problem}"


def lines_match(content: bytes, folder: Path, run: Callable[[], None], as_json: bool = False) -> str | None:
    """Run with the content as standard input; an error must name a line that there is."""
    path, out = folder / "input", io.StringIO()
    path.write_bytes(content)
    count = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    with open(path, "rb") as file, patch.object(sys, "stdin", io.TextIOWrapper(file)):
        try:
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                run()
        except SeqloomError as error:
            named = str(error).partition("standard input, line ")[2].split(":")[0].split(",")[0]
            if named.isdigit() and not 1 <= int(named) <= count:
                return f"names line {named} of {count}: {error}"
            return None if "standard input" in str(error) or "no output for" in str(error) else f"says only {error}"
    found = out.getvalue().removesuffix("\n").split("\n") if out.getvalue() else []
    if as_json:
        for line in found:
            json.loads(line)
    return None if len(found) == count else f"{count} lines in, {len(found)} out: {out.getvalue()[:200]!r}"
