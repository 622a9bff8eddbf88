"""Translation models of one decade on one data set, each with the same wall time on one thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seqloom.studies.measures.translation import translation
from seqloom.studies.sources.pairs import MULTI30K, multi30k
from seqloom.studies.sources.translation import words_of_multi30k
from seqloom.studies.study import Splits, Study, Variant

MINUTES, LIKELIHOOD, REFINING = 15, 12, 3  # GNMT divides its time: likelihood first, then GLEU
ALIKE = ("train.threads=1", "train.epochs=60")  # so many epochs that the time is the limit
WORDS = tuple(f'task.{side}={{type="text", units="word", size=8000}}' for side in ("source", "target"))


def trained(
    recipe: str,
    *settings: str,
    data: Callable[[Path], Splits] | None = None,
    minutes: float = MINUTES,
    init: str = "",
) -> Variant:
    """A packaged recipe, fitted to its minutes."""
    return Variant((*ALIKE, *settings), recipe, data, init, minutes)


STUDIES: dict[str, Study] = {
    "translation": Study(
        f"{MULTI30K}: translation models, each trained for {MINUTES} minutes on one thread. Deep-Att has 8,000 words "
        "on each side and replaces unknown ones by source words (PosUnk), ByteNet has characters, all others the same "
        "pieces. GNMT + RL is GNMT after "
        f"{LIKELIHOOD} minutes, refined for GLEU for {REFINING}. Ensembles are of the runs above",
        "multi30k-transformer",
        multi30k,
        published="BLEU and training FLOPs, WMT-14 English to German and to French (Vaswani et al. 2017, table 2): "
        "ByteNet 23.75, -; Deep-Att + PosUnk -, 39.2 (1.0e20); GNMT + RL 24.6 (2.3e19), 39.92 (1.4e20); "
        "ConvS2S 25.16 (9.6e18), 40.46 (1.5e20); MoE 26.03 (2.0e19), 40.56 (1.2e20); ensembles of Deep-Att + PosUnk "
        "-, 40.4 (8.0e20), GNMT + RL 26.30 (1.8e20), 41.16 (1.1e21), ConvS2S 26.36 (7.7e19), 41.29 (1.2e21); "
        "Transformer, base 27.3 (3.3e18), 38.1, big 28.4 (2.3e19), 41.0",
        variants={
            "ByteNet": trained("multi30k-byte-net"),
            "Deep-Att + PosUnk": trained("multi30k-deep-att", *WORDS, data=words_of_multi30k),
            "GNMT": trained("gnmt", "task.joint=true", minutes=LIKELIHOOD),
            "GNMT + RL": trained("gnmt-refined", "task.joint=true", minutes=REFINING, init="GNMT"),
            "ConvS2S": trained("multi30k-conv-s2s"),
            "MoE": trained("multi30k-experts"),
            "Transformer": trained("multi30k-transformer"),
            "GNMT + RL, ConvS2S": Variant(ensemble=("GNMT + RL", "ConvS2S")),
            "Transformer, ConvS2S": Variant(ensemble=("Transformer", "ConvS2S")),
        },
        measure=translation,
    ),
}
