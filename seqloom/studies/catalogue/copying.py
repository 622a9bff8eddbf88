"""Words that are copied: from a source, or from what was said before."""

from __future__ import annotations

from seqloom.studies.measures import copied, valid_and_test
from seqloom.studies.sources import django, penn_treebank, tatoeba_copies
from seqloom.studies.study import Gate, Study, Variant, ahead, at_least

STUDIES: dict[str, Study] = {
    "copying": Study(
        "Tatoeba English to French, 2,000 words a side, every fifth pair with words to copy that they lack; oov_recall "
        "is of these. unknown: such words are written as unknown; replaced: as the word most looked at",
        "pointer-generator",
        tatoeba_copies,
        (
            at_least(70, "oov_recall", "pointer-generator"),
            at_least(70, "oov_recall", "switch"),
            at_least(1, "better", "pointer-generator"),  # with every seed
            at_least(1, "better", "switch"),
        ),
        "BLEU 20.19 to 23.76 by pointing (Europarl English to French, Gulcehre et al. 2016)",
        variants={  # those that copy are measured beside the plain one
            "plain": Variant(recipe="rare-words"),
            "switch": Variant(("decoder.mixture=switch",)),
            "pointer-generator": Variant(),
        },
        measure=copied,
        seeds=(1, 2, 3),
    ),
    "django": Study(
        "English to lines of Python (Django, the last 1,805 lines), by words: with copying and without",
        "django",
        django,
        (
            at_least(35, "exact", "copying"),
            at_least(90, "parsable", "copying"),
            ahead(0, "exact", "copying", "plain"),
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
                "test perplexity, sentinel to LSTM",
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
        measure=valid_and_test,
    ),
}
