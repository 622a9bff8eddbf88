"""Sound sample by sample."""

from __future__ import annotations

from seqloom.studies.gates import at_least, below
from seqloom.studies.measures.waves import RECOGNISER, bits_and_digits
from seqloom.studies.sources.series import single_digits
from seqloom.studies.sources.waves import heard_digits, named_digits
from seqloom.studies.study import Study, Variant

MINUTES = 12.0
OF_A_DIGIT = (
    'task.source={type="text", units="char"}',
    'encoder={type="recurrent", embedding_size=16, size=32}',
)
LISTENS = (
    'task.source={type="audio", rate=8000, mels=40, stack=3, frequency_masks=1, time_masks=1, time_width=6}',
    'encoder={type="recurrent", embedding_size=96, size=96, bidirectional=true, dropout=0.2}',
)


STUDIES: dict[str, Study] = {
    "digit-waves": Study(
        "recordings of single digits at 8 kHz, 64 levels with mu = 63: bits per sample, and those of counts of three "
        f"neighbouring samples (order 2); {MINUTES:g} minutes each on one thread; a recogniser hears what is drawn",
        "wave",
        single_digits,
        (
            *(below(each, "bits_per_dimension", each, "order_2_bits") for each in ("WaveNet", "WaveNet of a digit")),
            at_least(60, "digits_understood", "WaveNet of a digit"),
        ),
        "none on these; listeners gave WaveNet 4.21 of 5, natural speech 4.55 (van den Oord et al. 2016, table 1)",
        variants={
            RECOGNISER: Variant(("train.threads=1", *LISTENS), recipe="labels", data=heard_digits),
            "WaveNet": Variant(("train.threads=1", "train.epochs=40"), recipe="wave", minutes=MINUTES),
            "WaveNet of a digit": Variant(
                ("train.threads=1", "train.epochs=40", *OF_A_DIGIT),
                recipe="wave",
                data=named_digits,
                minutes=MINUTES,
            ),
        },
        measure=bits_and_digits,
    ),
}
