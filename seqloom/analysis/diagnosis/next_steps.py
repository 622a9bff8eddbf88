"""The three commands to try next: those of the findings, then what helps most models."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding

THREE = 3


def next_steps(findings: Sequence[Finding], commands: Commands) -> list[str]:
    """Each command once, in the order of the findings."""
    seed, over = int(commands.recipe.get("seed", 0)) + 1, any(each.name == "over-trained" for each in findings)
    wished = [
        *(finding.command for finding in findings if finding.command),
        commands.again(f"seed-{seed}", f"seed={seed}"),  # two seeds are an ensemble, and show what is chance
        commands.label_smoothing() if over else commands.longer(),
        commands.more_dropout(),
    ]
    return list(dict.fromkeys(wished))[:THREE]
