"""A recipe chosen for the data: each kind is recognised by its examples, and text that resembles it stays text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqloom
from seqloom.config import automatic
from seqloom.config.automatic import Choice, recipe_for
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.generators.adding import adding
from seqloom.data.generators.arithmetic import arithmetic
from seqloom.data.generators.expressions import expressions
from seqloom.data.generators.hull import hull
from seqloom.data.generators.introductions import introductions
from seqloom.data.generators.parity import parity
from seqloom.data.generators.sorting import sorting
from seqloom.data.generators.tour import tour
from seqloom.data.generators.whereabouts import whereabouts
from seqloom.data.survey import survey
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from seqloom.types import Example

Pairs = list[tuple[Any, Any]]

TRIANGLES = [Example(f"0.1,0.1 0.9,0.{number} 0.4,0.9 0.8,0.8", "0 1 2 1 2 3") for number in range(10, 50)]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"{one}{other}" for one in LETTERS for other in LETTERS]
LABELLED = [Example(f"this is {word} stuff", ("very bad", "good")[word[0] > "m"]) for word in WORDS[::7]]
NAMES = [Example(word, "start" if word[0] < "n" else "end") for word in WORDS[::7]]
SCORED = [Example(f"this is {word} stuff", f"{place / 7:.2f}") for place, word in enumerate(WORDS[::7])]
TAGGED = [Example(f"{one} is {other}", "B-X O B-Y") for one, other in zip(WORDS[:60], WORDS[60:])]
NESTED = [Example(f"a {word}", ["S", ["X", "a"], ["NP", ["Y", word]]]) for word in WORDS[:30]]
CODE = [Example(f"call {word} with {word}s , store it", f"{word} = {word} ( {word}s )") for word in WORDS[::11]]
KINDS = [
    (hull(60), "hull", "sources are points (on average 5) and targets places of them that go round"),
    (hull(60, shortest=3, longest=30), "hull", "that go round, back to the first"),
    (tour(60, shortest=4, longest=7), "tour", "targets visit each of them once, back to the first"),
    (TRIANGLES, "delaunay", "sources are points (on average 4) and targets triples of ascending places"),
    (sorting(60), "sorting", "sources are vectors of numbers (on average 5) and targets each of their places once"),
    (whereabouts(60), "babi", "stories with a question at their end, and targets one of 6 answers"),
    (whereabouts(60, facts=1), "babi", "stories with a question"),
    (parity(60), "parity", "sources are vectors of numbers (one each) and targets one of 2 labels"),
    (LABELLED, "labels", "sources are texts (on average 4 words) and targets are one of 2 labels"),
    (NAMES, "labels", "sources are single words and targets one of 2 labels"),
    (SCORED, "labels", "sources are texts (on average 4 words) and targets one number"),
    (TAGGED, "tags", "sources are texts (on average 3 words) and targets have one of 3 tags for each word"),
    (expressions(60), "parsing", "words) and targets trees over their words"),
    (NESTED, "parsing", "sources are texts (on average 2 words) and targets trees"),
    (introductions(60), "pointer-generator", "and rare words of targets are often copied from them"),
    (CODE, "django", "targets are code whose rare words are often copied from them"),
    (adding(60, length=10), "adding", "sources are vectors of numbers (on average 10) and targets one number"),
]


def choice_for(pairs: list[Example] | Pairs) -> Choice:
    return recipe_for(survey(pair if isinstance(pair, Example) else Example(*pair) for pair in pairs))


@pytest.mark.parametrize(("examples", "recipe", "why"), KINDS)
def test_each_kind_is_recognised_and_its_recipe_takes_the_settings(
    examples: list[Example], recipe: str, why: str
) -> None:
    choice = choice_for(examples)
    assert choice.recipe == recipe
    assert choice.saw.startswith(f"Saw {len(examples)} pairs: sources are ")
    assert why in choice.saw
    assert choice.chose.startswith(f"Chose the recipe {recipe} (")
    complete(override(read_recipe(recipe), choice.settings), recipe, False)


def test_one_bad_line_of_many_changes_nothing_and_many_do() -> None:
    bad = Example("no points here", "0 1 2 0")
    assert choice_for([*hull(200), bad]).recipe == "hull"
    assert choice_for([*hull(200), Example("0.1 0.2 0.3", "0 1 2 0")]).recipe == "hull"
    assert choice_for([*hull(200), *[bad] * 20]).recipe != "hull"


def test_places_with_some_left_out_need_not_be_a_full_order() -> None:
    pairs = [("0.1,0.5 0.2,0.4 0.9,0.1 0.4,0.2", target) for target in ("2 0", "1 3 0", "3 1")] * 10
    choice = choice_for(pairs)
    assert choice.recipe == "sorting"
    assert 'task.valid=""' in choice.settings
    assert "some of their places" in choice.saw
    assert 'task.valid=""' not in choice_for(sorting(30)).settings


def test_places_are_counted_from_0_and_none_is_beyond_the_source() -> None:
    rows = [(each.source, " ".join(str(int(place) + 1) for place in each.target.split())) for each in sorting(60)]
    assert choice_for(rows).recipe != "sorting"
    assert choice_for([("0.3,0.1 0.2,0.9 0.5,0.5", "0 3 1 0")] * 20).recipe != "hull"


@pytest.mark.parametrize(
    "pairs",
    [
        [("3,5 4", "4 3,5"), ("7,1 2", "2 7,1"), ("0,5 1", "1 0,5")] * 20,  # decimal commas
        [("3,5", "1"), ("4,5", "0"), ("7,1", "1")] * 20,
        [("3,5 4,2", "1"), ("7,1 2,0", "0")] * 20,
        [("12,345", "1"), ("1,234,567", "0")] * 20,  # thousands
        [("2024,05,03", "5"), ("1999,12,01", "12")] * 20,
        [("3 5 2024", "2024-05-03"), ("4 12 1999", "1999-12-04")] * 20,  # dates
        [("05 11 2024", "0 1 2"), ("06 12 2023", "0 1 2")] * 20,
        [("1 0 2", "2 0 1"), ("0 2 1", "1 2 0"), ("2 0 1 3", "3 1 0 2")] * 20,  # the words of a source, rearranged
        [("1 2", "0 1"), ("5 4", "1 0")] * 20,  # too few to tell
        [("7", "0"), ("9", "0")] * 20,
        [("one two three", "0 1 2"), ("four five six", "2 1 0")] * 20,
        [("Where is Mary?", "here"), ("Who is John?", "me")] * 20,  # a question alone
        [("It rains. Where is Mary?", "She is at home"), ("He left. Why?", "Nobody knows")] * 20,
        [("Is it so? It is. No answer.", "yes"), ("He came. He went.", "no")] * 20,  # no question at the end
        [(f"Er ging. Warum {number}?", f"答案{number}") for number in range(40)],  # no two answers are the same
        [(each.source, each.target) for each in arithmetic(60)],
    ],
)
def test_text_that_resembles_them_stays_text(pairs: Pairs) -> None:
    assert choice_for(pairs).recipe in ("dates", "g2p-lstm", "multi30k-lstm")


def points(example: Example) -> np.ndarray:
    return np.array([list(map(float, each.split(","))) for each in example.source.split()])


def places(example: Example) -> list[int]:
    return [int(each) for each in example.target.split()]


@pytest.mark.parametrize(("examples", "recipe", "why"), KINDS)
def test_the_chosen_recipe_trains(
    examples: list[Example], recipe: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    model = seqloom.fit(examples, out=tmp_path / "run", settings=["train.steps=1"], display=Display.quiet())
    assert model.predict([examples[0].source])[0]


@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor, lambda value: np.asarray(value).tolist()])
def test_arrays_are_recognised_like_their_texts(array: Callable[[Any], Any]) -> None:
    for recipe, examples in (("hull", hull(40)), ("tour", tour(40)), ("sorting", sorting(40)), ("delaunay", TRIANGLES)):
        assert choice_for([(array(points(each)), places(each)) for each in examples]).recipe == recipe
        assert choice_for([(array(points(each)), np.array(places(each))) for each in examples]).recipe == recipe
    assert choice_for([(array(points(each)), each.target) for each in parity(40)]).recipe == "parity"
    assert choice_for([(array(points(each)), float(each.target)) for each in adding(40, length=4)]).recipe == "adding"
    pairs = [(array(points(each)), [place, 1 - place]) for each in hull(40) for place in (0, 1)]
    assert choice_for(pairs).recipe == "sorting"


def test_a_story_may_be_a_list_of_sentences() -> None:
    pairs = [(each.source.replace(". ", ".|").split("|"), each.target) for each in whereabouts(40)]
    assert choice_for(pairs).recipe == "babi"


@pytest.mark.parametrize(
    "pair",
    [
        (np.zeros((4, 2)), "a sentence of words"),
        (np.zeros((4, 2)), [[0.1, 0.2], [0.3, 0.4]]),
        (np.zeros((4, 2, 2)), [0, 1]),
        (np.zeros((4, 2)), [0, 7]),
        (np.zeros((4, 2)), 1),  # a class or a value?
        (["a text", "a list"], "text"),
    ],
)
def test_other_values_than_texts_ask_for_a_recipe_in_one_line(pair: tuple[Any, Any], tmp_path: Path) -> None:
    with pytest.raises(SeqloomError) as caught:
        seqloom.fit([pair] * 20, out=tmp_path / "run", display=Display.quiet())
    assert "name a recipe" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_arrays_and_places_are_trained_without_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    pairs = [(points(each), places(each)) for each in hull(40)]
    small = ["encoder.size=8", "decoder.size=8", "train.steps=1"]
    model = seqloom.fit(pairs, out=tmp_path / "run", settings=small, display=Display.quiet())
    answer = model.predict([pairs[0][0]])[0]
    assert answer[0] == answer[-1]


@pytest.mark.parametrize(
    "pairs",
    [
        [(f"{one} {other}", f"{other} {one}") for one, other in pairwise(WORDS)],  # words in another order
        [(" ".join(word), " ".join(word.upper())) for word in WORDS[:50]],  # a cipher: as many letters as capitals
        [(f"{word} of it", "NN IN") for word in WORDS[:50]],  # fewer tags than words
        [(f"yes no {word} so", "no yes no so") for word in WORDS[:50]],  # as many words, but words of the source
        [(f"say {word}", f"{word} {word} said") for word in WORDS[:50]],  # one long output for each source
        [("yes", "ja"), ("no", "nein"), ("no", "nö")] * 30,  # labels would need more sources
        [(f"sentence {word}", f"Satz {word[0]} ist ein langer Satz, den es noch einmal gibt") for word in WORDS],
    ],
)
def test_text_that_resembles_labels_or_tags_stays_text(pairs: Pairs) -> None:
    assert choice_for(pairs).recipe in ("dates", "g2p-lstm", "multi30k-lstm")


def test_a_few_bad_lines_do_not_hide_tags() -> None:
    assert choice_for([*TAGGED * 4, Example("one too few", "O O")]).recipe == "tags"
    assert choice_for([*TAGGED * 4, *[Example("one too few", "O O")] * 20]).recipe != "tags"


def test_paths_of_recordings_are_speech() -> None:
    choice = choice_for([(f"train/{number}.wav", "three one") for number in range(30)])
    assert choice.recipe == "speech-attention"
    assert "names of recordings" in choice.saw
    assert choice_for([(f"see {number}.wav", f"page {number}") for number in range(30)]).recipe != "speech-attention"


def test_paths_of_pictures_are_captioned() -> None:
    choice = choice_for([(f"train/{number}.JPG", f"a dog in field {number % 3}") for number in range(30)])
    assert choice.recipe == "captions-attention"
    assert "names of pictures" in choice.saw


@pytest.mark.parametrize("ending", ["mp4", "NPZ", "webm"])
def test_paths_of_films_are_read_from_the_lips(ending: str) -> None:
    choice = choice_for([(f"clips/{number}.{ending}", f"place red at {number % 3} now") for number in range(30)])
    assert choice.recipe == "lips"
    assert "task.source.size=48" in choice.settings
    assert "names of films" in choice.saw
    complete(override(read_recipe("lips"), choice.settings), "lips", False)


@pytest.mark.parametrize("recipe", automatic.ALTERNATIVES)
def test_what_is_worth_a_try_is_a_recipe(recipe: str) -> None:
    name, *settings = automatic.ALTERNATIVES[recipe][0].replace(" --set ", "\n").split("\n")
    complete(override(read_recipe(name), settings), name, False)
    assert {each for each, *_ in automatic.KINDS.values()} <= {*automatic.ALTERNATIVES}
