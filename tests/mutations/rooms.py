"""Which files are mutated, and which tests ought to notice, likeliest first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PARTS = "tests/contracts/test_parts.py"
STACKS = ("conv_s2s", "byte_net", "deep_att", "bottom_attention", "convolution", "fast_forward")
ROOMS: dict[str, tuple[str, list[str]]] = {  # folder, tests
    "cells": (
        "seqloom/nn/cells",
        ["tests/exact/test_cells.py", "tests/exact/test_halting.py", f"{PARTS}::test_cells"],
    ),
    "attention": (
        "seqloom/nn/attention",
        [
            *(f"tests/exact/test_{name}.py" for name in ("attention", "monotonic", "transformer", "encoder_decoder")),
            f"{PARTS}::test_attention",
            *(f"tests/exact/test_{name}.py" for name in ("copying", "waiting", "layers_by_hand")),
        ],
    ),
    "decoders": (
        "seqloom/nn/decoders",
        [
            *(
                f"tests/exact/test_{name}.py"
                for name in ("encoder_decoder", "layers_by_hand", "transformer", "copying")
            ),
            *(f"tests/exact/test_{name}.py" for name in ("transducers", "neural_transducer", "emission", "merging")),
            f"{PARTS}::test_decoders_and_heads",
            *(f"tests/exact/test_{name}.py" for name in ("simultaneous", "sets", "running_text", "vectors", "valid")),
        ],
    ),
    "stacks": (  # ConvS2S, ByteNet and Deep-Att: parts of three folders
        "seqloom/nn",
        [
            *(f"tests/exact/test_{name}.py" for name in ("convolution", "deep_att", "tied_embeddings")),
            f"{PARTS}::test_encoders",
            f"{PARTS}::test_decoders_and_heads",
        ],
    ),
    "objectives": (
        "seqloom/objectives",
        [
            *(f"tests/exact/test_{name}.py" for name in ("cross_entropy", "scheduled_sampling", "raml", "margin")),
            *(f"tests/exact/test_{name}.py" for name in ("expected_reward", "rewards", "emission", "simultaneous")),
            *(f"tests/exact/test_{name}.py" for name in ("sets", "transducers", "monotonic", "halting", "vectors")),
            f"{PARTS}::test_objectives",
        ],
    ),
    "search": (
        "seqloom/search",
        [
            *(f"tests/exact/test_{name}.py" for name in ("merging", "early_stopping", "no_repeat", "sampling", "bag")),
            *(f"tests/exact/test_{name}.py" for name in ("valid", "prefix_beam", "waiting")),
            f"{PARTS}::test_constraints",
            f"{PARTS}::test_searches",
            "tests/exact/test_search.py",
        ],
    ),
    "train": (
        "seqloom/train",
        [
            *(
                f"tests/train/test_{name}.py"
                for name in (
                    "optimiser",
                    "schedule",
                    "log",
                    "forecast",
                    "planning",
                    "resuming",
                    "display",
                    "divergence",
                    "trainer",
                    "budget",
                )
            ),
            "tests/storage/test_checkpoint.py",
        ],
    ),
}
TOO_SLOW = (
    *("tests/learn", "tests/cli", "tests/docs", "tests/studies", "tests/bench", "tests/faults", "tests/mutations"),
    *("tests/exact/test_engines.py", "tests/exact/test_gradcheck.py"),
)


def sources(room: str, root: Path) -> list[str]:
    folder, _ = ROOMS[room]
    paths = sorted(path for path in (root / folder).rglob("*.py") if path.stat().st_size)
    return [str(path.relative_to(root)) for path in paths if room != "stacks" or path.stem in STACKS]


def likely_tests(room: str, path: str, root: Path) -> list[list[str]]:
    """First the tests of the room that import the changed module; then its other tests, and others that import the
    module or one that imports it."""
    _, chosen = ROOMS[room]
    package = [str(file.relative_to(root)) for file in sorted((root / "seqloom").rglob("*.py"))]
    users = [path, *(each for each in package if imports(root / each, path))]
    close = [test for test in chosen if "::" not in test and imports(root / test, path)]
    files = (str(test.relative_to(root)) for test in sorted((root / "tests").rglob("test_*.py")))
    known = {test.split("::")[0] for test in chosen}
    others = (test for test in files if test not in known and not test.startswith(TOO_SLOW))
    further = [test for test in others if any(imports(root / test, each) for each in users)]
    rest = [test for test in chosen if test not in close]
    return [tests for tests in (close, [*rest, *further]) if tests]


def imports(file: Path, path: str) -> bool:
    """Whether a file imports the module of another path."""
    module = path.removesuffix(".py").replace("/", ".")
    folder, _, name = module.rpartition(".")
    text = text_of(file)
    return f"{module} " in text or f"from {folder} import {name}" in text


@cache
def text_of(file: Path) -> str:
    return file.read_text()
