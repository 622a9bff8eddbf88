"""Recurrent cells compared: counting, adding and remembering."""

from __future__ import annotations

from seqloom.studies.gates import Gate, Measured, at_least, at_most, lead
from seqloom.studies.measures.cells import accepted_lines, answer_accuracy, next_token_accuracy
from seqloom.studies.sources.generators import arithmetic_text, examples_of, xml_text
from seqloom.studies.study import Study, Variant

CELLS = {
    "tanh": ("elman",),
    "lstm": ("lstm", "forget_bias=0.0"),
    "lstm-b": ("lstm", "forget_bias=1.0"),
    "lstm-f": ("lstm", 'without="forget"'),
    "lstm-i": ("lstm", 'without="input"'),
    "lstm-o": ("lstm", 'without="output"'),
    "gru": ("gru",),
    "mut1": ("mut", "variant=1"),
    "mut2": ("mut", "variant=2"),
    "mut3": ("mut", "variant=3"),
}


def cells(*names: str, sides: tuple[str, ...] = ("encoder",)) -> dict[str, Variant]:
    """One variant per cell, the same cell on all sides."""
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
    """The worst of some variants is better than the best of others by at least so much."""

    def gap(measured: Measured) -> float:
        return min(measured[name][metric] for name in better) - max(measured[name][metric] for name in worse)

    return Gate(f"{metric}, worst of {', '.join(better)} minus best of {', '.join(worse)}", gap, ">=", bound)


ARITHMETIC = (
    "accuracy tanh 29.5, LSTM-f 29.3, LSTM 89.2, LSTM-b 90.2, GRU 89.6, MUT1 92.1 (Jozefowicz et al. 2015, each the "
    "best of many trials)"
)
GATED = ("lstm-b", "gru", "mut1", "mut2", "mut3")
REVERSED = "encoder.reverse=true"


STUDIES: dict[str, Study] = {
    "adding": Study(
        "The adding problem over 100 steps, 64 units (always answering 1 has an error of 0.167)",
        "adding",
        examples_of("adding", 40_000, 2_000, length=100),
        (*(at_most(0.01, "mse", cell) for cell in ("lstm", *GATED)), at_least(0.1, "mse", "tanh")),
        variants=cells("tanh", "lstm", *GATED),
    ),
    "arithmetic": Study(
        "Sums and differences among distracting letters: accuracy of the next token, by cell",
        "arithmetic",
        examples_of("arithmetic", 100_000, 2_000),
        (
            worst_gap("accuracy", ("lstm-b", "gru", "mut1"), ("tanh", "lstm-f"), 30),
            lead(0, "accuracy", "lstm-b", "lstm"),
        ),
        ARITHMETIC,
        variants=cells("tanh", "lstm-f", "lstm", "lstm-b", "gru", "mut1", sides=("encoder", "decoder")),
        measure=next_token_accuracy,
    ),
    "arithmetic-text": Study(
        "Sums and differences among distracting letters as one running text, whose state is carried from line to line: "
        "accuracy of the next token of an answer, by cell",
        "arithmetic-text",
        arithmetic_text,
        (
            worst_gap("accuracy", ("lstm-b", "gru", "mut1"), ("tanh", "lstm-f"), 30),
            lead(0, "accuracy", "lstm-b", "lstm"),
        ),
        ARITHMETIC,
        variants=cells("tanh", "lstm-f", "lstm", "lstm-b", "gru", "mut1", sides=("decoder",)),
        measure=answer_accuracy,
    ),
    "xml": Study(
        "Nested tags with random names as one running text: accuracy of the next character, by cell",
        "xml",
        xml_text,
        (
            worst_gap("accuracy", ("lstm", "lstm-b", "gru", "mut1"), ("tanh",), 2),
            lead(0, "accuracy", "lstm-b", "lstm-f"),
        ),
        "accuracy tanh 32.0, LSTM 42.5, LSTM-f 23.4, LSTM-i 41.4, LSTM-o 42.1, LSTM-b 44.4, GRU 46.0, MUT1 47.5, "
        "MUT2 47.3, MUT3 46.5 (Jozefowicz et al. 2015, other tags, each the best of many trials)",
        variants=cells(*CELLS, sides=("decoder",)),
        measure=answer_accuracy,
    ),
    "counting": Study(
        "a^n b^n: trained on n up to 50, tested on n from 51 to 100",
        "counting",
        examples_of("counting", 10_000, 200, {"shortest": 51, "longest": 100}, shortest=1, longest=50),
        (at_least(90, "accepted", "lstm-b"), at_most(30, "accepted", "gru")),
        variants=cells("lstm-b", "gru", sides=("decoder",)),
        measure=accepted_lines,
    ),
    "addition": Study(
        "Sums of two numbers of up to three digits: an LSTM without attention whose decoder starts from h_T. reversed: "
        "the source is read backwards; fed: h_T is an input of every step; plain with cells: plain, with the LSTM cell "
        "state passed to the decoder as well and a forget bias of 1",
        "addition",
        examples_of("addition", 50_000, 1_000),
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
