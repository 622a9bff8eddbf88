"""A recipe for the data, chosen by plain rules, and the reasons in words."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.data.kinds import Kind
from seqloom.data.survey import Survey
from seqloom.errors import SeqloomError

POINTS = "sources are points ({elements})"
VECTORS = "sources are vectors of numbers ({elements})"
KINDS = {  # for data that is not text on both sides: the recipe, and why
    "ring": ("hull", f"{POINTS} and targets places of them that go round, back to the first"),
    "tour": ("tour", f"{POINTS} and targets visit each of them once, back to the first"),
    "triangles": ("delaunay", f"{POINTS} and targets triples of ascending places, like triangles"),
    "order": ("sorting", f"{VECTORS} and targets each of their places once"),
    "choice": ("sorting", f"{VECTORS} and targets some of their places, each once at most"),
    "label": ("parity", f"{VECTORS} and targets one of {{labels}} labels"),
    "value": ("adding", f"{VECTORS} and targets one number"),
    "story": ("babi", "sources are stories with a question at their end, and targets one of {labels} answers"),
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
        return _recipe_for_kind(survey.kind, size)
    if not survey.text:
        raise SeqloomError(
            "no recipe was chosen: the values are neither texts, nor vectors with places, labels (as strings) or "
            "numbers, nor stories with answers; name a recipe"
        )
    if survey.phoneme_share > 0.9:
        recipe = "g2p-lstm"
        why = "targets are short tokens from a small inventory, like phonemes: characters in, white-space tokens out"
    elif max(source.mean_characters, target.mean_characters) <= 48 and min(source.mean_words, target.mean_words) <= 2:
        recipe = "dates"
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        why = f"short strings (on average {lengths})"
        if survey.examples < 20_000:  # unlike generated dates, a collection is small enough to overfit
            settings = ["encoder.dropout=0.2", "decoder.dropout=0.2"]
    else:
        recipe = "multi30k-transformer"
        why = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        if not survey.shares_alphabet:
            settings += ["task.joint=false", "share_embeddings=false"]
    return Choice(recipe, settings, _reasons(recipe, size, why))


def _recipe_for_kind(kind: Kind, size: str) -> Choice:
    recipe, what = KINDS[kind.name]
    elements = "one each" if kind.elements == 1 else f"on average {kind.elements:.0f}"
    why = what.format(elements=elements, labels=f"{kind.labels:,}")
    settings = ['task.valid=""'] if kind.name == "choice" else []
    return Choice(recipe, settings, _reasons(recipe, size, why))


def _reasons(recipe: str, size: str, why: str) -> list[str]:
    return [f"Chose the recipe {recipe}: {size}, {why}.", "Give a recipe to choose otherwise."]
