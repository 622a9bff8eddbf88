"""Measures of translation models on one table: BLEU, chrF and the speed of the search."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from seqloom.studies.gates import Measures
from seqloom.studies.sources.translation import join_punctuation
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

WARM_UP = 8  # sources


def translation(model: Predictor, data: Splits) -> Measures:
    """BLEU, chrF, and sentences and target words per second with the search of the recipe, on one thread.

    A model of whole words replaces unknown ones by the source word with the most attention, and its punctuation is put
    back to the words before it.
    """
    from seqloom.data.codecs.text import Text
    from seqloom.metrics.bleu import bleu
    from seqloom.metrics.chrf import chrf

    sources, references = model.task.references(test_examples(model, data))
    target = model.task.target
    words = isinstance(target, Text) and target.units == "word"
    options = {"replace_unknown": True} if words else {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model.predict(sources[:WARM_UP], **options)
        began = time.monotonic()
        predictions = model.predict(sources, **options)
        seconds = time.monotonic() - began
    finally:
        torch.set_num_threads(threads)
    if words:
        predictions = [join_punctuation(each) for each in predictions]
        references = [[join_punctuation(each) for each in every] for every in references]
    written = sum(len(each.split()) for each in predictions)
    return {
        **bleu(predictions, references),
        **chrf(predictions, references),
        "sentences_per_second": len(sources) / seconds,
        "words_per_second": written / seconds,
    }
