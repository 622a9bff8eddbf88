"""The checks that metrics begin with."""

from __future__ import annotations

from collections.abc import Iterator

from seqloom.errors import SeqloomError


def check_pairs(metric: str, predictions: list[str], references: list[list[str]]) -> None:
    """Each prediction must have a list of references, and there must be predictions."""
    if not predictions:
        raise SeqloomError(
            f"{metric}: there are no predictions, expected at least one; check that the data is not empty"
        )
    if len(predictions) != len(references):
        raise SeqloomError(
            f"{metric}: {len(predictions)} predictions but {len(references)} lists of references, "
            "expected as many; give each prediction its own list"
        )
    for number, choices in enumerate(references, start=1):
        if isinstance(choices, str) or not choices:
            raise SeqloomError(
                f"{metric}: prediction {number} has {choices!r} for references, "
                "expected a list with at least one string; put a single reference in a list of its own"
            )


def check_tags(
    metric: str, predictions: list[str], references: list[list[str]]
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The tags of each prediction and of its references, which must be as many."""
    check_pairs(metric, predictions, references)
    for number, (prediction, choices) in enumerate(zip(predictions, references), start=1):
        found, expected = prediction.split(), [choice.split() for choice in choices]
        for choice in expected:
            if len(choice) != len(found):
                raise SeqloomError(
                    f"{metric}: prediction {number} has {len(found)} tags and its reference {len(choice)}, "
                    "expected as many; measure texts by another metric"
                )
        yield found, expected
