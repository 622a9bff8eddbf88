"""What holds for every decoder that writes while it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Online
from seqloom.data.special_tokens import BOS, EOS, PAD
from seqloom.testing.claims import NotAsked, require, require_gradients, require_same
from seqloom.testing.small import VOCABULARY, memory_for, tensors
from seqloom.types import Memory, Padded, State, over_tensors, select

WRITTEN = (5, PAD, 6, 5, PAD, PAD, 7, PAD, PAD, 4)  # what is written, and blanks, here PAD, where it goes on
NEVER = float("-inf")


def it_says_what_is_blank_and_what_ends_an_output(decoder: Online) -> None:
    memory = memory_for(decoder)
    require(decoder.blanks == (PAD,), f"blanks are {decoder.blanks}, not those it was given, {(PAD,)}")
    require(decoder.eos == EOS, f"eos is {decoder.eos}, not the one it was given, {EOS}")
    require(decoder.limit(memory).shape == (3,), "limit() must have one number per source")
    require((decoder.limit(memory) > 0).all(), "limit() allows an output no token")


def scores_are_log_probabilities_of_at_most_one_and_beginnings_never_come(decoder: Online) -> None:
    scores, _ = _followed(decoder, memory_for(decoder), _tokens(3))
    wanted = (3, 8, VOCABULARY)
    require(scores.shape == wanted, f"scores have shape {tuple(scores.shape)}, not (rows, steps, V) {wanted}")
    require(not scores.isnan().any(), "some scores are NaN")
    require((scores.exp().sum(-1) <= 1 + 1e-9).all(), "the probabilities of a step sum to more than 1: normalise them")
    require((scores.amax(-1) > NEVER).all(), "all tokens of a step are forbidden though the memory is closed")
    require((scores[:, :, BOS] == NEVER).all(), "BOS may follow: its score must be -inf")


def past_the_last_state_there_is_only_the_end(decoder: Online) -> None:
    memory = memory_for(decoder)
    scores, state = _followed(decoder, memory, torch.tensor([[BOS] + [PAD] * 5] * 3))
    require(
        (state["frame"] >= memory.lengths).all(), 'state["frame"] does not pass the last state after as many blanks'
    )
    expected = torch.full((VOCABULARY,), NEVER, dtype=torch.float64)
    expected[EOS] = 0
    require(
        torch.equal(scores[:, -1], expected.expand(3, -1)),
        "past the last state EOS must have log-probability 0, all else -inf",
    )
    require((scores[0, 0] > NEVER).sum() > 1, "only EOS may follow BOS, at the first state")


def the_frame_advances_by_what_moves_it_and_never_back(decoder: Online) -> None:
    memory, symbols = memory_for(decoder, (12,)), _tokens(3, shift=3)
    _, state = _followed(decoder, memory, symbols[:, :1])
    require(state["frame"].tolist() == [0, 0, 0], 'state["frame"] is not 0 after BOS')
    for token in symbols[:, 1:].unbind(1):
        before, (_, state) = state["frame"], decoder.step(token, state, memory)
        moves = (token == PAD) | (decoder.advances == "all")
        wrong = f'state["frame"] must advance at {"every token" if decoder.advances == "all" else "blanks alone"}'
        require(torch.equal(state["frame"] > before, moves & (before < 12)), wrong)
        require((state["frame"] >= before).all(), 'state["frame"] goes back')


def going_on_from_a_state_is_as_if_never_interrupted(decoder: Online) -> None:
    memory, symbols = memory_for(decoder), _tokens(3)
    whole, _ = _followed(decoder, memory, symbols)
    first, state = _followed(decoder, memory, symbols[:, :3])
    second, _ = _followed(decoder, memory, symbols[:, 3:], state)
    require_same(torch.cat([first, second], 1), whole, "steps after a pause, from the same state, are others")
    forced = decoder(memory, Padded(symbols, torch.tensor([8, 3, 8])))
    require_same(forced.scores[[0, 2]], whole[[0, 2]], "forward() scores tokens otherwise than step() after step()")
    require_same(forced.scores[1, :3], whole[1, :3], "forward() scores a shorter row otherwise than its steps")
    after = decoder.step(symbols[:, 3], forced.state, memory)[0]
    require_same(after[1], whole[1, 3], "the state that forward() returns is not that at a shorter row's own end")


def a_step_changes_nothing_it_was_given(decoder: Online) -> None:
    memory = memory_for(decoder)
    _, state = _followed(decoder, memory, _tokens(3)[:, :4])
    before = [value.clone() for value in tensors(state)]
    one, other = torch.tensor([PAD, 5, 6]), torch.tensor([5, PAD, 7])
    scores, after = decoder.step(one, state, memory)
    kept = scores.clone()
    further, _ = decoder.step(one, after, memory)
    decoder.step(other, decoder.step(other, state, memory)[1], memory)
    same = all(torch.equal(*pair) for pair in zip(before, tensors(state)))
    require(same, "step() changes the state that it was given: make a new one")
    require(torch.equal(scores, kept), "a later step changes scores that were returned")
    again = (
        "step() gives other scores when it is called again with the same state: it keeps something on self, or in place"
    )
    require(torch.equal(decoder.step(one, state, memory)[0], scores), again)
    require(torch.equal(decoder.step(one, after, memory)[0], further), again)


def permuting_rows_commutes_with_a_step(decoder: Online) -> None:
    memory = memory_for(decoder, (4,))
    symbols, order = _tokens(3, shift=3), torch.tensor([2, 0, 1])
    scores, state = _followed(decoder, memory, symbols[:, :5])
    permuted, permuted_state = _followed(decoder, memory, symbols[order, :5])
    wrong = "steps of permuted rows are not the permuted steps: every entry of the state must have rows first"
    require_same(permuted, scores[order], wrong)
    for one, other in zip(tensors(permuted_state), tensors(select(state, order))):
        require_same(one, other, wrong)
    token = torch.tensor([PAD, 5, 6])
    found, expected = decoder.step(token[order], select(state, order), memory), decoder.step(token, state, memory)
    require_same(found[0], expected[0][order], wrong)


def several_rows_per_source_are_as_if_the_memory_were_repeated(decoder: Online) -> None:
    memory, symbols = memory_for(decoder), _tokens(6)
    found, expected = (_followed(decoder, each, symbols)[0] for each in (memory, memory.select(memory.owner(6))))
    wrong = "2 rows per source are not scored as with the memory repeated: row r reads entry memory.owner(rows)[r]"
    require_same(found, expected, wrong)


def padding_of_the_memory_changes_nothing(decoder: Online) -> None:
    memory, symbols = memory_for(decoder), _tokens(3)
    scores, _ = _followed(decoder, memory, symbols)
    for row, length in enumerate(memory.lengths.tolist()):
        alone = memory.select(torch.tensor([row]))
        alone = decoder.prepare(replace(alone, states=alone.states[:, :length], extra={}))
        found = _followed(decoder, alone, symbols[row : row + 1])[0][0]
        require_same(
            found,
            scores[row],
            f"row {row} has other scores in a batch than alone: rows see each other, or padding leaks",
        )


def the_past_decides_the_present(decoder: Online) -> None:
    """All but CTC, whose past is the last token, know what was written two tokens ago."""
    memory = memory_for(decoder, (12,))
    one, other = (torch.tensor([[BOS, first, PAD, 6, PAD, PAD]]) for first in (4, 5))
    differs = (
        (_followed(decoder, memory, one)[0] - _followed(decoder, memory, other)[0]).nan_to_num(0).abs()[0].amax(-1)
    )
    require(differs[0] < 1e-12, "a token changes the scores before it: it looks ahead")
    require(differs[1] > 1e-6, "another token leaves the scores that follow it as they were")


# -- sources that come in pieces


def a_source_in_pieces_is_the_source_whatever_they_are(decoder: Online) -> None:
    _streams_as_offline(decoder, forgetful=False)


def a_source_in_pieces_whose_past_is_forgotten_is_the_source(decoder: Online) -> None:
    _streams_as_offline(decoder, forgetful=True)


def a_row_without_input_waits_and_another_goes_on(decoder: Online) -> None:
    open_memory = _pieces(decoder, _states(decoder, 1, 12), (11,))[0]
    require(not open_memory.closed, "prepare() closes an open memory")
    symbols = torch.tensor([[BOS] + [PAD] * 12, [BOS, 5] + [PAD] * 11])
    scores, state = _followed(decoder, open_memory, symbols)
    require((scores[:, -1] == NEVER).all(), "a row that has read all of an open memory must wait: all scores -inf")
    require((scores[:, 0] > NEVER).any(-1).all(), "a row waits at the first state, which is there")
    first = _followed(decoder, open_memory, symbols[:, :1])[1]
    mixed = over_tensors(lambda new, old: torch.stack([new[0], old[1]]), state, first)
    after = decoder.step(torch.tensor([PAD, 5]), mixed, open_memory)[0]
    require((after[0] == NEVER).all(), "a row that has read all of an open memory goes on because another one can")
    require((after[1] > NEVER).any(), "a row waits because another one must")


def the_limit_counts_what_was_forgotten(decoder: Online) -> None:
    memory = decoder.prepare(Memory(_states(decoder, 1, 6), torch.tensor([6])))
    same = torch.equal(decoder.limit(memory.forget(4)), decoder.limit(memory))
    require(same, "limit() must count states that were forgotten: memory.offset + memory.lengths")


# -- probabilities of outputs


def every_parameter_gets_a_gradient_where_outputs_have_an_exact_probability(decoder: Online) -> None:
    if type(decoder).log_prob is Decoder.log_prob or decoder.trained_by != "marginal":
        raise NotAsked("trained by paths, not by outputs")
    memory = memory_for(decoder, (5, 3, 4))
    inputs = Padded(torch.tensor([[BOS, 5, 6], [BOS, 4, 0], [BOS, 7, 5]]), torch.tensor([3, 2, 3]))
    targets = Padded(torch.tensor([[5, 6, EOS], [4, EOS, 0], [7, 5, EOS]]), inputs.lengths)
    log_prob = decoder.log_prob(memory, inputs, targets)
    require(log_prob.shape == (3,), f"log_prob has shape {tuple(log_prob.shape)}, not (rows,) (3,)")
    require((log_prob < 0).all(), "log_prob gives an output a probability of 1 or more")
    log_prob.sum().backward()
    require_gradients(decoder)


def several_outputs_per_source_are_as_if_the_memory_were_repeated(decoder: Online) -> None:
    if decoder.trained_by == "read_write":
        raise NotAsked("writes an output in too many ways to add up")
    memory = memory_for(decoder, (5, 3))
    inputs = Padded(torch.tensor([[BOS, 5, 6], [BOS, 4, 0], [BOS, 7, 5], [BOS, 0, 0]]), torch.tensor([3, 2, 3, 1]))
    targets = Padded(torch.tensor([[5, 6, EOS], [4, EOS, 0], [7, 5, EOS], [EOS, 0, 0]]), inputs.lengths)
    found = decoder.log_prob(memory, inputs, targets)
    expected = decoder.log_prob(memory.select(memory.owner(4)), inputs, targets)
    require_same(found, expected, "log_prob of 2 outputs per source is not that with the memory repeated")


def _tokens(rows: int, shift: int = 1) -> Tensor:
    """Each row another part of what is written above, after BOS.  (rows, 8)"""
    chosen = [[BOS, *(WRITTEN[(row * shift + place) % len(WRITTEN)] for place in range(7))] for row in range(rows)]
    return torch.tensor(chosen)


def _states(decoder: Online, rows: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    size: int = decoder.checked_memory_size  # type: ignore[assignment]
    return torch.randn(rows, length, size, generator=generator, dtype=torch.float64)


def _followed(decoder: Online, memory: Memory, symbols: Tensor, state: State | None = None) -> tuple[Tensor, State]:
    """Scores of all steps, and the state after them.  (rows, n) -> (rows, n, V)"""
    state = decoder.start_rows(memory, len(symbols)) if state is None else state
    found = []
    for token in symbols.unbind(1):
        scores, state = decoder.step(token, state, memory)
        found.append(scores)
    return torch.stack(found, 1), state


def _pieces(decoder: Online, states: Tensor, cuts: Sequence[int]) -> list[Memory]:
    """The memory after each piece, the last one closed; none of the pieces is prepared with another."""
    ends = [*cuts, states.shape[1]]
    memory, start, found = None, 0, []
    for end in ends:
        lengths = torch.full((states.shape[0],), end - start)
        chunk = decoder.prepare(Memory(states[:, start:end], lengths, closed=end == ends[-1]))
        memory = chunk if memory is None else memory.append(chunk)
        found.append(memory)
        start = end
    return found


def _streams_as_offline(decoder: Online, forgetful: bool) -> None:
    states = _states(decoder, 2, 4)
    symbols = torch.tensor([[BOS, 5, PAD, 6, PAD, PAD, 4, PAD], [BOS, PAD, 5, PAD, 5, PAD, 6, 7]] * 2)[[0, 2, 1, 3]]
    offline, _ = _followed(decoder, decoder.prepare(Memory(states, torch.tensor([4, 4]))), symbols)
    all_waits = 0
    for count in range(5):
        for cuts in combinations(range(4), count):  # 0 is a piece without anything
            scores, waits = _streamed(decoder, states, symbols, cuts, forgetful)
            cut = f"cut after {', '.join(map(str, cuts))} states" if cuts else "in one piece"
            require_same(scores, offline, f"a source {cut} has other scores than the whole")
            all_waits += waits
    require(all_waits > 10, "it hardly ever waits for more of an open memory: all -inf says that a row waits")


def _streamed(
    decoder: Online, states: Tensor, symbols: Tensor, cuts: Sequence[int], forgetful: bool
) -> tuple[Tensor, int]:
    """The scores of all steps; rows that wait are tried again with more memory; no row goes on before all can."""
    waited, forgotten = 0, 0
    left = _pieces(decoder, states, cuts)
    memory = left.pop(0)
    state = decoder.start_rows(memory, len(symbols))
    found = []
    for token in symbols.unbind(1):
        scores, after = decoder.step(token, state, memory)
        while (scores == NEVER).all(-1).any():
            require(not memory.closed, "a row waits though the memory is closed")
            waited += 1
            memory = left.pop(0)
            if forgetful:
                forgotten = max(forgotten, decoder.first_needed(state))
                memory = memory.forget(min(forgotten, memory.states.shape[1]))
            scores, after = decoder.step(token, state, memory)
        state = after
        found.append(scores)
    return torch.stack(found, 1), waited
