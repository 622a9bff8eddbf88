"""Prefix beam search against every way to write every output."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import SeqloomError
from seqloom.search.constraints.bag import Bag
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.required import Required
from seqloom.search.merging import Group
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Memory, Padded
from tests.exact import online
from tests.exact.online import BLANK, BOS, EOS, VOCABULARY, WORDS, Frames, Table

WIDE = 200
DECODERS = {"table": Table(), "frames": Frames()}
decoders = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


def ranked(outputs):
    return sorted(((math.log(each), tokens) for tokens, each in outputs.items() if each), reverse=True)


def rounded(hypotheses):
    """Without the rounding of sums."""
    return [[(tuple(one.tokens), round(one.score, 9), tuple(one.times)) for one in each] for each in hypotheses]


def in_torch(memory):
    return replace(memory, states=torch.from_numpy(memory.states), lengths=torch.from_numpy(memory.lengths))


# -- outputs


@decoders
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wide_beam_finds_every_output_with_all_ways_to_write_it(decoder, seed):
    memory = online.memory(seed=seed)
    found = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2)(decoder, memory)
    for number, hypotheses in enumerate(found):
        expected = ranked(online.paths(decoder, online.source(memory, number), 2))
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]
        assert [one.score for one in hypotheses] == pytest.approx([total for total, _ in expected], abs=1e-12)
        for one in hypotheses:
            assert len(one.log_probs) == len(one.tokens) + 1
            assert sum(one.log_probs) == pytest.approx(one.score, abs=1e-12)
            assert len(one.times) == len(one.tokens)
            assert one.times == sorted(one.times)
            assert all(1 <= time <= memory.lengths[number] for time in one.times)


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_is_greedy(seed):
    memory = online.memory((6, 4), seed)
    found = PrefixBeam(beam_size=1, symbols_per_state=3)(Table(), memory)
    for number, (one,) in enumerate(found):
        ours, decoder = online.source(memory, number), Table()
        state, token, tokens, times, total, here = decoder.start(ours), BOS, [], [], 0.0, 0
        while token != EOS:
            scores, state = decoder.step(np.array([token]), state, ours)
            if here == 3:
                scores[:, list(WORDS)] = float("-inf")
            token = int(scores[0].argmax())
            total += float(scores[0, token])
            here = 0 if token == BLANK else here + 1
            if token in WORDS:
                tokens.append(token)
                times.append(int(state["frame"][0]) + 1)
        assert (one.tokens, one.times) == (tokens, times)
        assert one.score == pytest.approx(total, abs=1e-12)


def plain(decoder, one, size, per_state):
    """The same search of one source, in dictionaries: outputs with their probabilities, best way and state."""
    finished = {}
    rows = {(): (0.0, 0.0, BOS, decoder.start(one))}  # output: total, best way's total, token, state

    def add(where, output, total, best, token, state):
        old = where.get(output)
        if old is None or old[1] < best:
            mine = (best, token, state)
        else:
            mine = old[1:]
        where[output] = (np.logaddexp(total, old[0]) if old else total, *mine)

    def largest(where):
        return dict(sorted(where.items(), key=lambda item: -item[1][0])[:size])

    while rows:
        pool, here = {}, rows
        for written in range(per_state + 1):
            blanks, further = {}, {}
            for output, (total, _, token, state) in here.items():
                scores, after = decoder.step(np.array([token]), state, one)
                for following, score in enumerate(scores[0].tolist()):
                    worth = total + score
                    if worth == float("-inf"):
                        continue
                    if following == EOS:
                        add(finished, output, worth, worth, EOS, None)
                    elif following == BLANK:
                        blanks[output] = (worth, worth, BLANK, after)
                    elif written < per_state:
                        further[(*output, following)] = (worth, worth, following, after)
            both = sorted([each[0] for each in (*blanks.values(), *further.values())], reverse=True)[:size]
            least = both[-1] if both else 0.0
            for output, (worth, best, token, state) in blanks.items():
                if worth >= least:
                    add(pool, output, worth, best, token, state)
            pool = largest(pool)
            here = largest({output: each for output, each in further.items() if each[0] >= least})
            kept = [each[0] for each in pool.values()]
            if not here or (len(kept) == size and max(each[0] for each in here.values()) < min(kept)):
                break
        rows = pool
    return sorted(((each[0], output) for output, each in finished.items()), reverse=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_beam_is_the_plain_one(size, seed):
    memory = online.memory((7, 3, 5), seed)
    found = PrefixBeam(beam_size=size, n_best=size, symbols_per_state=3)(Table(), memory)
    for number, hypotheses in enumerate(found):
        expected = plain(Table(), online.source(memory, number), size, 3)
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]
        assert [one.score for one in hypotheses] == pytest.approx([total for total, _ in expected], abs=1e-12)


def test_ways_to_write_the_same_are_added():
    memory = online.memory((4,), 5)
    outputs = online.paths(Table(), memory, 2)
    (best,) = PrefixBeam(beam_size=WIDE, symbols_per_state=2)(Table(), memory)[0]
    (one_way,) = PrefixBeam(beam_size=1, symbols_per_state=2)(Table(), memory)[0]
    total = math.log(outputs[tuple(one_way.tokens)])
    assert one_way.score < total - 0.1  # it knows of one way alone
    assert best.score >= total - 1e-12


@decoders
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_sources_in_a_batch_are_as_if_alone(decoder, size):
    memory = online.memory((6, 1, 4, 9))
    search = PrefixBeam(beam_size=size, n_best=size, symbols_per_state=3)
    alone = [search(decoder, online.source(memory, number))[0] for number in range(4)]
    assert rounded(search(decoder, memory)) == rounded(alone)


@decoders
@pytest.mark.parametrize("size", [1, 3])
def test_tensors_and_arrays_find_the_same(decoder, size):
    memory, search = online.memory((6, 1, 4)), PrefixBeam(beam_size=size, n_best=size)
    ours, theirs = search(decoder, memory), search(decoder, in_torch(memory))
    assert rounded(ours) == rounded(theirs)
    assert all(ours)


@decoders
def test_the_best_comes_first_and_n_best_cuts(decoder):
    memory = online.memory((5, 6))
    many = PrefixBeam(beam_size=8, n_best=6)(decoder, memory)
    few = PrefixBeam(beam_size=8, n_best=2)(decoder, memory)
    for one, other in zip(many, few):
        assert [each.score for each in one] == sorted((each.score for each in one), reverse=True)
        assert len({tuple(each.tokens) for each in one}) == len(one) == 6
        assert other == one[:2]


def test_a_length_penalty_divides():
    memory = online.memory((4,))
    plain, mean = (PrefixBeam(beam_size=WIDE, n_best=WIDE, length_penalty=p)(Table(), memory)[0] for p in (0.0, 1.0))
    expected = {tuple(one.tokens): one.score / (len(one.tokens) + 1) for one in plain}
    assert {tuple(one.tokens): one.score for one in mean} == pytest.approx(expected)
    assert [one.score for one in mean] == sorted(expected.values(), reverse=True)


# -- streaming


def pieces(decoder, whole, cuts, search, forget):
    """The search of a memory that grows up to each of the cuts, and what it was sure of on the way."""
    length = int(whole.lengths[0])
    beam, forgotten, certain = None, 0, []
    for cut in [*sorted(cuts), None]:
        part = online.grown(whole, length if cut is None else cut, cut is None, forgotten)
        beam = search.start(decoder, part) if beam is None else beam
        beam = search.advance(decoder, part, beam)
        certain.append(search.so_far(beam))
        if forget:
            forgotten = min(decoder.first_needed(beam.state), length if cut is None else cut)
    return search.finish(decoder, part, beam), certain


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(DECODERS)),
    size=st.sampled_from([1, 2, 3]),
    cuts=st.lists(st.integers(0, 8), max_size=8),
    seed=st.integers(0, 50),
    forget=st.booleans(),
    after=st.sampled_from([1, 3, 500]),
    tensors=st.booleans(),
)
def test_a_source_in_pieces_is_the_source_at_once(name, size, cuts, seed, forget, after, tensors):
    decoder, memory = DECODERS[name], online.memory((8, 8), seed)
    memory = in_torch(memory) if tensors else memory
    search = PrefixBeam(beam_size=size, n_best=size, symbols_per_state=3, certain_after=after)
    streamed, certain = pieces(decoder, memory, cuts, search, forget)
    offline = search(decoder, memory)
    assert rounded(streamed) == rounded(offline)
    for one, other in zip(streamed, offline):
        assert [each.log_probs for each in one] == [each.log_probs for each in other]
    for before, after in itertools.pairwise(certain):
        for (final, rest, times), (later, _, later_times) in zip(before, after):
            assert later[: len(final)] == final  # what was certain stays
            assert size > 1 or later_times[: len(final)] == times
            assert len(times) == len(final) + len(rest)
            assert size > 1 or rest == []
    for (final, rest, times), hypotheses in zip(certain[-1], offline):
        assert (final, rest, times) == (hypotheses[0].tokens, [], hypotheses[0].times)


def commonly(outputs):
    """What all begin with."""
    return [each[0] for each in itertools.takewhile(lambda each: len(set(each)) == 1, zip(*outputs))]


@decoders
def test_what_is_certain_is_what_all_have_in_common(decoder):
    memory = online.memory((40,), 3)
    search = PrefixBeam(beam_size=4)
    beam = search.start(decoder, online.grown(memory, 30, False))
    beam = search.advance(decoder, online.grown(memory, 30, False), beam)
    ((final, rest, _),) = search.so_far(beam)
    group, common = beam.group, beam.common[0].tokens
    outputs = [
        (*common, *tokens[:count].tolist())
        for tokens, count, total in zip(group.rows["tokens"], group.rows["count"], group.totals[0])
        if total > float("-inf")
    ]
    assert len(set(outputs)) > 1
    assert (*final, *rest) in outputs
    assert tuple(final) == tuple(commonly(outputs))
    assert len(common) <= len(final)
    assert len(common) > 0


@decoders
def test_a_stream_takes_no_more_memory_the_longer_it_is(decoder):
    memory, search = online.memory((400,), 3, sharp=4), PrefixBeam(beam_size=3, symbols_per_state=2, certain_after=20)
    beam, widest = search.start(decoder, online.grown(memory, 10, False)), []
    for length in range(10, 401, 10):
        part = online.grown(memory, length, False, int(beam.state["frame"].min()))
        beam = search.advance(decoder, part, beam)
        widest.append(beam.group.rows["tokens"].shape[1])
    assert max(widest) <= 2 * 30  # tokens of what is not certain, and of the last chunk
    assert len(beam.common[0].tokens) > 100


@decoders
def test_what_was_written_long_ago_is_certain(decoder):
    memory = online.memory((30, 30), 3)
    patient, hasty = (PrefixBeam(beam_size=6, n_best=6, certain_after=after) for after in (500, 4))
    assert rounded(patient(decoder, memory)) != rounded(hasty(decoder, memory))
    for best, *others in hasty(decoder, memory):
        sure = [token for token, time in zip(best.tokens, best.times) if time <= 26]
        assert all(one.tokens[: len(sure)] == sure for one in others)
        assert others
    assert rounded(PrefixBeam(beam_size=6, n_best=6, certain_after=30)(decoder, memory)) == rounded(
        patient(decoder, memory)
    )


def test_what_is_certain_is_counted_from_the_states_that_live_rows_have_read():
    never = float("-inf")
    rows = {"tokens": np.array([[4], [5], [5]]), "times": np.array([[3], [3], [0]]), "sums": np.zeros((3, 1))}
    group = Group({**rows, "count": np.array([1, 1, 1])}, np.array([[-1.0, -2.0, never]]))
    read = np.array([8, 8, 0])  # the last row is not alive
    kept = {after: PrefixBeam(certain_after=after).enforce_certain(group, read).totals.tolist() for after in (5, 6)}
    assert kept == {5: [[-1.0, never, never]], 6: [[-1.0, -2.0, never]]}


def test_no_row_goes_on_before_all_have_come_so_far():
    """Without a barrier, a row with an early blank would need a state that the others have not reached."""
    memory = online.memory((6,))
    search = PrefixBeam(beam_size=3)
    beam = search.start(Table(), online.grown(memory, 2, False))
    for length in (2, 4, 5):
        beam = search.advance(Table(), online.grown(memory, length, False), beam)
        live = beam.group.totals.flatten() > float("-inf")
        assert set((beam.state["frame"] + 1)[live].tolist()) == {length}


# -- options and constraints


@decoders
def test_constraints_are_about_outputs_and_ignore_blanks(decoder):
    memory = online.memory((3, 3))
    search = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2)
    four, five = WORDS
    plain = search(decoder, memory)
    banned = search(decoder, memory, None, [Banned([[BLANK], [BOS], [1], [five, four]])])
    required = search(decoder, memory, None, [Required([[[four, five]]], EOS)])
    bag = search(decoder, memory, None, [Bag(Padded(np.array([[4, 5], [5, 5]]), np.array([2, 2])), EOS)])

    def has(tokens, one, other):
        return (one, other) in itertools.pairwise(tokens)

    for number, hypotheses in enumerate(plain):
        for found, allowed in (
            (banned, lambda tokens: not has(tokens, five, four)),
            (required, lambda tokens: has(tokens, four, five)),
            (bag, lambda tokens, number=number: sorted(tokens) == [[4, 5], [5, 5]][number]),
        ):
            expected = [one for one in hypotheses if allowed(one.tokens)]
            assert rounded([found[number]]) == rounded([expected])
            assert 0 < len(expected) < len(hypotheses)


@decoders
def test_an_output_begins_with_its_prefix(decoder):
    memory = online.memory((3, 3, 2))
    search = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2)
    prefix = Padded(np.array([[4, 5], [5, 0], [0, 0]]), np.array([2, 1, 0]))
    found = search(decoder, memory, prefix)
    for plain, ours, begun in zip(search(decoder, memory), found, ([4, 5], [5], [])):
        assert rounded([ours]) == rounded([[one for one in plain if one.tokens[: len(begun)] == begun]])
        assert ours


@decoders
def test_a_prefix_longer_than_an_output_may_be_is_the_whole_output(decoder):
    memory, prefix = online.memory((3, 3)), Padded(np.array([[4, 5], [5, 4]]), np.array([2, 2]))
    search = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2, maximum_length=1)
    assert [[one.tokens for one in each] for each in search(decoder, memory, prefix)] == [[[4, 5]], [[5, 4]]]


@decoders
def test_lengths_are_limited(decoder):
    memory = online.memory((3, 3))
    every = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2)(decoder, memory)
    some = PrefixBeam(beam_size=WIDE, n_best=WIDE, symbols_per_state=2, minimum_length=2, maximum_length=4)(
        decoder, memory
    )
    for one, other in zip(every, some):
        assert rounded([other]) == rounded([[each for each in one if 2 <= len(each.tokens) <= 3]])  # EOS is counted
        assert other


def test_no_more_tokens_at_one_state_than_allowed():
    memory = online.memory((5,), 4)
    for most in (1, 2):
        for one in PrefixBeam(beam_size=20, n_best=20, symbols_per_state=most)(Table(), memory)[0]:
            assert max((one.times.count(time) for time in one.times), default=0) <= most


@decoders
def test_scores_that_are_not_finite_are_refused(decoder):
    memory = online.memory((3, 3))
    memory.states[1, 1] = float("nan")
    with pytest.raises(SeqloomError, match="not finite"):
        PrefixBeam(beam_size=2)(decoder, memory)


def test_it_refuses_what_it_cannot_do():
    memory = online.memory((3,))
    for wrong, name in (
        ({"beam_size": 0}, "beam_size"),
        ({"n_best": 9}, "n_best"),
        ({"symbols_per_state": 0}, "symbols_per_state"),
        ({"certain_after": 0}, "certain_after"),
        ({"minimum_length": 5, "maximum_length": 5}, "maximum_length"),
    ):
        with pytest.raises(ValueError, match=name):
            PrefixBeam(**wrong)
    without_blank = Table()
    without_blank.blanks = ()
    with pytest.raises(SeqloomError, match='expected "beam"'):
        PrefixBeam()(without_blank, memory)
    with pytest.raises(SeqloomError, match="no_repeat"):
        PrefixBeam()(Table(), memory, None, [NoRepeat(2)])


def test_a_source_without_an_end_that_is_allowed_has_no_output():
    search = PrefixBeam(beam_size=1, minimum_length=50)
    assert search(Table(), online.memory((2, 3))) == [[], []]


def test_the_state_given_to_a_step_is_never_changed():
    class Careful(Table):
        def step(self, token, state, memory):
            before = {name: value.copy() for name, value in state.items()}
            scores, after = super().step(token, state, memory)
            assert all((state[name] == before[name]).all() for name in state)
            scores.flags.writeable = False
            return scores, after

    memory = online.memory((4, 2))
    assert rounded(PrefixBeam(beam_size=3)(Careful(), memory)) == rounded(PrefixBeam(beam_size=3)(Table(), memory))


def test_an_empty_source_is_an_empty_output():
    memory = Memory(np.zeros((1, 1, VOCABULARY)), np.array([0]))
    assert rounded(PrefixBeam()(Table(), memory)) == [[((), 0.0, ())]]
