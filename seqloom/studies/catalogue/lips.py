"""Lip reading, step by step as it was built (Chung et al. 2017, tables 4 and 5)."""

from __future__ import annotations

from seqloom.studies.gates import at_most, below
from seqloom.studies.measures.lips import each_as_it_reads
from seqloom.studies.sources.lips import NOISE, SNR, SPLITS, mouth_films
from seqloom.studies.study import Study, Variant

WAS, CURRICULUM, SAMPLING, BOTH, CTC = "WAS", "WAS + CL", "WAS + CL + SS", "WLAS", "LipNet (CTC)"
SHORT_FIRST = ("task.curriculum=[8, 16, 24]",)
SAMPLED = (
    'objective={type="scheduled_sampling", decay="linear", rate=0.01, least=0.75, label_smoothing=0.1}',
)  # a quarter of the inputs in the end


STUDIES: dict[str, Study] = {
    "lips": Study(
        f"{SPLITS['train'][1]:,} generated films of mouths that say up to six words, pixels with noise of deviation "
        f"{NOISE:g}, sound at {SNR:g} dB: WAS reads lips, CL: short texts first, SS: scheduled sampling, all without a "
        "beam (greedy) and with one; WLAS reads lips and hears, each alone as well",
        "lips",
        mouth_films,
        (
            below(CURRICULUM, "greedy_cer", WAS, "greedy_cer"),
            below(SAMPLING, "greedy_cer", CURRICULUM, "greedy_cer"),
            below(SAMPLING, "cer", SAMPLING, "greedy_cer"),
            at_most(10, "cer", SAMPLING),
            below(BOTH, "both_cer", BOTH, "sound_cer"),
        ),
        "CER / WER / BLEU on 118,116 sentences of television: professional 58.7 / 73.8 / 23.8; WAS 59.9 / 76.5 / 35.6, "
        "+CL 47.1 / 61.1 / 46.9, +SS 42.4 / 58.1 / 50.0, +BS 39.5 / 50.2 / 54.9 (Chung et al. 2017, table 5)",
        variants={
            WAS: Variant(),
            CURRICULUM: Variant(SHORT_FIRST),
            SAMPLING: Variant((*SHORT_FIRST, *SAMPLED)),
            BOTH: Variant((*SHORT_FIRST, *SAMPLED), recipe="lips-and-sound"),
            CTC: Variant(recipe="lips-ctc"),
        },
        measure=each_as_it_reads,
        seeds=(1, 2, 3),
    ),
}
