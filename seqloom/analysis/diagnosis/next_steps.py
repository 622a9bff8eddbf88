"""The three commands to try next: those of the findings, then what helps in general."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding

THREE = 3


def next_steps(findings: Sequence[Finding], commands: Commands) -> list[str]:
    """Each command once, in the order of the findings."""
    asked = [finding.command for finding in findings if finding.command]
    return list(dict.fromkeys([*asked, *general_steps({finding.name for finding in findings}, commands)]))[:THREE]


def general_steps(names: set[str], commands: Commands) -> list[str]:
    """What is worth a try beside the advice of the findings."""
    if "learning-rate-too-high" in names:
        warmup = 2 * max(commands.recipe.get("train", {}).get("warmup", 0), 50)
        return [commands.again("warm", f"train.warmup={warmup}"), commands.again("clipped", "train.clip=0.3")]
    seed = int(commands.recipe.get("seed", 0)) + 1
    other_seed = commands.again(f"seed-{seed}", f"seed={seed}")  # two are an ensemble, and show what is chance
    if "over-trained" in names:
        return [other_seed, commands.label_smoothing()]
    return [other_seed, commands.longer(), commands.more_dropout()]
