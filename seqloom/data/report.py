"""The report on the data of a training: how much there is, what was skipped, duplicates, leaks, lengths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

from seqloom.data.readers import Tally


@dataclass(frozen=True)
class Report:
    """Counts of examples, unless noted."""

    tally: Tally  # lines of the training data
    valid_tally: Tally | None  # lines of the validation data, where it was given
    train: int
    valid: int
    duplicates: int  # training pairs that came before
    ambiguous: int  # training sources with several targets
    leaks: int  # validation sources that are in the training data too
    held_out: bool  # the validation data was taken from the training data
    length_ratio: float  # the largest target tokens / source tokens in training; 0 for language models
    longest_target: int  # tokens
    running: bool = False  # the examples are the lines of one text
    left_out: list[str] = field(default_factory=list)  # what codecs left out of sources, in sentences

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Read back what `json.dumps(vars(report), default=vars)` wrote."""
        tallies = {
            name: entries[name] and Tally(**{**entries[name], "reasons": Counter(entries[name]["reasons"])})
            for name in ("tally", "valid_tally")
        }
        return cls(**{**entries, **tallies})

    def lines(self) -> list[str]:
        """Short plain sentences."""
        origin = "held out of them" if self.held_out else "given"
        lines = [
            f"Read {self.tally.read:,} {'lines' if self.running else 'examples'}.",
            f"{self.train:,} to train on; {self.valid:,} to validate with, {origin}.",
        ]
        for title, tally in (("training", self.tally), ("validation", self.valid_tally)):
            if tally and tally.skipped:
                lines.append(tally.sentence(title))
        lines += self.left_out
        if self.duplicates:
            lines.append(f"Duplicate pairs: {self.duplicates:,}.")
        if self.ambiguous:
            lines.append(f"Sources with several targets: {self.ambiguous:,}.")
        if self.leaks:
            lines.append(f"Validation sources that are in the training data too: {self.leaks:,}. Scores will flatter.")
        if not self.running:
            lines.append(f"The longest target has {self.longest_target:,} tokens.")
        if self.length_ratio:
            lines.append(f"A target has up to {self.length_ratio:.2g} tokens per source token.")
        return lines
