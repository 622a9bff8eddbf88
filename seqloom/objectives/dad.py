"""Data as demonstrator: the decoder is fed its own likeliest tokens, and trained towards the targets.

Venkatraman, Hebert & Bagnell 2015, as Ranzato et al. 2016 use it for sequences: scheduled sampling with the argmax.
"""

from __future__ import annotations

from seqloom.objectives.scheduled_sampling import Decay, Form, ScheduledSampling


class DataAsDemonstrator(ScheduledSampling):
    """Scheduled sampling with `choose = "argmax"`, and by default a linear decay, down to `least` at the end."""

    def __init__(
        self,
        *,
        decay: Decay = "linear",
        rate: float | None = None,
        first: float = 1.0,
        least: float = 0.0,
        form: Form = "auto",
        label_smoothing: float = 0.0,
    ):
        super().__init__(
            decay=decay,
            rate=rate,
            first=first,
            least=least,
            choose="argmax",
            form=form,
            label_smoothing=label_smoothing,
        )
