"""Which recipe suits the data, and why. Plain rules, said out loud."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.data.survey import Survey
from seqloom.errors import SeqloomError


@dataclass(frozen=True)
class Choice:
    """A packaged recipe, what to change in it, and the reasons as sentences."""

    recipe: str
    settings: list[str]
    reasons: list[str]


def choose(survey: Survey) -> Choice:
    """For pairs of text."""
    source, target = survey.source, survey.target
    if source is None:
        raise SeqloomError("the data has one column: for a language model name a recipe, such as char-lm")
    size = f"{'more than ' if survey.cut else ''}{survey.examples:,} pairs"
    if survey.phoneme_share > 0.9:
        recipe = "g2p-lstm"
        why = "targets are short symbols from a small inventory, like phonemes: characters in, white-space symbols out"
        settings: list[str] = []
    elif max(source.mean_characters, target.mean_characters) <= 48 and source.mean_words <= 6:
        recipe = "dates"
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        why = f"both sides are short (on average {lengths})"
        settings = []
    else:
        recipe = "multi30k-transformer"
        why = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        # Enough pieces that common words are whole, few enough that each is seen often.
        pieces = 8000 if survey.cut else max(500, min(8000, survey.examples // 4))
        settings = [f"task.source.size={pieces}", f"task.target.size={pieces}"]
    if not survey.cut and survey.examples < 3000:
        settings += ["train.tokens=1024", "train.epochs=60"]
        why += "; little data, so small batches and many epochs"
    reasons = [f"Chose the recipe {recipe}: {size}, {why}.", "Give a recipe to choose otherwise."]
    return Choice(recipe, settings, reasons)
