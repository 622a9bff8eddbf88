"""Pictures pixel by pixel."""

from __future__ import annotations

from seqloom.studies.gates import at_least, at_most, lead
from seqloom.studies.measures.pixels import completed, nats_and_halves
from seqloom.studies.pictures import completions
from seqloom.studies.sources.pixels import binary_digits
from seqloom.studies.study import Study, Variant

MINUTES, LONG = 25.0, 60.0
FULL = ("train.threads=1", "train.epochs=20")
SMALL = ("task.target.size=14", "task.target.fit=stretch", "train.threads=1", "train.tokens=3136", "train.epochs=2")


def drawn_by(style: str, size: int, layers: int) -> Variant:
    """A decoder of about 80,000 parameters."""
    table = f'decoder={{type="pixels", style="{style}", size={size}, layers={layers}, hidden=48}}'
    return Variant((*SMALL, table))


DIAGONAL, OTHERS = "Diagonal BiLSTM", ("Row LSTM", "PixelCNN", "gated PixelCNN")

STUDIES: dict[str, Study] = {
    "binary-digits": Study(
        "binarised MNIST (50,000 pictures): nats per picture of 10,000 test pictures, and how often the lower half of "
        f"a picture is likelier than that of another one, of 500; {MINUTES:g} minutes each on one thread, {LONG:g} for "
        "diagonals",
        "pixels",
        binary_digits,
        (
            at_most(88, "nats", "gated"),
            at_most(105.3, "nats", "plain"),
            lead(0, "nats", "plain", "gated"),
            at_least(95, "own_half_likelier", "gated"),
        ),
        "nats: NADE 88.33, MADE 86.64, PixelCNN 81.30, PixelRNN (Diagonal BiLSTM) 79.20 (van den Oord et al. 2016, "
        "table 4); counts of 12 neighbours, without a network: 105.3",
        variants={
            style: Variant((*FULL, f"decoder.style={style}"), recipe="pixels", minutes=MINUTES)
            for style in ("gated", "plain")
        }
        | {DIAGONAL: Variant((*FULL, "decoder.style=diagonal", "decoder.layers=2"), recipe="pixels", minutes=LONG)},
        measure=nats_and_halves,
        shown=completed,
        picture=completions,
    ),
    "small-digits": Study(
        "the same pictures, 14 x 14 pixels: nats per picture after two epochs, models of 75,000 to 82,000 parameters",
        "pixels",
        binary_digits,
        tuple(lead(0, "nats", other, DIAGONAL) for other in OTHERS),
        "28 x 28, nats: PixelCNN 81.30, Row LSTM 80.54, Diagonal BiLSTM 79.20 (van den Oord et al. 2016, table 4)",
        variants={
            DIAGONAL: drawn_by("diagonal", 48, 3),
            "Row LSTM": drawn_by("row", 48, 4),
            "PixelCNN": drawn_by("plain", 64, 8),
            "gated PixelCNN": drawn_by("gated", 24, 6),
        },
        measure=nats_and_halves,
    ),
}
