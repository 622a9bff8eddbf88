"""Trainings of two updates and data of sixty examples: what the pages of the guide run with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from seqloom.config.settings import Settings
from seqloom.data.generators import catalogue
from seqloom.train.trainer import Trainer

UPDATES, EXAMPLES, TOKENS = 2, 60, 512


def make_fast(patch: Callable[[Any, str, Any], None]) -> None:
    """Shorten trainings and generated data; `patch` sets an attribute."""
    train, generate = Trainer.__init__, catalogue.make_examples

    def two_updates(self: Trainer, *, settings: Settings, **given: Any) -> None:
        limits: dict[str, Any] = {"steps": UPDATES, "epochs": None, "minutes": None, "validate_every": 0, "decode": 4}
        train(self, settings=dataclasses.replace(settings, **limits, tokens=min(settings.tokens, TOKENS)), **given)

    def few_examples(name: str, count: int, seed: int, settings: dict[str, Any], skip: int = 0) -> Any:
        return generate(name, min(count, EXAMPLES), seed, settings, min(skip, EXAMPLES))

    patch(Trainer, "__init__", two_updates)
    patch(catalogue, "make_examples", few_examples)
