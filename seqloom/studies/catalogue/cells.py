"""Cells of recurrent networks side by side, and what they can count, add and remember."""

from __future__ import annotations

from seqloom.studies.measures import counted, next_symbol
from seqloom.studies.sources import made
from seqloom.studies.study import Gate, Measured, Study, Variant, ahead, at_least, at_most

CELLS = {
    "tanh": ("elman",),
    "lstm": ("lstm", "forget_bias=0.0"),
    "lstm-b": ("lstm", "forget_bias=1.0"),
    "lstm-f": ("lstm", 'without="forget"'),
    "gru": ("gru",),
    "mut1": ("mut", "variant=1"),
    "mut2": ("mut", "variant=2"),
    "mut3": ("mut", "variant=3"),
}


def cells(*names: str, sides: tuple[str, ...] = ("encoder",)) -> dict[str, Variant]:
    """A variant a cell, the same on all sides that have one."""
    chosen = {name: CELLS[name] for name in names}
    return {
        name: Variant(
            tuple(
                f"{side}.cell.{key}"
                for side in sides
                for key in (f"type={kind}", *options)
            )
        )
        for name, (kind, *options) in chosen.items()
    }  # fmt: skip


def worst_gap(metric: str, better: tuple[str, ...], worse: tuple[str, ...], bound: float) -> Gate:
    """The least of some variants leads the best of others by so much."""

    def gap(measured: Measured) -> float:
        return min(measured[name][metric] for name in better) - max(measured[name][metric] for name in worse)

    return Gate(f"{metric}, {', '.join(better)} before {', '.join(worse)}", gap, ">=", bound)


GATED = ("lstm-b", "gru", "mut1", "mut2", "mut3")
REVERSED = "encoder.reverse=true"


STUDIES: dict[str, Study] = {
    "adding": Study(
        "The adding problem over 100 steps, 64 units (who always answers 1 has an error of 0.167)",
        "adding",
        made("adding", 40_000, 2_000, length=100),
        (*(at_most(0.01, "mse", cell) for cell in ("lstm", *GATED)), at_least(0.1, "mse", "tanh")),
        variants=cells("tanh", "lstm", *GATED),
    ),
    "arithmetic": Study(
        "Sums and differences among letters that mean nothing: which cell finds the next digit",
        "arithmetic",
        made("arithmetic", 100_000, 2_000),
        (
            worst_gap("accuracy", ("lstm-b", "gru", "mut1"), ("tanh", "lstm-f"), 30),
            ahead(0, "accuracy", "lstm-b", "lstm"),
        ),
        "accuracy tanh 29.5, LSTM-f 29.3, LSTM 89.2, LSTM-b 90.2, GRU 89.6, MUT1 92.1 (Jozefowicz et al. 2015, "
        "each the best of many trials)",
        variants=cells("tanh", "lstm-f", "lstm", "lstm-b", "gru", "mut1", sides=("encoder", "decoder")),
        measure=next_symbol,
    ),
    "counting": Study(
        "a^n b^n: learned for n up to 50, asked for n from 51 to 100",
        "counting",
        made("counting", 10_000, 200, {"shortest": 51, "longest": 100}, shortest=1, longest=50),
        (at_least(90, "accepted", "lstm-b"), at_most(30, "accepted", "gru")),
        variants=cells("lstm-b", "gru", sides=("decoder",)),
        measure=counted,
    ),
    "addition": Study(
        "Sums of two numbers of up to three digits, an LSTM without attention that is given h_T; the last is plain but "
        "given the cells too, and a forget bias of 1",
        "addition",
        made("addition", 50_000, 1_000),
        (
            at_least(5, "exact", "plain"),
            at_most(15, "exact", "plain"),
            at_least(25, "exact", "reversed"),
            at_most(65, "exact", "reversed"),
            at_least(95, "exact", "reversed and fed"),
        ),
        "7.8, 41 and 96.1 % (the same three in NumPy, 25 epochs)",
        variants={
            "plain": Variant(),
            "reversed": Variant((REVERSED,)),
            "reversed and fed": Variant((REVERSED, "decoder.feed_context=true", "decoder.deep_output=true")),
            "plain with cells": Variant(
                ("decoder.bridge=copy", "encoder.cell.forget_bias=1.0", "decoder.cell.forget_bias=1.0")
            ),
        },
    ),
}
