"""Measures of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.studies.study import Measures, Splits, evaluate_test_set

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def perplexities(model: Predictor, data: Splits) -> Measures:
    """On the validation and the test set, as the literature reports them."""
    assert data.valid is not None
    return {
        "valid_perplexity": model.evaluate(data.valid[0])["perplexity"],
        "test_perplexity": evaluate_test_set(model, data)["perplexity"],
    }
