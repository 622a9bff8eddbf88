"""Beam search of a source that comes in pieces: it stops where a hypothesis waits, and goes on as if it had not."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.arrays import cast, log_softmax, namespace
from seqloom.contracts import Stepper
from seqloom.errors import SeqloomError
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.required import Required
from seqloom.search.sample import Sampling
from tests.exact import online
from tests.exact.online import BOS, EOS, VOCABULARY, grown, memory


class Follower(Stepper):
    """Token t reads state wait + t, and at the last one beyond the end; what was written before matters too."""

    bos, eos, online = BOS, EOS, True

    def __init__(self, wait=1, length_ratio=1.0, length_offset=2):
        self.wait, self.length_ratio, self.length_offset = wait, length_ratio, length_offset

    def start(self, memory):
        nothing = namespace(memory.lengths).zeros_like(memory.lengths)
        return {"count": nothing, "story": nothing}

    def step(self, token, state, memory):
        xp, length = namespace(token), memory.offset + memory.lengths[memory.owner(len(token))]
        story = (31 * state["story"] + token) % 1009
        wanted = self.wait + state["count"]
        whims = xp.sin(cast(story[:, None] * xp.arange(1, 1 + VOCABULARY), memory.states))
        logits = online.here(memory, (wanted - 1).clip(None, length - 1)) + 2 * whims
        if not memory.closed:
            logits = xp.where((wanted > length)[:, None], float("-inf"), logits)
        return logits, {"count": state["count"] + 1, "story": story}

    def states_read(self, state, memory):
        xp, length = namespace(state["count"]), memory.offset + memory.lengths[memory.owner(len(state["count"]))]
        return xp.minimum(self.wait + state["count"] - 1, length)

    def first_needed(self, state):
        return max(int(self.wait + state["count"].min() - 2), 0)  # the last one, should no more come


class Sums(Follower):
    """The same, but that it gives log-probabilities, and to some of them more than there is."""

    scores = "log_probs"

    def step(self, token, state, memory):
        logits, state = super().step(token, state, memory)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(logits), logits, 1.5 * log_softmax(logits)), state


def streamed(search, decoder, whole, cuts, forget=False, constraints=()):
    length, beam, forgotten, certain = int(whole.lengths[0]), None, 0, []
    for cut in [*sorted(cuts), None]:
        part = grown(whole, length if cut is None else cut, cut is None, forgotten)
        beam = search.start(decoder, part, None, constraints) if beam is None else beam
        beam = search.advance(decoder, part, beam)
        certain.append(search.so_far(beam))
        if forget and len(beam.entries):
            forgotten = max(forgotten, min(decoder.first_needed(beam.state), length if cut is None else cut))
    return search.finish(decoder, part, beam), certain


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from([1, 2, 3]),
    cuts=st.lists(st.integers(1, 8), max_size=6),
    wait=st.integers(1, 4),
    penalty=st.sampled_from([0.0, 1.0]),
    kind=st.sampled_from([Follower, Sums]),
    forget=st.booleans(),
    seed=st.integers(0, 30),
)
def test_a_source_in_pieces_is_the_source_at_once(size, cuts, wait, penalty, kind, forget, seed):
    decoder, whole = kind(wait), memory((8, 8), seed)
    search = BeamSearch(beam_size=size, n_best=size, length_penalty=penalty)
    found, certain = streamed(search, decoder, whole, cuts, forget)
    assert found == search(decoder, whole)
    for before, after in itertools.pairwise(certain):
        for (final, rest, times), (later, _, later_times) in zip(before, after):
            assert later[: len(final)] == final
            assert later_times[: len(final)] == times[: len(final)]
            assert len(times) == len(final) + len(rest)
            assert size > 1 or rest == []
    for (final, rest, times), hypotheses in zip(certain[-1], found):
        assert (final, rest, times) == (hypotheses[0].tokens, [], hypotheses[0].times)


def test_it_writes_as_soon_as_it_may():
    whole, decoder, search = memory((8,), 3), Follower(wait=3), BeamSearch(beam_size=1, minimum_length=8)
    beam = search.start(decoder, grown(whole, 1, False))
    for length in (1, 2, 3, 4, 7):
        beam = search.advance(decoder, grown(whole, length, False), beam)
        ((final, rest, times),) = search.so_far(beam)
        assert rest == []
        assert times == list(range(3, length + 1))
        assert len(final) == len(times)


def test_a_limit_that_more_of_the_source_would_raise_ends_nothing():
    """Of one state there may be three tokens, of eight ten: three have been written, and nothing is forced to end."""
    whole, decoder = memory((8,), 3), Follower(wait=-20)  # it never waits by itself
    search = BeamSearch(beam_size=2, n_best=2, length_penalty=0.0)
    beam = search.advance(decoder, grown(whole, 1, False), search.start(decoder, grown(whole, 1, False)))
    assert len(beam.steps) == 2  # the third could only have been EOS
    assert streamed(search, decoder, whole, [1, 2, 5])[0] == search(decoder, whole)
    required = (Required([[[4, 5, 4]]], EOS),)
    found, _ = streamed(search, decoder, whole, [7], constraints=required)
    assert all((4, 5, 4) in zip(one.tokens, one.tokens[1:], one.tokens[2:]) for one in found[0])
    assert found[0]


def test_log_probabilities_are_taken_as_they_are():
    whole, search = memory((4,), 3), BeamSearch(beam_size=50, n_best=3, length_penalty=0.0)
    once, more = (search(kind(), whole)[0] for kind in (Follower, Sums))
    assert [one.tokens for one in once] == [one.tokens for one in more]
    assert [1.5 * one.score for one in once] == pytest.approx([one.score for one in more])


def test_a_step_that_is_discarded_leaves_no_trace():
    whole, decoder, search = memory((6,), 3), Follower(), BeamSearch(beam_size=2, minimum_length=5)
    part = grown(whole, 3, False)
    beam = search.advance(decoder, part, search.start(decoder, part))
    again = search.advance(decoder, part, beam)
    assert len(again.steps) == len(beam.steps) == 3
    assert (again.totals == beam.totals).all()


def test_a_sample_is_certain_only_at_its_end():
    whole = replace(memory((3,)), closed=True)
    search = Sampling()
    with pytest.raises(SeqloomError, match="stream with a beam"):
        search.so_far(search.advance(Follower(), whole, search.start(Follower(), whole)))
