"""Sources that are too long, lines without an end, at every door: refused or cut, in bounded time and memory."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seqloom.cli.predict import chunks
from seqloom.errors import SeqloomError
from seqloom.predictor import Predictor
from tests.faults.command import Finished, seqloom
from tests.faults.untrained import ALPHABET, RECIPES, untrained, untrained_run

SHORT, LONG = 50, 6000
EVERY = 100  # one of so many is a command
LIMIT = 30  # characters, of the models that are asked in this process
TEXTS = [name for name in RECIPES if name != "speech"]


def attack(number: int, folder: Path) -> str | None:
    if number % EVERY == 1:
        return list(COMMANDS.values())[number // EVERY % len(COMMANDS)](folder).problem()
    chance = random.Random(number)
    return lines(chance) if number % 2 else doors(chance)


def lines(chance: random.Random) -> str | None:
    """Standard input in pieces of all sizes; what is read must be the lines, cut, or an error that names one."""
    limit, truncate = chance.randint(1, 20), chance.random() < 0.5
    alphabet = ["a", "é", "語", "🙂", "\n", "\r\n"] + (["\ud800"] if chance.random() < 0.2 else [])
    text = "".join(chance.choices(alphabet, [5, 1, 1, 1, 1, 1, 1][: len(alphabet)], k=chance.randint(0, 300)))
    raw = text.encode(errors="surrogatepass")
    expected = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    try:
        found = [line for part in chunks(Slow(raw, chance), limit, truncate) for line in part]
    except SeqloomError as error:
        number = int(str(error).split("line ")[1].split(",")[0].split(":")[0])
        bad = expected[number - 1]
        return None if "\ud800" in bad or (len(bad) > limit and not truncate) else f"{bad!r} was refused: {error}"
    wanted = [line[:limit] for line in expected]
    if any(len(line) > limit for line in expected) and not truncate:
        return f"a line of more than {limit} characters was read"
    return None if found == wanted else f"{raw!r} was read as {found}"


class Slow(io.BytesIO):
    """A pipe that brings some bytes at a time."""

    def __init__(self, raw: bytes, chance: random.Random):
        super().__init__(raw)
        self.chance = chance

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(self.chance.randint(1, 40))


def doors(chance: random.Random) -> str | None:
    """Each door of a model: what is too long is refused by one line that says how to go on, or cut."""
    model = untrained(chance.choice(TEXTS))
    model.max_characters = LIMIT
    text = (
        "".join(chance.choices(ALPHABET, k=chance.choice([1, LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT]))).strip() or "a"
    )
    possible = [name for name in DOORS if name not in REFUSED.get(model.recipe["encoder"]["type"], ())]
    name, truncate, too_long = chance.choice(possible), chance.random() < 0.5, len(text) > LIMIT
    try:
        DOORS[name](model, text, truncate)
    except SeqloomError as error:
        message = str(error)
        if "no output for" in message and name == "prefix":
            return None  # for so short a source
        if "\n" in message or not too_long or (truncate and name not in UNCUT):
            return f"{name}: {message}"
        return None if f"{LIMIT}" in message and "max_characters" in message else f"{name} says only: {message}"
    return f"{name} took {len(text)} characters" if too_long and (not truncate or name in UNCUT) else None


def through_stream(model: Predictor, text: str, truncate: bool) -> Any:
    waits: dict[str, Any] = {} if model.model.decoder.online else {"wait": 2}
    with model.stream(truncate=truncate, **waits) as stream:
        for begin in range(0, len(text), 7):
            stream.feed(text[begin : begin + 7])
    return stream.close()


DOORS: dict[str, Callable[[Predictor, str, bool], Any]] = {
    "predict": lambda model, text, truncate: model.predict(["a", text], truncate=truncate),
    "candidates": lambda model, text, truncate: model.candidates([text], truncate=truncate, details=False),
    "explain": lambda model, text, truncate: model.explain(text, truncate=truncate, n_best=1),
    "stream": through_stream,
    "score": lambda model, text, truncate: model.score([(text, "a")]),
    "evaluate": lambda model, text, truncate: model.evaluate([("a", "b"), (text, "a")]),
    "prefix": lambda model, text, truncate: model.predict(["a"], prefix=text),
}
REFUSED = {"transformer": ("stream",)}  # by what the encoder is
UNCUT = ("score", "evaluate", "prefix")  # pairs and what a user asks for are never cut


def predict(name: str, characters: int, *options: str, ends: bool = True) -> Callable[[Path], Finished]:
    """`seqloom predict`, with one long line on standard input."""
    text = (ALPHABET * (characters // len(ALPHABET) + 1))[:characters].encode() + b"\n" * ends
    return lambda folder: seqloom("predict", untrained_run(name, folder), *options, folder=folder, stdin=text)


def with_data(verb: str, *options: str) -> Callable[[Path], Finished]:
    """A verb that reads pairs, from a file that never ends."""
    return lambda folder: seqloom(
        verb, untrained_run("recurrent", folder), "--data", "/dev/zero", *options, folder=folder
    )


def stream(*options: str) -> Callable[[Path], Finished]:
    text = ALPHABET.encode() * 500_000
    return lambda folder: seqloom("stream", untrained_run("ctc", folder), *options, folder=folder, stdin=text)


def exported(*options: str) -> Callable[[Path], Finished]:
    def run(folder: Path) -> Finished:
        run = untrained_run("recurrent", folder)
        done = seqloom("export", run, "--to", "onnx", "--out", "exported", folder=folder, seconds=60)
        if done.problem():
            return done
        return seqloom("predict", "exported", *options, folder=folder, stdin=b"abc " * 100_000)

    return run


COMMANDS: dict[str, Callable[[Path], Finished]] = {
    "32 MB without an end": predict("recurrent", 32_000_000, ends=False),
    "score /dev/zero": with_data("score"),
    "3,000 characters": predict("recurrent", 3_000),
    "32 MB, cut": predict("ctc", 32_000_000, "--truncate", "--max-characters", "100", ends=False),
    "100,000 characters": predict("transformer", 100_000),
    "cut to 2,000": predict("transformer", 100_000, "--truncate", "--max-characters", "2000"),
    "CTC": predict("ctc", 5_000),
    "transducer": predict("transducer", 1_000),
    "all attention": predict("recurrent", 2_500, "--attention"),
    "evaluate /dev/zero": with_data("evaluate"),
    "skip /dev/zero": with_data("score", "--skip-bad"),
    "stream": stream(),
    "stream, cut": stream("--truncate", "--max-characters", "1000"),
    **({"exported": exported(), "exported, cut": exported("--truncate")} if find_spec("onnxruntime") else {}),
}
