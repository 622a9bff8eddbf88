"""Measures of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.studies.gates import Measures
from seqloom.studies.measures.cells import right_tokens
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def perplexities(model: Predictor, data: Splits) -> Measures:
    """On the validation and the test set, as the literature reports them."""
    assert data.valid is not None
    return {
        "valid_perplexity": model.evaluate(data.valid[0])["perplexity"],
        "test_perplexity": evaluate_test_set(model, data)["perplexity"],
    }


def last_words(model: Predictor, data: Splits) -> Measures:
    """How often the last word of a line is the model's likeliest, given all before it (as LAMBADA asks).

    A word of several tokens is right if each is.
    """
    lines = [line for example in test_examples(model, data) if " " in (line := example.target.strip())]
    _, right = right_tokens(model, lines)
    found, end = 0, 0
    for line in lines:
        begin = end + len(model.task.target.encode(line.rpartition(" ")[0] + " "))
        end += len(model.task.target.encode(line)) + 1  # EOS
        found += bool(right[begin : end - 1].all())
    return {"last_word": 100 * found / len(lines)}
