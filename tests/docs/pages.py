"""The fenced blocks of a page, and how a console block is compared with what its commands print.

`console` blocks have commands after "$ " (continued after "> ") and what these print; `sh` blocks are scripts; `python`
and `toml` are what they say. Blocks within an HTML comment run as well, unseen by readers: they make the files that a
page takes for granted. A comment right before a block may say

    <!-- not run: why -->          it is not executed
    <!-- outputs vary: why -->     it is executed, but its outputs are those of a longer training, and are not compared
    <!-- file: name -->            it is executed, and first written to that file
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
RUN = ("console", "sh", "python", "toml")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- (not run|outputs vary|file): (.+?) -->\s*\Z")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""  # "not run", "outputs vary" or "file"
    reason: str = ""  # or the name of the file

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """The commands of a console block, each with the lines that follow it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> ") and found and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
            elif found:
                found[-1][1].append(line)
            else:
                raise AssertionError(f'{self}: a console block begins with "$ "')
        return found


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        mark = MARK.search(text[: match.start()])
        indent = len(match[1])
        body = "".join(line[indent:] if line.strip() else "\n" for line in match[3].splitlines(keepends=True))
        line = text[: match.start()].count("\n") + 1
        found.append(Block(page, line, match[2], body, *(mark.groups() if mark else ())))
    return found


def matches(expected: list[str], printed: str) -> bool:
    """Whether a command printed what the page says; "..." stands for anything, alone on a line for any lines."""
    pattern = ""
    for line in expected:
        escaped = ".*".join(map(re.escape, line.rstrip().split("...")))
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else f"{escaped} *\\n"
    return re.fullmatch(pattern, printed if printed.endswith("\n") else f"{printed}\n") is not None


def same_keys(expected: list[str], printed: str) -> bool:
    """Of a page whose figures vary: objects in JSON have the keys that the page shows."""
    ours, theirs = (
        [sorted(json.loads(line)) for line in each if line.startswith("{")] for each in (expected, printed.splitlines())
    )
    return not ours or ours == theirs[-len(ours) :]
