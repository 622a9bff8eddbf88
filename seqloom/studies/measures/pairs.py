"""Measures of pairs: by length of the source, and by search."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def by_length(*bounds: int) -> Callable[[Predictor, Splits], Measures]:
    """The metrics of the task, and the first of them for each range of source lengths."""

    def measure(model: Predictor, data: Splits) -> Measures:
        examples = test_examples(model, data)
        source = model.task.source
        assert source is not None
        sources, references = model.task.references(examples)
        predictions = model.predict(sources)
        lengths = [len(source.read(each)) for each in sources]
        found = model.task.measure(predictions, references, sources)
        name = next(iter(found))
        for low, high in zip((0, *bounds), (*bounds, max(lengths) + 1)):
            rows = [row for row, length in enumerate(lengths) if low <= length < high]
            if rows:
                columns = ([column[row] for row in rows] for column in (predictions, references, sources))
                found[f"{name}_{low}_to_{high - 1}"] = model.task.measure(*columns)[name]
        return found

    return measure


def by_search(model: Predictor, data: Splits) -> Measures:
    """BLEU and length relative to the references: greedy and beams, with and without length normalisation."""
    sources, references = model.task.references(test_examples(model, data))
    words = sum(len(each[0].split()) for each in references)
    settings: dict[str, dict[str, Any]] = {
        "greedy": {"beam_size": 1},
        "beam_5": {"beam_size": 5},
        "beam_5_raw": {"beam_size": 5, "length_penalty": 0.0},
        "beam_20": {"beam_size": 20},
        "beam_20_raw": {"beam_size": 20, "length_penalty": 0.0},
    }
    found: Measures = {}
    for name, search in settings.items():
        predictions = model.predict(sources, **search)
        found[f"{name}_bleu"] = model.task.measure(predictions, references)["bleu"]
        found[f"{name}_length"] = sum(len(each.split()) for each in predictions) / words
    return found
