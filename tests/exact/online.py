"""Decoders with a blank that are tables, in arrays of either kind, and everything they can write."""

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np

from seqloom.arrays import Array, cast, log_softmax, namespace
from seqloom.contracts import Stepper
from seqloom.types import Memory, State, positions_below

BLANK, UNKNOWN, BOS, EOS, WORDS = 0, 1, 2, 3, (4, 5)
VOCABULARY = 6


class Table(Stepper):
    """What comes next depends on where the row stands, and on all that it has written."""

    blanks = (BLANK,)
    online = True
    bos, eos = BOS, EOS

    def start(self, memory: Memory) -> State:
        nothing = namespace(memory.lengths).zeros_like(memory.lengths)
        return {"frame": nothing, "story": nothing}

    def step(self, token: Array, state: State, memory: Memory) -> tuple[Array, State]:
        xp = namespace(token)
        frame = state["frame"] + (token == BLANK)
        story = xp.where((token == BLANK) | (token == BOS), state["story"], (31 * state["story"] + token) % 1009)
        whims = xp.sin(cast(story[:, None] * xp.arange(1, 1 + VOCABULARY, device=token.device), memory.states))
        return self.scored(here(memory, frame) + 2 * whims, frame, memory), {"frame": frame, "story": story}

    def scored(self, logits: Array, frame: Array, memory: Memory) -> Array:
        """Log-probabilities of the blank and of words; past the last state of a closed memory only EOS."""
        logits[:, UNKNOWN : EOS + 1] = float("-inf")
        return at_the_end(log_softmax(logits), frame, memory)

    def states_read(self, state: State, memory: Memory) -> Array:
        return state["frame"] + 1

    def first_needed(self, state: State) -> int:
        return int(state["frame"].min())


class Frames(Table):
    """CTC: each state has a label of its own, repeats are one token, and a blank stands between real ones."""

    advances = "all"

    def start(self, memory: Memory) -> State:
        nothing = namespace(memory.lengths).zeros_like(memory.lengths)
        return {"frame": nothing, "last": nothing, "mixture": {"ends": 0 * memory.states[:, :1, 0].sum(1)}}

    def step(self, token: Array, state: State, memory: Memory) -> tuple[Array, State]:
        xp, each = namespace(token), namespace(token).arange(len(token), device=token.device)
        before = xp.exp(frames(memory, state["frame"]))  # (rows, V)
        again = state["mixture"]["ends"] * before[each, state["last"]]
        ends = xp.where(token == BLANK, again / (again + before[:, BLANK]), (token != BOS) * 1.0)
        ends = xp.where((token == BLANK) & (state["last"] == BLANK), 0.0, ends)
        last = xp.where((token == BLANK) | (token == BOS), state["last"], token)
        frame = state["frame"] + (token != BOS)
        now = xp.exp(frames(memory, frame))
        scores = now * 1.0
        scores[each, last] = now[each, last] * (1 - ends)
        scores[:, BLANK] = now[:, BLANK] + xp.where(last == BLANK, 0.0, ends * now[each, last])
        if xp is np:
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        else:
            scores = scores.log()
        return at_the_end(scores, frame, memory), {"frame": frame, "last": last, "mixture": {"ends": ends}}


def here(memory: Memory, frame: Array) -> Array:
    """The state where each row stands.  (rows, V)"""
    owner, places = memory.owner(len(frame)), memory.states.shape[1]
    if not places:
        return namespace(frame).zeros((len(frame), VOCABULARY), dtype=memory.states.dtype)
    return memory.states[owner, (frame - memory.offset).clip(0, places - 1)] * 1.0


def frames(memory: Memory, frame: Array) -> Array:
    logits = here(memory, frame)
    logits[:, UNKNOWN : EOS + 1] = float("-inf")
    return log_softmax(logits)


def at_the_end(scores: Array, frame: Array, memory: Memory) -> Array:
    xp = namespace(scores)
    over = (frame - memory.offset >= memory.lengths[memory.owner(len(frame))])[:, None]
    ending = xp.full_like(scores, float("-inf"))
    if memory.closed:
        ending[:, EOS] = 0
    return xp.where(over, ending, scores)


def memory(lengths: tuple[int, ...] = (3, 1, 2), seed: int = 1, sharp: float = 1.5) -> Memory:
    """Random states, in numpy. What stands beyond a source's end is as random as the rest."""
    states = sharp * np.random.default_rng(seed).normal(size=(len(lengths), max(lengths), VOCABULARY))
    return Memory(states, np.array(lengths))


def source(whole: Memory, number: int) -> Memory:
    """One of several sources, without padding."""
    return Memory(whole.states[number : number + 1, : int(whole.lengths[number])], whole.lengths[number : number + 1])


def paths(decoder: Table, one: Memory, per_state: int) -> dict[tuple[int, ...], float]:
    """Every output of one source with its probability: the sum over all ways to write it, step by step."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    if isinstance(decoder, Frames):
        log_probs = log_softmax(masked(one.states[0]))
        for labels in itertools.product((BLANK, *WORDS), repeat=len(log_probs)):
            collapsed = [label for label, _ in itertools.groupby(labels) if label != BLANK]
            total = sum(log_probs[place, label] for place, label in enumerate(labels))
            found[tuple(collapsed)] += math.exp(total)
        return dict(found)

    def walk(token: int, state: State, total: float, output: tuple[int, ...], here: int) -> None:
        scores, after = decoder.step(np.array([token]), state, one)
        for following in np.flatnonzero(scores[0] > float("-inf")).tolist():
            going = total + float(scores[0, following])
            if following == EOS:
                found[output] += math.exp(going)
            elif following == BLANK:
                walk(following, after, going, output, 0)
            elif here < per_state:
                walk(following, after, going, (*output, following), here + 1)

    walk(BOS, decoder.start(one), 0.0, (), 0)
    return dict(found)


def masked(logits: Any) -> Any:
    logits = logits * 1.0
    logits[:, UNKNOWN : EOS + 1] = float("-inf")
    return logits


def grown(whole: Memory, length: int, closed: bool, forgotten: int = 0) -> Memory:
    """The first states of sources of one length, and perhaps not the very first any more."""
    part = Memory(whole.states[:, :length], 0 * whole.lengths + length, closed=closed)
    assert positions_below(part.lengths, length).all()
    return part.forget(forgotten)
