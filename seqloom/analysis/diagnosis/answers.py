"""The examples that a diagnosis looks at, and what the run answers to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from seqloom.errors import SeqloomError
from seqloom.inference.candidates import best_predictions
from seqloom.inference.evaluation import read_examples
from seqloom.inference.system import System, encode_source
from seqloom.train.prepare import prepare_data
from seqloom.types import Example

MOST_COUNTED = 200_000  # training examples whose words are counted: more would not change a bin


@dataclass(frozen=True)
class Answer:
    """An output and its reference, as values and as tokens."""

    source: Any
    output: Any
    reference: Any
    length: int  # positions of the source
    tokens: Sequence[int]  # of the output
    expected: Sequence[int]  # tokens of the reference
    edits: int  # between these two


def validation_examples(system: System) -> list[Example]:
    """What the run was validated with: given then, or held out again as training did it."""
    if not system.recipe["data"].get("train"):
        raise SeqloomError("the run does not record which files it was trained on; give --data FILE")
    return prepare_data(system.recipe, system.task, None, None, fit=False).valid_examples


def choose_examples(system: System, data: list[Example] | None, most: int) -> list[Example]:
    """At most that many examples, evenly spaced: files are often sorted. Without data, those of validation."""
    found = validation_examples(system) if data is None else data
    places = np.linspace(0, len(found), min(most, len(found)), endpoint=False).astype(int)
    return [found[place] for place in places]


def answer(system: System, examples: Sequence[Example], **options: Any) -> list[Answer]:
    """The outputs of the run's own search, each with the reference that is nearest."""
    sources, references = system.task.references(examples)
    outputs = [one.text for one in best_predictions(system, sources, **options)]
    return [compare_output(system, *each) for each in zip(sources, outputs, references)]


def compare_output(system: System, source: Any, output: Any, references: Sequence[Any]) -> Answer:
    def encode(value: Any) -> list[int]:
        tokens: list[int] = system.task.target.encode(value, source).tolist()
        return tokens

    tokens, length = encode(output), len(encode_source(system, source)[0])
    expected = [encode(reference) for reference in references]
    edits, best = min((Levenshtein.distance(tokens, each), place) for place, each in enumerate(expected))
    return Answer(source, output, references[best], length, tokens, expected[best], edits)


def training_words(system: System, examples: Iterable[Example]) -> Counter[str]:
    """How often each word occurs in the targets of the training data, the given examples left out."""
    recorded = system.recipe["data"].get("train")
    files = [recorded] if isinstance(recorded, str) else list(recorded or ())
    missing = [file for file in files if not Path(file).exists()]
    if not files or missing:
        where = f"{missing[0]} is not there any more" if missing else "the run does not record its training data"
        raise SeqloomError(f"errors by frequency are left out: {where}")
    held = {str(example.source) for example in examples}
    rows = islice(read_examples(system, files, skip_bad=True), MOST_COUNTED)
    return Counter(word for row in rows if str(row.source) not in held for word in words_of(row.target))


def words_of(value: Any) -> list[str]:
    """The words of a text; any other value is split at the spaces of its line."""
    return str(value).split()
