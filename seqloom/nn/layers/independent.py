"""Pixels that do not see each other: all that is known of one is the condition at its place. A baseline."""

from __future__ import annotations

from torch import Tensor, nn

from seqloom.nn.layers.canvas import CanvasNetwork, CanvasSettings, at_column, at_line
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import State


class Independent(CanvasNetwork):
    """Residual layers within each place. State: {"line": the features of the present line (B, size, W)}."""

    def __init__(self, settings: CanvasSettings):
        super().__init__()
        settings.check()
        self.features, self.dropout = settings.size, Dropout(settings.dropout)
        self.enter = nn.Conv2d(max(settings.condition, 1), settings.size, 1)
        self.layers = nn.ModuleList(nn.Conv2d(settings.size, settings.size, 1) for _ in range(settings.layers - 1))

    def features_of(self, rows: int, height: int, width: int, condition: Tensor | None) -> Tensor:
        """(B, size, height, width)"""
        if condition is None:
            condition = self.enter.weight.new_zeros(1, self.enter.in_channels, 1, 1)
        values = self.enter(condition)
        for layer in self.layers:
            values = values + self.dropout(layer(values.relu()))
        found: Tensor = values.expand(rows, -1, height, width)
        return found

    def forward(self, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        found = self.features_of(len(pixels), pixels.shape[2], pixels.shape[3], condition)
        return found, {"line": found}

    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        return {"line": self.features_of(rows, 1, width, condition)[:, :, 0]}

    def state_at(self, kept: State, line: Tensor) -> State:
        return {"line": at_line(kept["line"], line)}

    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> State:
        return self.start(len(above), above.shape[2], condition)

    def pixel(self, state: State, line: Tensor, column: Tensor) -> tuple[Tensor, State]:
        return at_column(state["line"], column), state
