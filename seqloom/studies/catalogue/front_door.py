"""The front door: a file, some minutes and no recipe, beside the named recipe as written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seqloom.studies.gates import Gate, at_least, at_most
from seqloom.studies.sources.copying import django
from seqloom.studies.sources.front_door import labelled, short_tatoeba, tagged
from seqloom.studies.sources.pairs import multi30k, tenth_of_cmudict
from seqloom.studies.study import Splits, Study, Variant

WRITTEN = "as written"
SST = ("train", "dev", "test")
WNUT = {"train": "train.conll.gz", "valid": "dev.conll.gz", "test": "test.conll.gz"}


def newcomer(
    about: str,
    recipe: str,
    data: Callable[[Path], Splits],
    minutes: float,
    gate: Callable[[str], tuple[Gate, ...]],
    published: str = "none",
    seeds: tuple[int, ...] = (),
    written: bool = True,
) -> Study:
    """A training of some minutes, and the recipe as written unless another study has it on this data."""
    label = f"{minutes:g} minutes"
    return Study(
        f"{about}: no recipe named, {label}",
        recipe,
        data,
        gate(label),
        published,
        variants={label: Variant(minutes=minutes)} | ({WRITTEN: Variant()} if written else {}),
        seeds=seeds,
    )


STUDIES: dict[str, Study] = {
    "trec": newcomer(
        "TREC questions by their kind, 6 labels",
        "labels",
        labelled("TREC", ("train.all", "test.all")),
        3,
        lambda label: (at_least(84, "accuracy", label),),
        "about 90 (bidirectional LSTM), 93.6 (convolutions on word vectors, Kim 2014)",
        seeds=(1, 2, 3),
    ),
    "sst2": newcomer(
        "Opinions in sentences of film reviews (SST-2, sentences only)",
        "labels",
        labelled("stsa.binary", SST),
        5,
        lambda label: (at_least(78, "accuracy", label),),
        "82.7 (convolutions with random word vectors, also trained on phrases, Kim 2014)",
        seeds=(1, 2, 3),
    ),
    "chunks": newcomer(
        "Chunks of sentences (CoNLL-2000)",
        "tags",
        tagged("conll2000-chunking", {"train": "train.txt.gz", "test": "test.txt.gz"}),
        8,
        lambda label: (at_least(88, "chunk_f1", label),),
        "93.5 (support vector machines, given parts of speech, Kudo & Matsumoto 2000)",
    ),
    "wnut": newcomer(
        "Rare names in tweets (WNUT-17)",
        "tags",
        tagged("wnut17-ner", WNUT),
        5,
        lambda label: (),
        "41.9 (the best of the shared task, with word vectors and gazetteers)",
    ),
    "quick-multi30k": newcomer(
        "Multi30k English to German, test 2016",
        "multi30k-transformer",
        multi30k,
        20,
        lambda label: (at_least(26, "bleu", label),),
        "the recipe as written: see multi30k-transformer",
        written=False,
    ),
    "quick-tatoeba": newcomer(
        "20,000 short sentences of Tatoeba, English to French",
        "multi30k-lstm",
        short_tatoeba,
        10,
        lambda label: (at_least(30, "bleu", label),),
    ),
    "quick-django": newcomer(
        "English to lines of Python (Django, the last 1,805 lines)",
        "django",
        django,
        15,
        lambda label: (at_least(50, "exact", label),),
    ),
    "quick-g2p": newcomer(
        "Every tenth word of CMUdict, letters to phonemes",
        "g2p-lstm",
        tenth_of_cmudict,
        6,
        lambda label: (at_most(13, "per", label),),
    ),
}
