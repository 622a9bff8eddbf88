"""A recipe for the data, chosen by plain rules: what was seen, what was chosen, and what else would be worth a try."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.config.recipes import describe, packaged
from seqloom.data.kinds import Kind
from seqloom.data.survey import Survey
from seqloom.errors import SeqloomError

POINTS = "sources are points ({elements})"
VECTORS = "sources are vectors of numbers ({elements})"
SENTENCES = "sources are texts ({elements} words)"
KINDS = {  # the recipe of a kind of data, and what was seen
    "ring": ("hull", f"{POINTS} and targets places of them that go round, back to the first"),
    "tour": ("tour", f"{POINTS} and targets visit each of them once, back to the first"),
    "triangles": ("delaunay", f"{POINTS} and targets triples of ascending places, like triangles"),
    "order": ("sorting", f"{VECTORS} and targets each of their places once"),
    "choice": ("sorting", f"{VECTORS} and targets some of their places, each once at most"),
    "label": ("parity", f"{VECTORS} and targets one of {{labels}} labels"),
    "value": ("adding", f"{VECTORS} and targets one number"),
    "story": ("babi", "sources are stories with a question at their end, and targets one of {labels} answers"),
    "recordings": ("speech-attention", "sources are names of recordings"),
    "pictures": ("captions-attention", "sources are names of pictures"),
    "films": ("lips", "sources are names of films"),
    "tags": ("tags", f"{SENTENCES} and targets have one of {{labels}} tags for each word"),
    "trees": ("parsing", f"{SENTENCES} and targets trees over their words"),
    "labels": ("labels", f"{SENTENCES} and targets are one of {{labels}} labels"),
    "name labels": ("labels", "sources are single words and targets one of {labels} labels"),
    "number": ("labels", f"{SENTENCES} and targets one number"),
    "copies": ("pointer-generator", f"{SENTENCES} and rare words of targets are often copied from them"),
    "code": ("django", f"{SENTENCES} and targets are code whose rare words are often copied from them"),
}
SETTINGS = {  # what to change in the recipe of a kind
    "films": ["task.source.size=48", "encoder.image.patch=4"],  # generated ones are smaller
    "choice": ['task.valid=""'],
    "name labels": [
        'task.source={type="text", units="char"}',
        'encoder={type="recurrent", embedding_size=64, size=128, bidirectional=true, dropout=0.3}',
    ],
    "number": [
        'objective={type="squared_error"}',
        'task.target={type="numbers"}',
        'task.metrics=["mse"]',
        'decoder={type="value"}',
        "train.select_by=mse",
    ],
    "code": ['task.metrics=["exact", "bleu", "copy_recall"]'],
}
ALTERNATIVES = {  # another recipe for the same data, and what it is
    "hull": ("hull --set decoder.glimpses=1", "looks at all points once more before it chooses"),
    "tour": ("tour --set decoder.glimpses=1", "looks at all points once more before it chooses"),
    "delaunay": ("delaunay --set decoder.glimpses=1", "looks at all points once more before it chooses"),
    "sorting": ("sorting --set objective=any_order", "learns the order that suits best"),
    "parity": ("parity --set encoder.cell=gru", "faster: one step of computation per vector"),
    "adding": ("adding --set encoder.cell=gru", "fewer weights"),
    "babi": ("cloze", "for answers that are words of the story"),
    "speech-attention": ("speech-ctc", "writes while it listens"),
    "captions-attention": ("captions-first", "reads the picture once, as its first input; faster"),
    "lips": ("lips-ctc", "writes while it watches"),
    "tags": ("tags --set decoder.crf=false", "faster, for many tags"),
    "parsing": ("parsing --set task.target.tags=false", "writes no tags, as in the paper"),
    "labels": ("labels --set encoder.encoder=transformer", "a Transformer, for much data"),
    "pointer-generator": ("multi30k-transformer", "spells rare words in pieces"),
    "django": ("django-plain", "the same without copying"),
    "g2p-lstm": ("g2p-transformer", "a Transformer, for much data"),
    "dates": ("g2p-transformer --set task.target.units=char", "a Transformer, for much data"),
    "multi30k-transformer": ("multi30k-lstm", "an LSTM with attention, for little data or time"),
    "multi30k-lstm": ("multi30k-transformer", "a Transformer, for more data and more time"),
}
FEW_SENTENCES = 25_000  # up to which an LSTM translates better than a Transformer


@dataclass(frozen=True)
class Choice:
    """A packaged recipe, what to change in it, and the reasons as sentences."""

    recipe: str
    settings: list[str]
    saw: str
    chose: str
    alternative: str


def recipe_for(survey: Survey) -> Choice:
    """A recipe for pairs: of texts of all kinds, of vectors with places, labels or values, of stories with answers."""
    source, target = survey.source, survey.target
    if source is None:
        raise SeqloomError("the data has one column: for a language model name a recipe, such as char-lm")
    settings: list[str] = []
    if survey.kind is not None:
        return _recipe_for_kind(survey.kind, survey)
    if not survey.text:
        raise SeqloomError(
            "no recipe was chosen: the values are neither texts, nor vectors with places, labels (as strings) or "
            "numbers, nor stories with answers; name a recipe"
        )
    if survey.phoneme_share > 0.9:
        recipe = "g2p-lstm"
        saw = "targets are short tokens from a small inventory, like phonemes"
    elif max(source.mean_characters, target.mean_characters) <= 48 and min(source.mean_words, target.mean_words) <= 2:
        recipe = "dates"
        lengths = f"{source.mean_characters:.0f} and {target.mean_characters:.0f} characters"
        saw = f"short strings (on average {lengths})"
        if survey.examples < 20_000:  # unlike generated dates, a collection is small enough to overfit
            settings = ["encoder.dropout=0.2", "decoder.dropout=0.2"]
    else:
        recipe = "multi30k-lstm" if survey.examples <= FEW_SENTENCES else "multi30k-transformer"
        saw = f"both sides are sentences (on average {source.mean_words:.0f} and {target.mean_words:.0f} words)"
        if recipe == "multi30k-transformer" and not survey.shares_alphabet:
            settings = ["task.joint=false", "share_embeddings=false"]
    return _choice(recipe, settings, survey, saw)


def _recipe_for_kind(kind: Kind, survey: Survey) -> Choice:
    recipe, what = KINDS[kind.name]
    elements = "one each" if kind.elements == 1 else f"on average {kind.elements:.0f}"
    saw = what.format(elements=elements, labels=f"{kind.labels:,}")
    settings = list(SETTINGS.get(kind.name, []))
    if kind.name in ("copies", "code"):
        words = max(200, min(8000, survey.examples // 16))  # common words are learned, rare ones copied
        settings += [f"task.source.size={words}", f"task.target.size={words}"]
    return _choice(recipe, settings, survey, saw)


def _choice(recipe: str, settings: list[str], survey: Survey, saw: str) -> Choice:
    other, what = ALTERNATIVES[recipe]
    return Choice(
        recipe,
        settings,
        saw=f"Saw {survey.examples:,} pair{'s' * (survey.examples != 1)}: {saw}.",
        chose=f"Chose the recipe {recipe} ({describe(packaged()[recipe]).rstrip('.')}).",
        alternative=f"Worth a try: {other} ({what}).",
    )
