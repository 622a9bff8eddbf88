"""Dialogues: replies that depend on what was said turns before."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, at_most
from seqloom.studies.measures.dialogue import reply_perplexities
from seqloom.studies.sources.dialogue import dailydialog
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.study import Study, Variant

HRED, FLAT, LAST = "HRED", "flat", "last turn"
PERPLEXITY = "test_perplexity"


def flat(size: int, embedding_size: int, dropout: float) -> Variant:
    """All turns as one text, read by a recurrent encoder."""
    sizes = (f"encoder.size={size}", f"encoder.embedding_size={embedding_size}", f"encoder.dropout={dropout}")
    return Variant(("encoder.type=recurrent", "encoder.cell.type=gru", *sizes))


def last_turn() -> Variant:
    """The hierarchical encoder, given one turn only."""
    return Variant(("task.source.turns=1", "task.target.turns=1"))


STUDIES: dict[str, Study] = {
    "slots": Study(
        "Generated dialogues whose reply names a city of three turns before: a hierarchical encoder (HRED), all turns "
        "as one text (flat), and the last turn alone, where 1 of 20 cities is right by chance; 6,000 dialogues",
        "slots",
        examples_of("slots", train=6_000, test=1_000),
        (at_least(95, "exact", HRED), at_least(95, "exact", FLAT), at_most(8, "exact", LAST)),
        variants={HRED: Variant(), FLAT: flat(64, 32, 0.0), LAST: last_turn()},
    ),
    "dialogue": Study(
        "DailyDialog, replies to up to four turns; dialogues of the test and validation sets are not in the training "
        "set. Perplexity per word of replies, 6,000 words; kn3: 3-grams of the replies alone, Kneser-Ney smoothing",
        "hred",
        dailydialog,
        (
            Gate(f"{PERPLEXITY}, {HRED} minus kn3", lambda m: m[HRED][PERPLEXITY] - m[HRED]["kn3_perplexity"], "<=", 0),
            Gate(f"{PERPLEXITY}, {HRED} minus {LAST}", lambda m: m[HRED][PERPLEXITY] - m[LAST][PERPLEXITY], "<=", 0),
        ),
        "none on this vocabulary; MovieTriples: RNN 35.63, HRED 36.59, after other dialogues 27.09 and "
        "27.14 (Serban et al. 2016, table 2)",
        variants={HRED: Variant(), FLAT: flat(192, 128, 0.1), LAST: last_turn()},
        measure=reply_perplexities,
    ),
}
