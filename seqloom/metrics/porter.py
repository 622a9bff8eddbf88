"""Porter's stemmer: the suffixes of English words removed in five steps, "relational" -> "relat".

Porter 1980, "An algorithm for suffix stripping", with the changes of NLTK's `PorterStemmer()`, which the usual
programs for ROUGE and METEOR use: a list of irregular words, IED and a final Y after a consonant become I, LOGI
becomes LOG.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

IRREGULAR = {"skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "innings": "inning", "outings": "outing"}
IRREGULAR |= {"cannings": "canning"}
IRREGULAR |= {each: each for each in ("sky", "news", "howe", "inning", "outing", "canning")}
IRREGULAR |= {each: each for each in ("proceed", "exceed", "succeed")}
# Of each step only the first suffix that a word ends with counts, whether it may be removed or not.
PLURALS = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))
DERIVED = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful")),
)
LONGER = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
LAST = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if word in IRREGULAR or len(word) <= 2:
        return IRREGULAR.get(word, word)
    for step in (plural, past, final_y, derived, longer, last, final_e, final_l):
        word = step(word)
    return word


def plural(word: str) -> str:
    """Step 1a: caresses -> caress, ponies -> poni, cats -> cat."""
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]  # ties -> tie
    return replace(word, PLURALS, lambda stem: True)


def past(word: str) -> str:
    """Step 1b: agreed -> agree, plastered -> plaster, hopping -> hop, filing -> file."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]  # died -> die, tried -> tri
    if word.endswith("eed"):
        return word[:-1] if measure(word[:-3]) > 0 else word
    ending = next((each for each in ("ed", "ing") if word.endswith(each) and "v" in shape(word[: -len(each)])), "")
    if not ending:
        return word
    word = word[: -len(ending)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1] == word[-2:-1] and shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if measure(word) == 1 and is_short(word) else word


def final_y(word: str) -> str:
    """Step 1c: happy -> happi, but enjoy -> enjoy."""
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and shape(word)[-2] == "c" else word


def derived(word: str) -> str:
    """Step 2: relational -> relate, conditional -> condition, radically -> radical, geology -> geolog."""
    if word.endswith("alli") and measure(word[:-4]) > 0:
        return derived(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if measure(word[:-3]) > 0 else word
    return replace(word, DERIVED, lambda stem: measure(stem) > 0)


def longer(word: str) -> str:
    """Step 3: triplicate -> triplic, hopeful -> hope, goodness -> good."""
    return replace(word, LONGER, lambda stem: measure(stem) > 0)


def last(word: str) -> str:
    """Step 4: revival -> reviv, adoption -> adopt, effective -> effect."""
    for suffix in LAST:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return stem if measure(stem) > 1 and (suffix != "ion" or stem[-1] in "st") else word
    return word


def final_e(word: str) -> str:
    """Step 5a: probate -> probat, cease -> ceas, but rate -> rate."""
    stem = word.removesuffix("e")
    removes = stem != word and (measure(stem) > 1 or (measure(stem) == 1 and not is_short(stem)))
    return stem if removes else word


def final_l(word: str) -> str:
    """Step 5b: controll -> control, but roll -> roll."""
    return word[:-1] if word.endswith("ll") and measure(word[:-1]) > 1 else word


def replace(word: str, suffixes: tuple[tuple[str, str], ...], may: Callable[[str], bool]) -> str:
    """The first suffix that fits replaced, if its stem allows it."""
    for suffix, other in suffixes:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return stem + other if may(stem) else word
    return word


def shape(word: str) -> str:
    """Each letter as "c", a consonant, or "v", a vowel; Y is a vowel after a consonant."""
    found = ""
    for letter in word:
        found += "v" if letter in "aeiou" or (letter == "y" and found.endswith("c")) else "c"
    return found


def measure(stem: str) -> int:
    """m of the paper: how often a consonant follows a vowel."""
    return shape(stem).count("vc")


def is_short(stem: str) -> bool:
    """Whether it ends as "hop" does: consonant, vowel, consonant but W, X, Y; or is a vowel and a consonant."""
    kinds = shape(stem)
    return (kinds.endswith("cvc") and stem[-1] not in "wxy") or kinds == "vc"
