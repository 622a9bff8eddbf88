"""Parsing as a sequence."""

from __future__ import annotations

from seqloom.studies.gates import at_least
from seqloom.studies.measures.parsing import constrained_and_free
from seqloom.studies.sources.treebank import treebank_trees
from seqloom.studies.study import Study, Variant

STUDIES: dict[str, Study] = {
    "parsing": Study(
        "Sentences to parse trees, 3,396 of the Penn Treebank: an LSTM with attention whose beam can only write trees "
        "over the words of the sentence; free_: the same model without that constraint",
        "parsing",
        treebank_trees,
        (at_least(100, "well_formed"), at_least(95, "free_well_formed"), at_least(60, "bracket_f1")),
        "bracket F1 88.3 with attention, below 70 without, of 40,000 trees; 1.5 % ill-formed (Vinyals et al. 2015)",
        variants={"": Variant()},
        measure=constrained_and_free,
    ),
}
