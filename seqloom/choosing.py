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
    settings: list[str] = []
    if survey.phoneme_share > 0.9:
        recipe, to_see = "g2p-lstm", 200_000
        why = "targets are short symbols from a small inventory, like phonemes: characters in, white-space symbols out"
    elif max(source.mean_characters, target.mean_characters) <= 48 and source.mean_words <= 6:
        recipe, to_see = "dates", 150_000
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        why = f"both sides are short (on average {lengths})"
        if not survey.cut:  # generated dates are endless; what people collect can be learned by heart
            settings = ["encoder.dropout=0.2", "decoder.dropout=0.2"]
    else:
        recipe, to_see = "multi30k-transformer", 450_000
        why = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        # Enough pieces that common words are whole, few enough that each is seen often.
        pieces = 8000 if survey.cut else max(500, min(8000, survey.examples // 4))
        settings = [f"task.source.size={pieces}", f"task.target.size={pieces}"]
    if not survey.cut:
        epochs = max(4, min(60, round(to_see / survey.examples)))
        settings.append(f"train.epochs={epochs}")
        why += f"; {epochs} epochs for this much data"
        if survey.examples < 3000:
            settings.append("train.tokens=1024")
            why += ", in small batches"
    reasons = [f"Chose the recipe {recipe}: {size}, {why}.", "Give a recipe to choose otherwise."]
    return Choice(recipe, settings, reasons)
