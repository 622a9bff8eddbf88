"""Every part of the package keeps its contract, plain and in its variants: one test per check of seqloom.testing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom import metrics
from seqloom.config.discovery import parts
from seqloom.contracts import Head, Online
from seqloom.data.codecs.audio import Audio
from seqloom.search.constraints.bag import Bag
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.known import Known
from seqloom.search.constraints.length import MinimumLength
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.prefix import ForcedPrefix
from seqloom.search.constraints.required import Required
from seqloom.search.constraints.ring import Ring
from seqloom.search.constraints.tour import Tour
from seqloom.search.constraints.tree import WellFormed
from seqloom.search.constraints.triangles import Triangles
from seqloom.testing import Check, checks_of, streaming
from seqloom.testing import parts as runner
from seqloom.types import Padded
from tests.building import VARIANTS, build, contract_checks, objectives_of_any_decoder

PLACES = {"source": Padded(np.zeros((3, 5), dtype=np.int64), np.array([5, 4, 3])), "first": 4}
CONSTRAINTS: dict[str, tuple[type, dict[str, Any]]] = {
    "bag": (Bag, {"source": Padded(np.array([[4, 5, 6, 5], [8, 7, 0, 0], [7, 6, 4, 0]]), np.array([4, 2, 3]))}),
    "banned": (Banned, {"phrases": [[8], [4, 5], [6, 7, 8]]}),
    "known": (Known, {"tokens": np.array([5, -1, -1, 7, -1])}),
    "minimum length": (MinimumLength, {"length": 4}),
    "no repeat": (NoRepeat, {"length": 2}),
    "prefix": (ForcedPrefix, {"prefix": Padded(np.array([[4, 5], [6, 0], [0, 0]]), np.array([2, 1, 0]))}),
    "required": (Required, {"requirements": [[[5, 6], [7]], [[8]]]}),
    "ring": (Ring, PLACES),
    "tour": (Tour, PLACES),
    "tree": (WellFormed, {"source": PLACES["source"], "first": 4, "labels": 2, "tags": 1}),
    "triangles": (Triangles, PLACES),
}
SOUNDS = [np.random.default_rng(seed).normal(size=2000 + 400 * seed).astype(np.float32) / 8 for seed in range(3)]
PICTURES = [np.random.default_rng(size).integers(0, 256, (size, 7, 3), dtype=np.uint8) for size in (5, 8, 12)]
FILMS = [np.random.default_rng(count).integers(0, 256, (count, 9, 7), dtype=np.uint8) for count in (4, 1, 6)]
TALKING = [{"frames": film, "fps": 50.0, "sound": sound, "rate": 8000} for film, sound in zip(FILMS, SOUNDS)]
CODECS: dict[str, dict[str, dict[str, Any]]] = {
    "text": {
        "char": {"units": "char"},
        "word": {"units": "word"},
        "byte": {"units": "byte"},
        "bpe": {"units": "bpe", "size": 20},
        "unigram": {"units": "unigram", "size": 30},
        "word pieces": {"units": "wordpiece", "size": 30},
        "lower case": {"units": "char", "lowercase": True},
    },
    "numbers": {"plain": {}},
    "piano_roll": {"plain": {"examples": [[[60, 64, 67], [62], []], [[21], [108]], "60,64 - 62"]}},
    "places": {"plain": {}},
    "words": {"plain": {}, "of few letters": {"letters": 2, "lowercase": True}},
    "story": {"plain": {"examples": ["Mary left. Where is Mary?", "John is here. It rains. Where is John?"]}},
    "image": {
        "plain": {"examples": PICTURES, "size": 8},
        "grey, padded": {"examples": PICTURES, "size": 6, "width": 9, "grey": True, "fit": "pad"},
    },
    "video": {
        "plain": {"examples": FILMS, "size": 8},
        "in colour, with sound": {"examples": TALKING, "size": 6, "width": 9, "grey": False, "sound": Audio(rate=8000)},
    },
    "pixels": {
        "plain": {"examples": PICTURES, "size": 6, "width": 5, "fit": "stretch"},
        "in colour, of 256 levels": {"examples": PICTURES, "size": 4, "grey": False, "levels": 256, "fit": "crop"},
    },
    "frames": {
        "plain": {"examples": FILMS, "frames": 12, "size": 6, "width": 5, "fit": "stretch"},
        "in colour, of 256 levels": {
            "examples": FILMS,
            "frames": 9,
            "size": 4,
            "grey": False,
            "levels": 256,
            "fit": "crop",
        },
    },
    "wave": {
        "plain": {"examples": SOUNDS},
        "of few levels": {"examples": SOUNDS, "levels": 16, "mu": 15.0, "gain": 2.0},
    },
    "signal": {"plain": {"examples": SOUNDS}, "short frames": {"examples": SOUNDS, "frame": 3}},
    "dialogue": {
        "plain": {"examples": ["loom weaves __eou__ warp and weft __eou__", ["weft", "and warp"]]},
        "of words": {"units": "word", "turns": 1, "longest": 2},
    },
    "audio": {"plain": {"examples": SOUNDS}, "not normalised": {"examples": SOUNDS, "normalise": False}},
}
TREES = ["(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))", "(NP (NN cloth))", "(S (S (VP (VB weave))) (. .))"]
CODECS["tree"] = {"plain": {"examples": TREES}, "without tags": {"examples": TREES, "tags": False}}
SQUARE = ["0,0 1,0 1,1 0,1", "0,0 2,0 2,1 0,1", "0,0 1,0 1,2 0,2"]
POINTS: dict[str, list[tuple[Any, Any]]] = {
    "hull": list(zip(SQUARE, ([0, 1, 2, 3, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 0]))),
    "tour": list(zip(SQUARE, ([0, 1, 2, 3, 0], [0, 1, 2, 3, 0], [0, 3, 2, 1, 0]))),
    "triangles": list(zip(SQUARE, ([0, 1, 2, 0, 2, 3], [0, 1, 3, 1, 2, 3], [0, 1, 2, 0, 2, 3]))),
}


def hold(check: Check) -> None:
    """Run a check as check_part does."""
    result = runner.run(check)
    if result.outcome == "not asked":
        pytest.skip(result.reason)
    assert result.outcome == "passed", str(result)


@pytest.mark.parametrize("check", contract_checks("cells"))
def test_cells(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize("check", contract_checks("attention"))
def test_attention(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize("check", contract_checks("encoders"))
def test_encoders(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize("check", contract_checks("decoders"))
def test_decoders_and_heads(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}: {check.claim}")
        for name in objectives_of_any_decoder()
        for check in checks_of(parts("objectives")[name])
    ],
)
def test_objectives(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}-{settings}: {check.claim}")
        for name, part in parts("search").items()
        for settings in ({}, {"n_best": 3})
        for check in checks_of(part, **settings)
    ],
)
def test_searches(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}: {check.claim}")
        for name, (part, settings) in CONSTRAINTS.items()
        for check in checks_of(part, **settings)
    ],
)
def test_constraints(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}-{variant}: {check.claim}")
        for name, variants in CODECS.items()
        for variant, settings in variants.items()
        for check in checks_of(parts("codecs")[name], **settings)
    ],
)
def test_codecs(check: Check) -> None:
    hold(check)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}: {check.claim}")
        for name in metrics.names()
        for check in checks_of(getattr(metrics.find(name), name), examples=POINTS.get(name))
    ],
)
def test_metrics(check: Check) -> None:
    hold(check)


def test_every_codec_is_checked_except_those_that_are_made_by_a_task() -> None:
    assert set(parts("codecs")) - set(CODECS) == {"copying"}


# -- more than a check can ask of any one part

STREAMING = {
    f"{name}-{variant}": (part, changes)
    for name, part in parts("encoders").items()
    for variant, changes in {"plain": {}, **VARIANTS.get(("encoders", name), {})}.items()
    if build(part, **changes).streams
}


def test_some_encoders_of_every_kind_stream() -> None:
    assert {name.split("-")[0] for name in STREAMING} == {"chunked", "convolution", "pyramidal", "recurrent", "video"}


@pytest.mark.parametrize("name", STREAMING)
@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(sum))
def test_a_source_in_pieces_drawn_at_random_is_the_source(name: str, cuts: list[int]) -> None:
    part, changes = STREAMING[name]
    streaming.a_source_in_pieces_is_the_source_whatever_the_pieces(build(part, **changes), [cuts])


def test_every_way_to_write_an_output_is_among_the_decoders() -> None:
    """Heads, decoders that read first and decoders that write while they read are checked by their own files."""
    kinds = {
        Head if issubclass(part, Head) else Online if issubclass(part, Online) else None: part
        for part in parts("decoders").values()
    }
    assert set(kinds) == {Head, Online, None}
