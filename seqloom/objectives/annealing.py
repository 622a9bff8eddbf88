"""From target tokens to the model's own, from the end of the output backwards. Ranzato et al. 2016, algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Annealing:
    """All target tokens are given for the first share `wait` of training, then `delta` fewer at each equal stage."""

    delta: int
    wait: float
    longest: int  # T: the length of the longest output; 0: of the longest in each batch

    def __post_init__(self) -> None:
        if self.delta < 1 or self.longest < 0:
            raise ValueError(f"delta = {self.delta} must be 1 or more, and longest = {self.longest} 0 or more")
        if not 0 <= self.wait < 1:
            raise ValueError(f"wait = {self.wait} must be in [0, 1)")

    def given(self, progress: float, width: int) -> int:
        """How many first tokens of each output are given; `width` is the longest output of the batch, with EOS."""
        longest = self.longest or width
        if progress < self.wait:
            return max(longest, width)
        stages = math.ceil(longest / self.delta)
        stage = min(1 + math.floor((progress - self.wait) / (1 - self.wait) * stages), stages)
        return max(longest - stage * self.delta, 0)
