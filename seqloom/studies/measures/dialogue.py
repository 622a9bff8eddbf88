"""Measures of dialogues."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from seqloom.studies.gates import Measures
from seqloom.studies.measures.kneser_ney import KneserNey
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def reply_perplexities(model: Predictor, data: Splits) -> Measures:
    """Of replies, EOS counted as a token: by the model, and by a 3-gram model of the training replies alone."""
    assert data.valid is not None
    codec, found = model.task.target, {}
    assert codec.vocabulary is not None
    test = test_examples(model, data)
    for name, examples in (("valid", list(model.examples(data.valid))), ("test", test)):
        tokens = sum(len(codec.encode(example.target)) + 1 for example in examples)
        found[f"{name}_perplexity"] = exp(-sum(model.score(examples)) / tokens)
    ngrams = KneserNey(order=3, vocabulary=codec.vocabulary)
    ngrams.fit(codec.encode(example.target).tolist() for example in model.examples(data.train))
    replies = [codec.encode(example.target).tolist() for example in test]
    total = sum(map(ngrams.log_prob, replies))
    found["kn3_perplexity"] = exp(-total / sum(len(reply) + 1 for reply in replies))
    return found
