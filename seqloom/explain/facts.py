"""Facts about a model that are shown beside an explanation."""

from __future__ import annotations

from typing import Any

from seqloom.inference.system import System
from seqloom.types import Memory


def model_facts(system: System, own: Any = None, wide: Any = None) -> dict[str, str]:
    """Parts, size, and the beam of the search that answers; a wider one for the n-best list is named as well."""
    recipe = system.recipe
    beam = "" if own is None else str(own.beam_size)
    if wide is not own:
        beam += f" (n-best list: {wide.beam_size})"
    facts = {
        "run": system.path.name if system.path else "",
        "encoder": recipe.get("encoder", {}).get("type", ""),
        "decoder": recipe["decoder"]["type"],
        "attention": recipe["decoder"].get("attention", {}).get("type", ""),
        "parameters": f"{sum(value.numel() for value in system.model.parameters()):,}",
        "beam": beam,
    }
    return {name: value for name, value in facts.items() if value}


def encoder_steps(memory: Memory) -> list[float]:
    """How many steps an adaptive encoder took at each position of its one source; empty for other encoders."""
    steps = memory.extra.get("steps")  # (1, T, 1)
    return [] if steps is None else steps[0, :, 0].tolist()


def encoder_experts(memory: Memory) -> dict[str, list[list[int]]]:
    """Which experts each position of its one source used in each layer; empty for encoders without experts."""
    return {layer: used[0].tolist() for layer, used in memory.extra.get("experts", {}).items()}  # (1, T, k)
