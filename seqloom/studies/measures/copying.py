"""Measures of copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def bleu_and_oov_recall(model: Predictor, data: Splits) -> Measures:
    """BLEU, and the recall of words that are in the source but not in the vocabulary.

    For the plain model also with unknown words written as such ("unknown_"), and replaced by the source word with the
    highest attention ("replaced_"). For a model that copies also whether its BLEU is above that of the plain model of
    its seed, without replacement.
    """
    from seqloom.metrics.copy_recall import copy_recall
    from seqloom.predictor import Predictor

    sources, references = model.task.references(test_examples(model, data))

    def measure(model: Predictor, **settings: Any) -> Measures:
        task: Any = model.task
        known = {task.target.decode([token]) for token in range(task.target.vocabulary)}
        predictions = model.predict(sources, **settings)
        recall = copy_recall(predictions, references, sources, known)["copy_recall"]
        return {"bleu": task.measure(predictions, references, sources)["bleu"], "oov_recall": recall}

    def without_replacement(model: Predictor) -> dict[str, Measures]:
        task: Any = model.task
        without = measure(model)
        task.writes_unknown = True
        unknown = measure(model)
        task.writes_unknown = False
        return {"": without, "unknown_": unknown}

    if model.task.target.chooses:
        folder = model.path
        assert folder is not None
        plain = Predictor.load(folder.parent.parent / "plain" / folder.name, model.device.type)
        found, others = measure(model), without_replacement(plain)
        return {**found, "better": float(found["bleu"] > max(each["bleu"] for each in others.values()))}
    variants = {**without_replacement(model), "replaced_": measure(model, replace_unknown=True)}
    return {f"{variant}{name}": value for variant, each in variants.items() for name, value in each.items()}
