"""Measures of hulls, tours and triangulations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def with_published_file(model: Predictor, data: Splits) -> Measures:
    """Hulls: the metrics of the task; for five points also on the published test file."""
    from seqloom.studies.sources.points import published_hulls

    found = evaluate_test_set(model, data)
    if len(test_examples(model, data)[0].source.split()) == 5:
        examples = list(model.examples(published_hulls(Path(data.test[0]).parent)))
        found |= {f"published_{name}": value for name, value in model.evaluate(examples).items()}
    return found


def by_points(generator: str, count: int, *numbers: int) -> Callable[[Predictor, Splits], Measures]:
    """The metrics of the task on `count` examples of each number of points."""

    def measure(model: Predictor, data: Splits) -> Measures:
        from seqloom.data.generators.catalogue import make_examples

        found: Measures = {}
        for number in numbers:
            measured = model.evaluate(make_examples(generator, count, 2, {"shortest": number, "longest": number}))
            found |= {f"{name}, n = {number}": value for name, value in measured.items()}
        return found

    return measure


def beside_nearest_neighbour(model: Predictor, data: Splits) -> Measures:
    """Tours: the mean length of the model's, of nearest-neighbour tours, and of the references."""
    from seqloom.data.generators.tour import distances, nearest
    from seqloom.metrics.points import points_of
    from seqloom.metrics.tour import tour

    examples = test_examples(model, data)
    sources, references = model.task.references(examples)
    greedy = [nearest(distances(points_of("tour", source)), 0).tolist() for source in sources]
    shortest = [choices[0] for choices in references]
    return {
        **model.evaluate(examples),
        "nearest_neighbour": tour(greedy, references, sources)["tour"],
        "optimum": tour(shortest, references, sources)["tour"],
    }


def example_answers(generator: str, *numbers: int) -> Callable[[Predictor, Splits], dict[str, Any]]:
    """Answers to one example of each number of points, for the picture; by default three as in the test set."""

    def show(model: Predictor, data: Splits) -> dict[str, Any]:
        from seqloom.data.generators.catalogue import make_examples
        from seqloom.metrics.points import places_of, points_of

        usual = len(test_examples(model, data)[0].source.split())
        shown = []
        for seed, number in enumerate(numbers or (usual,) * 3, start=3):
            (example,) = make_examples(generator, 1, seed, {"shortest": number, "longest": number})
            (answer,) = model.predict([example.source])
            shown.append(
                {
                    "where": points_of(generator, example.source).tolist(),
                    "outputs": [places_of(answer, number)],
                    "truth": places_of(example.target, number),
                }
            )
        return {"points": shown}

    return show
