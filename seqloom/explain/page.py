"""An explanation as one HTML page that needs nothing else: no network, no fonts, no scripts but its own."""

import json
from html import escape
from importlib.resources import files
from typing import Any

from seqloom.explain.record import Explanation
from seqloom.explain.terminal import render

PLACEHOLDER = "<!-- explanation -->"


def page(explanation: Explanation) -> str:
    """The whole page. Readers without JavaScript see what the terminal shows."""
    data = f'<script type="application/json" id="explanation">{embedded(explanation.to_json())}</script>'
    plain = f"<noscript><pre>{escape(render(explanation))}</pre></noscript>"
    template = files("seqloom.explain").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(PLACEHOLDER, f"{data}\n{plain}", 1)


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment.

    Everything outside ASCII is escaped as well, so U+2028, U+2029 and lone surrogates are harmless.
    """
    text = json.dumps(rounded(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def rounded(value: Any) -> Any:
    """Four decimals are more than an eye can see, and a third of the page."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return [rounded(entry) for entry in value] if isinstance(value, list) else value
