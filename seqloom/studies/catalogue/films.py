"""Films pixel by pixel."""

from __future__ import annotations

from seqloom.studies.gates import Gate, below, lead
from seqloom.studies.measures.films import continued, nats_per_frame
from seqloom.studies.pictures import continuations
from seqloom.studies.sources.films import DIGITS, FRAMES, KNOWN, NOISE, SPLITS, moving_digits, moving_sprites
from seqloom.studies.study import Study, Variant

MINUTES = 6.0
VPN, INDEPENDENT = "VPN", "independent pixels"
COMMON = ("train.threads=1", "train.epochs=20")
WITHIN = ("decoder.style=independent", "decoder.drawing_layers=2")


def near_own(percent: float) -> Gate:
    """Little above the entropy of the films."""

    def excess(measures: dict[str, float]) -> float:
        return 100 * (measures["nats_per_frame"] / measures["own_nats"] - 1)

    return Gate(f"{VPN} nats_per_frame above own_nats, in %", lambda measured: excess(measured[VPN]), "<=", percent)


GATES = (
    lead(0, "nats_per_frame", INDEPENDENT, VPN),
    below(INDEPENDENT, "nats_per_frame", INDEPENDENT, "copy_nats"),
    near_own(10),
)
ABOUT = (
    f"{FRAMES} frames, speeds after a bounce drawn at random, {100 * NOISE:g} % of the pixels flipped; nats per frame "
    f"after {KNOWN} that are given, {SPLITS['test'][1]} test films, {MINUTES:g} minutes each on one thread"
)
PUBLISHED = (
    "Moving MNIST, 64 x 64, nats per frame: LSTM 341.2, ConvLSTM 367.1, Dynamic Filter 285.2, Video Ladder 187.7, VPN "
    "without dependence within a frame 110.1, VPN 87.6, bound 86.3 (Kalchbrenner et al. 2017, table 1)"
)

STUDIES: dict[str, Study] = {
    "moving-sprites": Study(
        f"a shape of 6 x 6 in films of 16 x 16 pixels: {ABOUT}",
        "frames",
        moving_sprites,
        GATES,
        PUBLISHED,
        variants={
            VPN: Variant(COMMON, recipe="frames", minutes=MINUTES),
            INDEPENDENT: Variant((*COMMON, *WITHIN), recipe="frames", minutes=MINUTES),
            "ConvLSTM": Variant((*COMMON, *WITHIN, "decoder.layers=0"), recipe="frames", minutes=MINUTES),
            "LSTM": Variant(
                (*COMMON, *WITHIN, "decoder.layers=0", "decoder.memory=vector"), recipe="frames", minutes=MINUTES
            ),
        },
        measure=nats_per_frame("sprites"),
        shown=continued("sprites"),
        picture=continuations,
    ),
    "moving-digits": Study(
        f"a digit of MNIST, 14 x 14, in films of {DIGITS} x {DIGITS} pixels: {ABOUT}",
        "frames",
        moving_digits,
        GATES,
        PUBLISHED,
        variants={
            VPN: Variant((*COMMON, f"task.target.size={DIGITS}"), recipe="frames", minutes=MINUTES),
            INDEPENDENT: Variant((*COMMON, *WITHIN, f"task.target.size={DIGITS}"), recipe="frames", minutes=MINUTES),
        },
        measure=nats_per_frame("digits"),
        shown=continued("digits"),
        picture=continuations,
    ),
}
