"""An explanation as one HTML file that needs no network: styles, scripts and data are inside it.

The scripts are ES modules, one per view. Modules inside one file cannot import each other, so `bundle` joins them.
"""

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from seqloom.explain.record import Explanation
from seqloom.explain.terminal import render

IMPORT = re.compile(r'^import \{ (.+) \} from "\./(.+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:class|const|function) (\w+))", re.MULTILINE)


def page(explanation: Explanation) -> str:
    """The whole page. Readers without JavaScript see what the terminal shows."""
    data = f'<script type="application/json" id="explanation">{embed(explanation.to_json())}</script>'
    plain = f"<noscript><pre>{escape(render(explanation))}</pre></noscript>"
    return skeleton().replace("<!-- explanation -->", f"{data}\n{plain}", 1)


@cache
def skeleton() -> str:
    """The page without an explanation."""
    styles = f"<style>\n{read('style.css')}</style>"
    program = f'<script>\n"use strict";\nconst modules = {{}};\n{"".join(bundle("main.js").values())}</script>'
    return read("page.html").replace("<!-- style -->", styles, 1).replace("<!-- program -->", program, 1)


def bundle(name: str) -> dict[str, str]:
    """A module after those it imports, by name: each as a function that is called once and returns what it exports."""
    text = read(name)
    bundled: dict[str, str] = {}
    for names, other in IMPORT.findall(text):
        bundled |= bundle(other)
        if missing := {*names.split(", ")} - {*EXPORT.findall(read(other))}:
            raise ImportError(f"{name}: {other} does not export {', '.join(missing)}")
    exported = ", ".join(EXPORT.findall(text))
    text = EXPORT.sub("", IMPORT.sub(r'const { \1 } = modules["\2"];', text))
    if other_form := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
        raise ImportError(f"{name}: cannot bundle {other_form[0]!r}")
    return {**bundled, name: f'\nmodules["{name}"] = (() => {{\n{text}return {{ {exported} }};\n}})();\n'}


def read(name: str) -> str:
    """A file of this folder."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def embed(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment.

    Everything outside ASCII is escaped as well, so U+2028, U+2029 and lone surrogates are harmless.
    """
    text = json.dumps(round_floats(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def round_floats(value: Any) -> Any:
    """To four decimals: finer than anyone can see, and a third of the size."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: round_floats(entry) for key, entry in value.items()}
    return [round_floats(entry) for entry in value] if isinstance(value, list) else value
