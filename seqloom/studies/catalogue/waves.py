"""Sound sample by sample."""

from __future__ import annotations

from seqloom.studies.measures.waves import bits_and_counts
from seqloom.studies.sources.series import single_digits
from seqloom.studies.sources.waves import named_digits
from seqloom.studies.study import Gate, Study, Variant

MINUTES = 12.0
OF_A_DIGIT = (
    'task.source={type="text", units="char"}',
    'encoder={type="recurrent", embedding_size=16, size=32}',
)


def below_counts(variant: str) -> Gate:
    """Better than counting."""
    text = f"{variant} order_2_bits minus bits_per_dimension"
    return Gate(
        text, lambda measured: measured[variant]["order_2_bits"] - measured[variant]["bits_per_dimension"], ">=", 0
    )


STUDIES: dict[str, Study] = {
    "digit-waves": Study(
        "recordings of single digits at 8 kHz, 64 levels with mu = 63: bits per sample, and those of counts of three "
        f"neighbouring samples (order 2); {MINUTES:g} minutes each on one thread",
        "wave",
        single_digits,
        (below_counts("WaveNet"), below_counts("WaveNet of a digit")),
        "none on these; listeners gave WaveNet 4.21 of 5, natural speech 4.55 (van den Oord et al. 2016, table 1)",
        variants={
            "WaveNet": Variant(("train.threads=1", "train.epochs=40"), minutes=MINUTES),
            "WaveNet of a digit": Variant(
                ("train.threads=1", "train.epochs=40", *OF_A_DIGIT), data=named_digits, minutes=MINUTES
            ),
        },
        measure=bits_and_counts,
    ),
}
