"""The first phase of a training, for encoders that have one: the linear start of memory networks.

It ends at the first validation whose loss is not the lowest so far, or after its longest share of the training. The
best checkpoints are chosen from what follows: losses of the two phases cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.contracts import Encoder
from seqloom.train.state import TrainingState
from seqloom.train.training import Training


@dataclass(frozen=True)
class FirstPhase:
    """Whether a training is in its first phase is part of its state, so a resumed one goes on in it."""

    training: Training
    state: TrainingState

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that has a first phase."""
        parts = self.training.model.modules()
        return next((part for part in parts if isinstance(part, Encoder) and part.first_phase), None)

    def begin(self) -> None:
        """Begin it in a new training, and go on with it in a resumed one."""
        if not self.state.step:
            self.state.first_phase = self.encoder is not None
        self.training.first_phase = self.state.first_phase

    def rate(self) -> float:
        """The factor of the learning rate."""
        return self.encoder.first_rate if self.state.first_phase and self.encoder else 1.0

    def validated(self, loss: float) -> str:
        """End it if validation stopped improving; a line for the display if so."""
        state = self.state
        if not state.first_phase or state.first_loss is None or loss < state.first_loss:
            state.first_loss = loss if state.first_phase else None
            return ""
        return self.end(f"validation loss {loss:.4g} after {state.first_loss:.4g}")

    def progressed(self, progress: float) -> str:
        """End it if it took its longest share of the training; a line for the display if so."""
        if self.state.first_phase and self.encoder and progress >= self.encoder.first_phase:
            return self.end(f"{self.encoder.first_phase:.0%} of the training")
        return ""

    def end(self, reason: str) -> str:
        state = self.state
        self.training.first_phase = state.first_phase = False
        state.first_loss, state.best, state.stale, state.halvings = None, [], 0, 0
        state.validated = 0  # what there is now was never validated
        return f"The first phase of the training ends at step {state.step}: {reason}."
