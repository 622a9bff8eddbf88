"""A recipe for the data, chosen by plain rules, and the reasons in words."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.data.kinds import Kind
from seqloom.data.survey import Survey
from seqloom.errors import SeqloomError

UPDATES = 2_000  # a training should have at least
VALIDATIONS = 20  # at most, where epochs are short
ROWS = {"parity": 128, "babi": 32}  # rows of a batch, in recipes that fix them
POINTS = "sources are points ({elements})"
VECTORS = "sources are vectors of numbers ({elements})"
KINDS = {  # for data that is not text on both sides: the recipe, how many examples to train on in all, and why
    "ring": ("hull", 300_000, f"{POINTS} and targets places of them that go round, back to the first"),
    "tour": ("tour", 500_000, f"{POINTS} and targets visit each of them once, back to the first"),
    "triangles": ("delaunay", 400_000, f"{POINTS} and targets triples of ascending places, like triangles"),
    "order": ("sorting", 200_000, f"{VECTORS} and targets each of their places once"),
    "choice": ("sorting", 200_000, f"{VECTORS} and targets some of their places, each once at most"),
    "label": ("parity", 7_000_000, f"{VECTORS} and targets one of {{labels}} labels"),
    "value": ("adding", 200_000, f"{VECTORS} and targets one number"),
    "story": ("babi", 120_000, "sources are stories with a question at their end, and targets one of {labels} answers"),
}


@dataclass(frozen=True)
class Choice:
    """A packaged recipe, what to change in it, and the reasons as sentences."""

    recipe: str
    settings: list[str]
    reasons: list[str]


def recipe_for(survey: Survey) -> Choice:
    """A recipe for pairs: of texts, of vectors with places, labels or values, of stories with answers."""
    source, target = survey.source, survey.target
    if source is None:
        raise SeqloomError("the data has one column: for a language model name a recipe, such as char-lm")
    size = f"{survey.examples:,} pair{'s' * (survey.examples != 1)}"
    settings: list[str] = []
    if survey.kind is not None:
        return _recipe_for_kind(survey.kind, survey.examples, size)
    if not survey.text:
        raise SeqloomError(
            "no recipe was chosen: the values are neither texts, nor vectors with places, labels (as strings) or "
            "numbers, nor stories with answers; name a recipe"
        )
    if survey.phoneme_share > 0.9:
        recipe, to_see, warmup, length = "g2p-lstm", 200_000, 200, max(source.mean_characters, target.mean_words)
        why = "targets are short tokens from a small inventory, like phonemes: characters in, white-space tokens out"
    elif max(source.mean_characters, target.mean_characters) <= 48 and min(source.mean_words, target.mean_words) <= 2:
        recipe, to_see, warmup, length = "dates", 150_000, 50, max(source.mean_characters, target.mean_characters)
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        why = f"short strings (on average {lengths})"
        if survey.examples < 20_000:  # unlike generated dates, a collection is small enough to overfit
            settings = ["encoder.dropout=0.2", "decoder.dropout=0.2"]
    else:
        recipe, to_see, warmup = "multi30k-transformer", 450_000, 1000
        length = 1.3 * max(source.mean_words, target.mean_words)
        why = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        # Enough pieces that common words are whole, few enough that each occurs often.
        pieces = max(500, min(8000, survey.examples // 4))
        settings = [f"task.source.size={pieces}", f"task.target.size={pieces}"]
        if not survey.shares_alphabet:
            settings += ["task.joint=false", "share_embeddings=false"]
    training = _training_length(survey.examples, length, to_see, warmup)
    return Choice(recipe, settings + training.settings, _reasons(recipe, size, why, training))


def _recipe_for_kind(kind: Kind, examples: int, size: str) -> Choice:
    recipe, to_see, what = KINDS[kind.name]
    elements = "one each" if kind.elements == 1 else f"on average {kind.elements:.0f}"
    why = what.format(elements=elements, labels=f"{kind.labels:,}")
    training = _training_length(examples, kind.length, to_see, 200, ROWS.get(recipe, 0))
    settings = [*training.settings, 'task.valid=""'] if kind.name == "choice" else training.settings
    return Choice(recipe, settings, _reasons(recipe, size, why, training))


def _reasons(recipe: str, size: str, why: str, training: TrainingLength) -> list[str]:
    length = f"about {training.updates:,} updates in {training.epochs} epoch{'s' * (training.epochs != 1)}"
    return [f"Chose the recipe {recipe}: {size}, {why}; {length}.", "Give a recipe to choose otherwise."]


@dataclass(frozen=True)
class TrainingLength:
    """How long to train, and the settings for it."""

    epochs: int
    updates: int
    settings: list[str]


def _training_length(examples: int, length: float, to_see: int, warmup: int, rows: int = 0) -> TrainingLength:
    """Small data gets more epochs and smaller batches, since every model needs many updates.

    Where batches have a fixed number of `rows`, only the number of epochs depends on the data.
    """
    epochs = max(1, min(300, round(to_see / examples)))
    if rows:
        updates = epochs * max(1, round(examples / rows))
        settings = [f"train.epochs={epochs}", f"train.validate_every={max(1, updates // VALIDATIONS)}"]
        return TrainingLength(epochs, updates, settings)
    tokens, updates = 2048, 0
    while True:
        updates = epochs * max(1, round(examples * (length + 1) / tokens))
        if updates >= UPDATES or tokens == 256:
            break
        tokens //= 2
    settings = [f"train.epochs={epochs}", f"train.tokens={tokens}", f"train.warmup={max(1, min(warmup, updates // 5))}"]
    if epochs > VALIDATIONS:
        settings.append(f"train.validate_every={max(1, updates // VALIDATIONS)}")
    return TrainingLength(epochs, updates, settings)
