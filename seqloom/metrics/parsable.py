"""Parsable: predictions that are a line of Python, in percent. Nothing is run.

A line may open or continue a block: what it lacks to be parsed alone is added. References are ignored.
"""

from __future__ import annotations

import ast
import re
import warnings

HIGHER_IS_BETTER = True
AFTER = {"elif": "if x: pass\n", "else": "if x: pass\n", "except": "try: pass\n", "finally": "try: pass\n"}
BEFORE = {"try": "\nexcept: pass", "@": "\ndef f(): pass"}


def parsable(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    return {"parsable": 100 * sum(map(is_parsable, predictions)) / max(len(predictions), 1)}


def is_parsable(line: str) -> bool:
    line = line.strip()
    first = re.match(r"@|\w*", line)
    keyword = first.group() if first else ""
    block = f"{line} pass" if line.endswith(":") else line
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            ast.parse(AFTER.get(keyword, "") + block + BEFORE.get(keyword, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(line)
