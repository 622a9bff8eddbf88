"""Whether the first row of a table is a header. A probable one is asked about rather than trained on.

A row is probably a header if its cells differ, none of them comes again in its column, and either

- all are names that people give to columns (`source`, `label`, `en`), or
- all look like names (`comment_text`), and a column below holds numbers only, or long texts only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SOURCES = {
    *("source", "src", "input", "inputs", "text", "sentence", "sentence1", "question", "query", "premise", "article"),
    *("document", "review", "comment", "title", "headline", "word", "words", "tokens", "prompt", "instruction"),
    *(
        "context",
        "utterance",
        "content",
        "body",
        "tweet",
        "message",
        "phrase",
        "graphemes",
        "lemma",
        "en",
        "english",
        "x",
    ),
}
TARGETS = {
    *("target", "tgt", "trg", "output", "outputs", "label", "class", "category", "answer", "summary", "translation"),
    *("tags", "ner_tags", "pos_tags", "chunk_tags", "intent", "sentiment", "polarity", "score", "rating", "stars", "y"),
    *("response", "reply", "completion", "hypothesis", "sentence2", "sql", "snippet", "pronunciation", "phonemes"),
    *("ipa", "de", "fr", "es", "it", "nl", "pt", "ru", "ja", "zh", "ko", "cs", "pl", "tr", "ar", "fi", "sv"),
    *("german", "french", "spanish", "italian", "dutch", "inflection"),
}
OTHERS = {
    *("id", "idx", "index", "key", "number", "date", "time", "split", "language", "lang", "author", "user", "name"),
    *("url", "file", "path", "audio"),
}
KNOWN = SOURCES | TARGETS | OTHERS
NAME = re.compile(r"[A-Za-z_]\w*(?:[ .-]\w+){0,2}", re.ASCII)
NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
NO_NAMES = {"nan", "none", "null", "true", "false", "inf", "yes", "no"}
ROWS, WORDS, LETTERS = 5, 4, 4  # rows below and the mean of their words that make texts long; letters of their name


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of some rows is probably a header."""
    if not rows or not rows[0]:
        return False
    first = [cell.strip() for cell in rows[0]]
    stems = {cell.lower().removesuffix("s") for cell in first}  # "answer, answers" is a pair of words
    if len(stems) < len(first):
        return False
    below = [[cell.strip() for cell in row] for row in rows[1:] if len(row) == len(first) and any(map(str.strip, row))]
    columns = list(zip(*below)) or [()] * len(first)
    if any(cell in column for cell, column in zip(first, columns)):
        return False
    if all(cell.lower() in KNOWN for cell in first):
        return True
    named = all(NAME.fullmatch(cell) and len(cell) <= 40 and cell.lower() not in NO_NAMES for cell in first)
    return named and len(first) > 1 and any(unlike(cell, column) for cell, column in zip(first, columns))


def unlike(name: str, column: Sequence[str]) -> bool:
    """Whether a column holds only numbers, or only long texts where the name is one word."""
    if len(column) >= 2 and all(NUMBER.fullmatch(cell) for cell in column):
        return True
    words = [len(cell.split()) for cell in column]
    long = len(words) >= ROWS and min(words) > 1 and sum(words) >= WORDS * len(words)
    return long and " " not in name and len(name) >= LETTERS  # "a" is the first word of many a sorted dictionary


def likely_columns(names: Sequence[str], sides: int) -> list[str]:
    """Columns to suggest: names that are usual for a source and a target, else the first ones."""
    source = next((each for each in names if each.lower() in SOURCES), names[0] if names else "text")
    if sides == 1:
        return [source]
    others = [each for each in names if each != source] or ["label"]
    return [source, next((each for each in others if each.lower() in TARGETS), others[0])]
