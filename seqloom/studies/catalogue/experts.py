"""Mixture of experts."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, at_most, lead
from seqloom.studies.measures.experts import keys_by_expert, loss_and_balance
from seqloom.studies.pictures import keys_over_experts
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.study import Study, Variant

EXPERTS, DENSE, UNBALANCED = "experts", "dense", "without balance"

STUDIES: dict[str, Study] = {
    "experts": Study(
        "A tag for each token from 16 random tables, of which the first token chooses one: a Transformer layer with 16 "
        "experts of which 2 are active, with a feed-forward network of as many operations, and with experts without "
        "the costs that keep a balance. Importance and load: entropy over its maximum, log 16",
        "piecewise",
        examples_of("piecewise", 40_000, 2_000),
        (
            Gate("loss, experts over dense", lambda m: m[EXPERTS]["loss"] / m[DENSE]["loss"], "<=", 0.5),
            lead(10, "tag_accuracy", EXPERTS, DENSE),
            at_least(0.8, "load", EXPERTS),
            at_least(0.8, "importance", EXPERTS),
            at_most(0.6, "importance", UNBALANCED),
        ),
        "without the costs the gate always chooses the same few experts (Shazeer et al. 2017, section 4)",
        variants={
            EXPERTS: Variant(),
            DENSE: Variant(("encoder.experts=0", "encoder.hidden=128", "objective.costs={}")),
            UNBALANCED: Variant(("objective.costs={}",)),
        },
        measure=loss_and_balance,
        picture=keys_over_experts,
        shown=keys_by_expert,
    ),
}
