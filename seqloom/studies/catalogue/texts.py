"""Language models of running text."""

from __future__ import annotations

from seqloom.studies.gates import at_most
from seqloom.studies.measures.texts import last_words, perplexities
from seqloom.studies.sources.texts import SHAKESPEARE, penn_treebank, tiny_shakespeare
from seqloom.studies.study import Study, Variant

STUDIES: dict[str, Study] = {
    "shakespeare-lstm": Study(
        SHAKESPEARE,
        "text-lstm",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token", stricter=1.558),),
        "1.558 (6-gram, Kneser-Ney); 1.4697 (nanoGPT on a GPU)",
        variants={"": Variant(("train.epochs=18", "decoder.dropout=0.25"))},
    ),
    "shakespeare-gpt": Study(
        SHAKESPEARE,
        "text-gpt",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token", stricter=1.558),),
        "1.558 (6-gram, Kneser-Ney); 1.88 (nanoGPT's demo on a CPU), 1.4697 (on a GPU)",
    ),
    "ptb-lstm": Study(
        "Penn Treebank by words",
        "word-lstm",
        penn_treebank,
        (at_most(140, "valid_perplexity"), at_most(143.7, "test_perplexity")),
        "valid 151.5, test 143.7 (5-gram, Kneser-Ney); 121.39, 115.91 after 13 epochs (small model of Zaremba et al.)",
        measure=perplexities,
    ),
    "last-word": Study(
        "Penn Treebank: the last word of a test sentence, given all before it, by the model of ptb-lstm",
        "word-lstm",
        penn_treebank,
        published="none on this (Paperno et al. 2016 choose passages of which the last sentence alone is not enough)",
        measure=last_words,
        runs="ptb-lstm",
    ),
}
