"""Copying words: from the source, or from the text before."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, lead
from seqloom.studies.measures.copying import bleu_and_oov_recall
from seqloom.studies.measures.texts import perplexities
from seqloom.studies.sources.copying import django, tatoeba_copies
from seqloom.studies.sources.texts import penn_treebank
from seqloom.studies.study import Study, Variant

LONGER = ("train.tokens=512", "train.epochs=7")  # almost three times as many updates as the recipe has

STUDIES: dict[str, Study] = {
    "copying": Study(
        "Tatoeba English to French, 2,000 words per side; every fifth pair has words outside the vocabulary to copy, "
        "and oov_recall is the recall of these. unknown: they are written as unknown; replaced: by the word with the "
        "highest attention",
        "pointer-generator",
        tatoeba_copies,
        (
            at_least(70, "oov_recall", "pointer-generator"),
            at_least(70, "oov_recall", "switch"),
            at_least(1, "better", "pointer-generator"),  # with every seed
            at_least(1, "better", "switch"),
        ),
        "BLEU 20.19 to 23.76 by pointing (Europarl English to French, Gulcehre et al. 2016)",
        variants={  # those that copy are compared with the plain one, which comes first
            "plain": Variant(LONGER, recipe="rare-words"),
            "switch": Variant((*LONGER, "decoder.mixture=switch")),
            "pointer-generator": Variant(LONGER),
        },
        measure=bleu_and_oov_recall,
        seeds=(1, 2, 3),
    ),
    "django": Study(
        "English descriptions to lines of Python (Django, the last 1,805 lines), by words: with and without copying",
        "django",
        django,
        (
            at_least(35, "exact", "copying"),
            at_least(90, "parsable", "copying"),
            lead(0, "exact", "copying", "plain", stricter=8),
        ),
        "exact 45.1 (neural translation), 62.3 (latent predictor networks, Ling et al. 2016), 71.6 (syntactic neural "
        "model, Yin & Neubig 2017)",
        variants={
            "copying": Variant(("train.epochs=4",)),
            "plain": Variant(("train.epochs=4",), recipe="django-plain"),
        },
    ),
    "sentinel": Study(
        "Penn Treebank by words, one epoch: a pointer sentinel around an LSTM, and the LSTM alone",
        "word-sentinel",
        penn_treebank,
        (
            Gate(
                "test perplexity, sentinel relative to LSTM",
                lambda m: m["sentinel"]["test_perplexity"] / m["LSTM"]["test_perplexity"],
                "<=",
                0.97,
            ),
        ),
        "valid 72.4, test 70.9 with a sentinel, 86.2, 82.7 without (medium LSTM of Zaremba et al.; Merity et al. 2016)",
        variants={
            "LSTM": Variant(("train.epochs=1",), recipe="word-lstm"),
            "sentinel": Variant(("train.epochs=1",)),
        },
        measure=perplexities,
    ),
}
