"""Adaptive computation time."""

from __future__ import annotations

from itertools import pairwise

from seqloom.studies.gates import Gate, Measured, at_least, at_most
from seqloom.studies.measures.pondering import by_difficulty, nats_and_steps, passage_with_steps
from seqloom.studies.pictures import difficulties, steps_over_text
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.texts import SHAKESPEARE, tiny_shakespeare
from seqloom.studies.study import Study, Variant

ADAPTIVE, ONE_STEP = "adaptive", "one step"
COSTS = ("0.1", "0.03", "0.003", "0.0003")  # of one step


def smallest_increase(measured: Measured) -> float:
    """The smallest increase of steps from one cost of a step to the next lower one."""
    return min(after - before for before, after in pairwise(measured[cost]["steps"] for cost in COSTS))


STUDIES: dict[str, Study] = {
    "parity": Study(
        "Is the number of ones in a vector of 16 odd? A GRU that decides on its number of steps, and one that takes "
        "one step. By the number of components that are not 0",
        "parity",
        examples_of("parity", 200_000, 4_000, unseen={"easy": False}, easy=True),
        (
            at_most(5, "error", ADAPTIVE),
            at_least(40, "error", ONE_STEP),
            Gate(
                "steps, 13 to 16 components minus 1 to 4",
                lambda m: m[ADAPTIVE]["steps, 13 to 16"] - m[ADAPTIVE]["steps, 1 to 4"],
                ">=",
                0.5,
            ),
        ),
        "error near 0 with small step costs, vectors of 64 (Graves 2016, section 3.1)",
        variants={ADAPTIVE: Variant(), ONE_STEP: Variant(("encoder.cell.most=1",))},
        measure=by_difficulty(5, 9, 13),
        picture=difficulties,
    ),
    "parity-prices": Study(
        "Parity of vectors of 8, by the cost of a step and by the number of components that are not 0",
        "parity",
        examples_of("parity", 100_000, 4_000, unseen={"easy": False}, called="parity-8", size=8, easy=True),
        (
            at_most(5, "error", COSTS[-1]),
            Gate("steps, each cost minus the next higher one, the smallest difference", smallest_increase, ">=", 0),
            Gate(
                f"steps, a cost of {COSTS[-1]} minus {COSTS[0]}",
                lambda m: m[COSTS[-1]]["steps"] - m[COSTS[0]]["steps"],
                ">=",
                1,
            ),
        ),
        variants={cost: Variant((f"objective.costs.ponder={cost}", "train.steps=6000")) for cost in COSTS},
        measure=by_difficulty(3, 5, 7),
        picture=difficulties,
    ),
    "pondering": Study(
        f"{SHAKESPEARE}: an LSTM that decides on its number of steps at each character, and one that takes one step",
        "text-adaptive",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token", ADAPTIVE), at_least(1.5, "steps", ADAPTIVE)),
        variants={
            ADAPTIVE: Variant(("train.epochs=2",)),
            ONE_STEP: Variant(("train.epochs=2", "decoder.layers=1"), recipe="text-lstm"),
        },
        measure=nats_and_steps,
        picture=steps_over_text,
        shown=passage_with_steps,
    ),
}
