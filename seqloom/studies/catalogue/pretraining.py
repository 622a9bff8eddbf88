"""Encoders that learn from text without labels."""

from __future__ import annotations

from seqloom.studies.gates import at_least
from seqloom.studies.sources.texts import brown
from seqloom.studies.study import Study, Variant

MINUTES = 40.0

STUDIES: dict[str, Study] = {
    "bert-brown": Study(
        "Brown corpus, 475 documents of 1,102,944 words: masked words and next sentences predicted in 25 "
        f"other documents, in %, {MINUTES:g} minutes on one thread",
        "bert",
        brown,
        (at_least(25, "masked_accuracy"), at_least(65, "pair_accuracy")),
        "none on these; the commonest word everywhere is right 6 times in 100",
        variants={"": Variant(("train.threads=1",), recipe="bert", minutes=MINUTES)},
    ),
}
