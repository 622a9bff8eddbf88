"""The outputs of a validation, decoded by all processes together.

Each process takes some of the batches that one process alone would decode, whole, so that outputs are the same to the
last bit however many processes there are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from seqloom.inference.candidates import best_predictions, is_blank
from seqloom.inference.find import batches
from seqloom.inference.system import System, encode_source
from seqloom.train import processes


class SharedDecoding:
    """The best outputs of some sources, by a search that keeps one row per source; `options` as of `predict`."""

    def __init__(self, sources: Sequence[Any], **options: Any):
        self.sources, self.options = sources, options
        self.plan: list[list[int]] = []  # row numbers, batch by batch

    def predictions(self, system: System) -> list[Any]:
        """In the order of the sources, in all processes."""
        if processes.world_size() == 1:
            return self.decode(system, self.sources)
        if not self.plan:
            filled = [row for row, source in enumerate(self.sources) if not is_blank(source)]
            lengths = [max(map(len, encode_source(system, self.sources[row]))) for row in filled]
            self.plan = [[filled[place] for place in batch] for batch in batches(lengths)]
            self.plan += [[row] for row, source in enumerate(self.sources) if is_blank(source)]
        own = [
            [rows, self.decode(system, [self.sources[row] for row in rows])]
            for rows in self.plan[processes.rank() :: processes.world_size()]
        ]
        found: dict[int, Any] = {}
        for content in processes.gather(json.dumps(own).encode(), system.model.device):
            for rows, outputs in json.loads(content):
                found |= zip(rows, outputs, strict=True)
        return [found[row] for row in range(len(self.sources))]

    def decode(self, system: System, sources: Sequence[Any]) -> list[Any]:
        return [one.text for one in best_predictions(system, sources, **self.options)]
