"""How long to think."""

from __future__ import annotations

from itertools import pairwise

from seqloom.studies.measures import by_difficulty, nats_and_steps, steps_over_text
from seqloom.studies.pictures import difficulties, thoughts
from seqloom.studies.sources import SHAKESPEARE, made, tiny_shakespeare
from seqloom.studies.study import Gate, Measured, Study, Variant, at_least, at_most

THINKING, ONE_STEP = "adaptive", "one step"
PRICES = ("0.1", "0.03", "0.003", "0.0003")  # of a step


def thought_longer(measured: Measured) -> float:
    """The least that a lower price of a step adds to the steps, over all prices."""
    return min(after - before for before, after in pairwise(measured[price]["steps"] for price in PRICES))


STUDIES: dict[str, Study] = {
    "parity": Study(
        "Is the number of ones in a vector of 16 odd? A GRU that decides how often it steps, and one that steps once. "
        "By how many components are not 0",
        "parity",
        made("parity", 200_000, 4_000, unseen={"easy": False}, easy=True),
        (
            at_most(5, "error", THINKING),
            at_least(40, "error", ONE_STEP),
            Gate(
                "steps, 13 to 16 components before 1 to 4",
                lambda m: m[THINKING]["steps, 13 to 16"] - m[THINKING]["steps, 1 to 4"],
                ">=",
                0.5,
            ),
        ),
        "error near 0 with small prices, vectors of 64 (Graves 2016, section 3.1)",
        variants={THINKING: Variant(), ONE_STEP: Variant(("encoder.cell.most=1",))},
        measure=by_difficulty(5, 9, 13),
        picture=difficulties,
    ),
    "parity-prices": Study(
        "The same with vectors of 8, by the price of a step. By how many components are not 0",
        "parity",
        made("parity", 100_000, 4_000, unseen={"easy": False}, called="parity-8", size=8, easy=True),
        (
            at_most(5, "error", PRICES[-1]),
            Gate("steps, each price before the next higher one", thought_longer, ">=", 0),
            Gate(
                f"steps, a price of {PRICES[-1]} before {PRICES[0]}",
                lambda m: m[PRICES[-1]]["steps"] - m[PRICES[0]]["steps"],
                ">=",
                1,
            ),
        ),
        variants={price: Variant((f"objective.costs.ponder={price}", "train.steps=6000")) for price in PRICES},
        measure=by_difficulty(3, 5, 7),
        picture=difficulties,
    ),
    "pondering": Study(
        f"{SHAKESPEARE}: an LSTM that decides how often it steps at each character, and one that steps once",
        "text-adaptive",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token", THINKING), at_least(1.5, "steps", THINKING)),
        variants={
            THINKING: Variant(("train.epochs=2",)),
            ONE_STEP: Variant(("train.epochs=2", "decoder.layers=1"), recipe="text-lstm"),
        },
        measure=nats_and_steps,
        picture=thoughts,
        shown=steps_over_text,
    ),
}
