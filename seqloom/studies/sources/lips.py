"""Films of generated mouths. Tables are written after the films that they name: where there is one, it is complete."""

from __future__ import annotations

from pathlib import Path

from seqloom.studies.study import Splits

SPLITS = {"train": (0, 4_000), "valid": (4_000, 200), "test": (4_200, 500)}  # the first, and how many
NOISE, SNR = 25.0, 0.0  # of pixels; of the sound, in decibels


def mouth_films(folder: Path) -> Splits:
    """Films of up to six words, in noise, with a sound as loud as its own noise."""
    from seqloom.data.generators.catalogue import make_examples, write_examples

    home, made = folder / "mouths", []
    for name, (first, count) in SPLITS.items():
        table = home / f"{name}.tsv"
        if not table.exists():
            home.mkdir(parents=True, exist_ok=True)
            write_examples(table, make_examples("mouths", count, 1, {"noise": NOISE, "snr": SNR}, first), first)
        made.append([str(table)])
    return Splits(*made)
