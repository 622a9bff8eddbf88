"""A decoder that is a table, in numpy or torch, and searches for it. This file itself does not import torch."""

from typing import Any

import numpy as np

from seqloom.arrays import Array, like, namespace
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.bag import Bag
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.required import Required
from seqloom.search.sample import Sampling
from seqloom.types import Hypothesis, Memory, Output, Padded, State

BOS, EOS, VOCABULARY = 2, 3, 9


class Bigrams(Stepper):
    """The next token depends on this one, on the one before, which is its state, and on the source."""

    def __init__(self, eos: int | None = EOS, length_offset: int = 4, fading: float = 0.0):
        self.bos, self.eos, self.length_ratio, self.length_offset = BOS, eos, 0.5, length_offset
        self.fading = fading  # how much of all earlier tokens is left a step later: no two outputs score alike
        self.table = np.random.default_rng(1).normal(size=(2, VOCABULARY, VOCABULARY))

    def start(self, memory: Memory) -> State:
        return {"previous": namespace(memory.lengths).zeros_like(memory.lengths), "trace": 0 * memory.states[:, 0, 0]}

    def step(self, token: Array, state: State, memory: Memory) -> tuple[Array, State]:
        table = like(token, self.table)
        logits = table[0][token] + table[1][state["previous"]] + memory.states[memory.owner(len(token)), 0]
        trace = self.fading * (state["trace"] + token)
        return logits + trace[:, None] * table[1][-1], {"previous": token, "trace": trace}

    def __call__(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        output = super().__call__(memory, inputs, state)
        if not attention:
            return output
        places = memory.states.shape[1]
        weights = like(memory.states, self.table)[0, :, :places] ** 2
        attended = (weights / weights.sum(1)[:, None])[inputs.values]  # (rows, U, T)
        return Output(output.hidden, output.project, output.state, {"source": attended[:, None, None]})


def memory() -> Memory:
    """Three sources, in numpy."""
    states = np.random.default_rng(2).normal(size=(3, 4, VOCABULARY))
    return Memory(states, np.array([4, 2, 3]))


def prefix() -> Padded:
    return Padded(np.array([[4, 5], [6, 0], [0, 0]]), np.array([2, 1, 0]))


Case = tuple[Search, dict[str, Any], tuple[Constraint, ...], bool]  # search, decoder, constraints, with a prefix


def cases() -> dict[str, Case]:
    """Every option of every search."""
    wide: dict[str, Any] = {"beam_size": 6, "n_best": 4}
    bag = Bag(Padded(np.array([[4, 5, 6, 5], [8, 7, 0, 0], [7, 6, 4, 0]]), np.array([4, 2, 3])), EOS)
    required = Required([[[5, 6], [7]], [[8]]], EOS)
    return {
        "greedy": (BeamSearch(beam_size=1), {}, (), False),
        "beam": (BeamSearch(**wide), {}, (), False),
        "no normalisation": (BeamSearch(**wide, length_penalty=0.0), {}, (), False),
        "gnmt": (BeamSearch(**wide, length_penalty=0.6, normalisation="gnmt"), {}, (), False),
        "coverage": (BeamSearch(**wide, coverage_penalty=0.4), {}, (), False),
        "lengths": (BeamSearch(**wide, minimum_length=3, maximum_length=5), {}, (), False),
        "to the end": (BeamSearch(**wide, early_stopping=False), {"length_offset": 9}, (), False),
        "no end token": (BeamSearch(**wide), {"eos": None}, (), False),
        "no repeat": (BeamSearch(**wide, no_repeat=1), {}, (), False),
        "no phrase twice": (BeamSearch(**wide), {"length_offset": 9}, (NoRepeat(2),), False),
        "banned": (BeamSearch(**wide), {}, (Banned([[0], [1], [4, 5], [6, 7, 8]]),), False),
        "required": (BeamSearch(**wide), {"length_offset": 6}, (required,), False),
        "bag": (BeamSearch(**wide), {"length_offset": 6}, (bag,), False),
        "last scores": (BeamSearch(**wide, rank_by="last"), {"fading": 0.3}, (), False),
        "last scores of a bag": (
            BeamSearch(**wide, rank_by="last"),
            {"length_offset": 6, "fading": 0.3},
            (bag,),
            False,
        ),
        "prefix": (BeamSearch(**wide), {}, (), True),
        "all at once": (
            BeamSearch(**wide, no_repeat=3, minimum_length=2),
            {"length_offset": 7},
            (Banned([[0], [4, 6]]), required),
            True,
        ),
        "likeliest": (Sampling(argmax_every=1, n_best=2), {}, (Banned([[0]]),), True),
        "likeliest of few": (Sampling(argmax_every=1, top_k=3, top_p=0.5, no_repeat=2), {}, (), False),
        "the only one": (Sampling(top_k=1), {}, (), False),
    }


def found(name: str, sources: Memory, beginning: Padded) -> list[list[Hypothesis]]:
    search, settings, constraints, with_prefix = cases()[name]
    return search(Bigrams(**settings), sources, beginning if with_prefix else None, constraints)


def plain(hypotheses: list[list[Hypothesis]]) -> list[Any]:
    """As JSON has it."""
    return [[vars(each) for each in one] for one in hypotheses]


def in_numpy() -> dict[str, Any]:
    return {name: plain(found(name, memory(), prefix())) for name in cases()}


def of_a_stored_run(folder: str) -> dict[str, Any]:
    """What a run's recipe, codecs and search make of a text, the model aside."""
    from pathlib import Path

    from seqloom.config.build import build_part, build_task
    from seqloom.storage.toml import read_toml

    recipe = read_toml(Path(folder) / "config.toml")
    task = build_task(recipe).load(Path(folder))
    search = build_part("search", recipe["search"], "search")
    assert task.source is not None
    source = task.source.decode(task.source.encode("loom"))
    return {"search": type(search).__name__, "source": source, "target": task.decode(task.encode("mool"))}
