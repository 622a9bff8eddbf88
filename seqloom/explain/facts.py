"""Small facts that a page shows beside an explanation."""

from __future__ import annotations

from typing import Any

from seqloom.inference.system import System
from seqloom.types import Memory


def facts(system: System, *searches: Any) -> dict[str, str]:
    """Small facts of the model, and how wide the search was that answers, and that for the other outputs."""
    widths = dict.fromkeys(str(search.beam_size) for search in searches)
    recipe = system.recipe
    parameters = sum(value.numel() for value in system.model.parameters())
    described = {
        "run": system.path.name if system.path else "",
        "encoder": recipe.get("encoder", {}).get("type", ""),
        "decoder": recipe["decoder"]["type"],
        "attention": recipe["decoder"].get("attention", {}).get("type", ""),
        "parameters": f"{parameters:,}",
        "beam": ", for the others ".join(widths),
    }
    return {name: value for name, value in described.items() if value}


def encoder_steps(memory: Memory) -> list[float]:
    """How often an adaptive encoder stepped at each position of its one source; empty for others."""
    taken = memory.extra.get("steps")  # (1, T, 1)
    return [] if taken is None else taken[0, :, 0].tolist()
