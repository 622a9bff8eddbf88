"""Summaries: headlines of news, and papers in one sentence."""

from __future__ import annotations

from seqloom.studies.baseline import first_words
from seqloom.studies.gates import at_least, lead
from seqloom.studies.sources.summaries import ag_headlines, scitldr
from seqloom.studies.study import Study, Variant

COPYING, LEAD_8, LEAD_20 = "copying with coverage", "first 8 words", "first 20 words"
WITHOUT_COPYING = ("task.copy=false", "objective={}", "train.select_by=loss")
ATTENTION = (
    'decoder={type="recurrent", embedding_size=128, size=128, dropout=0.4, attention={type="additive", size=128}}'
)
SSNT = (
    "task.copy=false",
    "task.target.size=2000",
    'objective={type="marginal"}',
    'search={type="prefix_beam", beam_size=4, minimum_length=6}',
    'decoder={type="ssnt", cell={type="lstm"}, embedding_size=128, size=128, hidden=128, dropout=0.4}',
    "train.select_by=loss",
)
SENTENCES = ("task.group_references=true", "search.minimum_length=15", "search.no_repeat=2")

STUDIES: dict[str, Study] = {
    "headlines": Study(
        "News items, their first 40 words, to headlines (AG, 6,495 to train on); rouge is the mean of the other three",
        "headlines",
        ag_headlines,
        (
            lead(0, "rouge1", COPYING, LEAD_8),
            lead(0, "rouge2", COPYING, LEAD_8),
            lead(0, "rougeL", COPYING, LEAD_8),
            lead(0, "rouge", COPYING, "attention"),
        ),
        "ROUGE-1, 2, L on Gigaword, 3.8 million headlines: SSNT 31.2, 14.3, 28.9, with a bidirectional encoder 31.7, "
        "14.7, 29.3 (Yu et al. 2016)",
        variants={
            LEAD_8: Variant(baseline=first_words(8)),
            "attention": Variant((*WITHOUT_COPYING, ATTENTION)),
            "SSNT": Variant(SSNT),
            COPYING: Variant(),
        },
    ),
    "scitldr": Study(
        "Abstracts, their first 150 words, to one sentence (SciTLDR, 1,992 to train on); with several references each "
        "figure is that of the best",
        "headlines",
        scitldr,
        (at_least(20, "rouge1", COPYING),),
        "ROUGE-1, 2, L: extractive oracle 47.7, 24.7, 38.5, BART 43.3, 20.8, 35.0, CATTS 43.8, 20.9, 35.5 (Cachola et "
        "al. 2020)",
        variants={
            LEAD_20: Variant(SENTENCES, baseline=first_words(20)),
            COPYING: Variant(SENTENCES),
        },
    ),
}
