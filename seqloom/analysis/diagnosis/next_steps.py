"""The three commands to try next: those of the findings, then what helps most models."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding

THREE = 3


def next_steps(findings: Sequence[Finding], commands: Commands) -> list[str]:
    """Each command once, in the order of the findings."""
    seed = int(commands.recipe.get("seed", 0)) + 1
    wished = [
        *(finding.command for finding in findings if finding.command),
        commands.again(f"seed-{seed}", f"seed={seed}"),  # two seeds are an ensemble, and show what is chance
        commands.more_dropout(),
        commands.longer(),
    ]
    return list(dict.fromkeys(wished))[:THREE]
