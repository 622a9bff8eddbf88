"""Data as demonstrator: the decoder is given its own likeliest tokens, and corrected towards the targets.

Venkatraman, Hebert & Bagnell 2015, as Ranzato et al. 2016 use it for sequences: scheduled sampling with the argmax.
"""

from __future__ import annotations

from seqloom.objectives.scheduled_sampling import Decay, Form, ScheduledSampling


class DataAsDemonstrator(ScheduledSampling):
    """The settings of scheduled sampling but for `choose`; its decay is linear, down to `least` at the end."""

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
