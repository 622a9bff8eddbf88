"""Which recipe suits the data, and why. Plain rules, said out loud."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.data.kinds import Kind
from seqloom.data.survey import Survey
from seqloom.errors import SeqloomError

UPDATES = 2_000  # that a training should have at least
VALIDATIONS = 20  # at most, where epochs are short
ROWS = {"parity": 128, "babi": 32}  # of a batch, where the recipe says so
POINTS = "sources are points ({elements})"
VECTORS = "sources are vectors of numbers ({elements})"
KINDS = {  # of data that is more than two texts: the recipe, how many examples should be seen, and why
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


def choose(survey: Survey) -> Choice:
    """For pairs: of texts, of vectors and places, labels or values, of stories and answers."""
    source, target = survey.source, survey.target
    if source is None:
        raise SeqloomError("the data has one column: for a language model name a recipe, such as char-lm")
    size = f"{survey.examples:,} pair{'s' * (survey.examples != 1)}"
    settings: list[str] = []
    if survey.kind is not None:
        return suited(survey.kind, survey.examples, size)
    if not survey.text:
        raise SeqloomError(
            "no recipe was chosen: the values are no texts, and neither vectors with places, labels (as strings) or "
            "numbers, nor stories with answers; name a recipe"
        )
    if survey.phoneme_share > 0.9:
        recipe, to_see, warmup, length = "g2p-lstm", 200_000, 200, max(source.mean_characters, target.mean_words)
        why = "targets are short tokens from a small inventory, like phonemes: characters in, white-space tokens out"
    elif max(source.mean_characters, target.mean_characters) <= 48 and min(source.mean_words, target.mean_words) <= 2:
        recipe, to_see, warmup, length = "dates", 150_000, 50, max(source.mean_characters, target.mean_characters)
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        why = f"short strings (on average {lengths})"
        if survey.examples < 20_000:  # generated dates are endless; what people collect can be learned by heart
            settings = ["encoder.dropout=0.2", "decoder.dropout=0.2"]
    else:
        recipe, to_see, warmup = "multi30k-transformer", 450_000, 1000
        length = 1.3 * max(source.mean_words, target.mean_words)
        why = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        # Enough pieces that common words are whole, few enough that each is seen often.
        pieces = max(500, min(8000, survey.examples // 4))
        settings = [f"task.source.size={pieces}", f"task.target.size={pieces}"]
        if not survey.shares_alphabet:
            settings += ["task.joint=false", "share_embeddings=false"]
    pace = paced(survey.examples, length, to_see, warmup)
    settings += pace.settings
    why += f"; about {pace.updates:,} updates in {pace.epochs} epoch{'s' * (pace.epochs != 1)}"
    return Choice(recipe, settings, said(recipe, size, why))


def suited(kind: Kind, examples: int, size: str) -> Choice:
    """For what is more than two texts."""
    recipe, to_see, what = KINDS[kind.name]
    elements = "one each" if kind.elements == 1 else f"on average {kind.elements:.0f}"
    why = what.format(elements=elements, labels=f"{kind.labels:,}")
    pace = paced(examples, kind.length, to_see, 200, ROWS.get(recipe, 0))
    settings = [*pace.settings, 'task.valid=""'] if kind.name == "choice" else pace.settings
    why += f"; about {pace.updates:,} updates in {pace.epochs} epoch{'s' * (pace.epochs != 1)}"
    return Choice(recipe, settings, said(recipe, size, why))


def said(recipe: str, size: str, why: str) -> list[str]:
    return [f"Chose the recipe {recipe}: {size}, {why}.", "Give a recipe to choose otherwise."]


@dataclass(frozen=True)
class Pace:
    """How a training is cut into updates."""

    epochs: int
    updates: int
    settings: list[str]


def paced(examples: int, length: float, to_see: int, warmup: int, rows: int = 0) -> Pace:
    """Little data is seen more often, in smaller batches: a model needs many updates, whatever it reads.

    Where batches have a fixed number of `rows`, epochs alone follow from the data.
    """
    epochs = max(1, min(300, round(to_see / examples)))
    if rows:
        updates = epochs * max(1, round(examples / rows))
        settings = [f"train.epochs={epochs}", f"train.validate_every={max(1, updates // VALIDATIONS)}"]
        return Pace(epochs, updates, settings)
    tokens, updates = 2048, 0
    while True:
        updates = epochs * max(1, round(examples * (length + 1) / tokens))
        if updates >= UPDATES or tokens == 256:
            break
        tokens //= 2
    settings = [f"train.epochs={epochs}", f"train.tokens={tokens}", f"train.warmup={max(1, min(warmup, updates // 5))}"]
    if epochs > VALIDATIONS:
        settings.append(f"train.validate_every={max(1, updates // VALIDATIONS)}")
    return Pace(epochs, updates, settings)
