"""Standard streams that are closed, full, or that nobody reads, under every verb."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.command import SECONDS
from tests.faults.folders import data, home, original

COMMANDS: tuple[tuple[str, ...], ...] = (  # {NAME} is a folder; one word each
    ("predict", "{translator}"),
    ("predict", "{ctranslate2}"),
    ("recipes",),
    ("evaluate", "{translator}"),
    ("score", "{translator}"),
    ("stream", "{text}"),
    ("generate", "{text}"),
    ("explain", "{translator}", "123"),
    ("diagnose", "{translator}"),
    ("check", "dates"),
    ("compare", "{translator}"),
    ("data", "dates", "--count", "20000"),
    ("average", "{translator}", "--out", "mean"),
    ("export", "{transformer}", "--to", "ctranslate2", "--out", "exported"),
    ("train", "dates", "--data", "{pairs}", "--out", "new", "--set", "train.steps=2", "--set", "train.device=cpu"),
    ("--help",),
    ("nonsense",),
)
STREAMS = ("out broken", "out closed", "out full", "in closed", "err closed", "err full", "all closed", "err broken")
FOLDERS = ("translator", "ctranslate2", "text", "transformer", "pairs")
REDIRECTIONS = {
    "out closed": ">&-",
    "out full": ">/dev/full",
    "in closed": "<&-",
    "err closed": "2>&-",
    "err full": "2>/dev/full",
    "all closed": "<&- >&- 2>&-",
}
SHORT, LONG = 4, len(COMMANDS) * len(STREAMS)


def attack(number: int, folder: Path) -> str | None:
    turn, place = divmod(number, len(COMMANDS))
    words, streams = COMMANDS[place], STREAMS[(turn + place) % len(STREAMS)]
    places = {name: data() if name == "pairs" else original(name) for name in FOLDERS if f"{{{name}}}" in words}
    code, err = run([sys.executable, "-m", "seqloom", *(word.format(**places) for word in words)], streams, folder)
    about = f"{' '.join(words)} with {streams}: exit code {code}: {err[-300:]!r}"
    if "Traceback" in err or "Exception ignored" in err or err.count("seqloom: ") > 1:
        return about
    mistaken = words[0] in ("nonsense", "stream")  # the text is no source to stream
    if code not in ((0,) if streams == "out broken" and not mistaken else (0, 2)):
        return about
    if streams == "out full" and code == 2 and not mistaken and "standard output: No space left" not in err:
        return about
    return None


def run(command: list[str], streams: str, folder: Path) -> tuple[int, str]:
    """A command with such streams: its exit code, and what it wrote to standard error."""
    own = {"SEQLOOM_CACHE": str(home() / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
    source = b"123\n" * 3000 if command[3] == "predict" else b"123\t321\n" * 100
    reader, nobody = os.pipe()
    os.close(reader)
    try:
        finished = subprocess.run(
            ["sh", "-c", f'exec "$@" {REDIRECTIONS.get(streams, "")}', "sh", *command],
            input=source,
            stdout=nobody if streams == "out broken" else subprocess.PIPE,
            stderr=nobody if streams == "err broken" else subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **own},
            timeout=3 * SECONDS,
            check=False,
        )
    finally:
        os.close(nobody)
    return finished.returncode, (finished.stderr or b"").decode(errors="replace")
