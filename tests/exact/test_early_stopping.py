"""Early stopping: a beam ends when no hypothesis in it can win any more, and not before."""

import math

import pytest
import torch

from seqloom.contracts import Stepper
from seqloom.search.beam import BeamSearch
from seqloom.types import Memory

BOS, EOS, WORD, OTHER = 0, 1, 2, 3
REST = 1e-6  # the probability of what hardly ever comes


class Scripted(Stepper):
    """The next token depends on the step alone; the last line holds for all further steps."""

    bos, eos = BOS, EOS

    def __init__(self, *lines, limit=8):
        self.table = torch.tensor(lines, dtype=torch.float64).log()
        self.steps, self.longest = 0, limit

    def start(self, memory):
        return {"step": torch.zeros(memory.rows, dtype=torch.long)}

    def step(self, token, state, memory):
        self.steps += 1
        return self.table[state["step"].clamp(max=len(self.table) - 1)], {"step": state["step"] + 1}

    def limit(self, memory):
        return torch.full((memory.rows,), self.longest)


def line(eos, word):
    return [REST, eos, word, 1 - REST - eos - word]


def found(decoder, **settings):
    ((best,),) = BeamSearch(**settings)(decoder, Memory.empty(1))
    return best.tokens, best.score


def test_a_hypothesis_that_may_win_at_the_limit_is_not_given_up():
    """The end comes at once with 0.6, or after six words: one more word would lose, all of them win by the mean."""
    ends = line(1 - 2 * REST, REST / 2)
    decoder = Scripted(line(0.6, 0.3), *[line(REST / 2, 1 - 2 * REST)] * 5, ends)
    tokens, score = found(decoder, beam_size=2)
    assert tokens == [WORD] * 6
    assert score == pytest.approx(math.log(0.3) / 7, abs=1e-4)
    assert math.log(0.3) / 2 < math.log(0.6) < math.log(0.3) / 7  # so that the nearest bound alone would stop it
    assert found(decoder, beam_size=2, early_stopping=False)[0] == tokens


def test_a_hypothesis_that_can_only_win_soon_is_not_given_up():
    """With a penalty for length a hypothesis can become no better than at its next step: the limit would lose."""
    decoder = Scripted(line(0.3, 0.6), line(1 - 2 * REST, REST / 2))
    tokens, score = found(decoder, beam_size=2, length_penalty=-0.5)
    assert tokens == [WORD]
    assert score == pytest.approx(math.log(0.6) * 2**0.5, abs=1e-4)
    assert math.log(0.6) * 8**0.5 < math.log(0.3) < math.log(0.6) * 2**0.5  # so that the limit alone would stop it


@pytest.mark.parametrize("penalty", [-0.5, 0.0, 1.0])
def test_it_stops_as_soon_as_nothing_can_win(penalty):
    decoder = Scripted(line(0.99, 0.005), line(REST, 0.5))
    assert found(decoder, beam_size=3, length_penalty=penalty)[0] == []
    assert decoder.steps == 1
    patient = Scripted(line(0.99, 0.005), line(REST, 0.5))
    found(patient, beam_size=3, length_penalty=penalty, early_stopping=False)
    assert patient.steps == 8


def test_the_list_of_the_best_must_be_full_before_it_stops():
    """One output is certain to be the best, and a second one is asked for."""
    decoder = Scripted(line(0.99, 0.005), line(REST, 1 - 3 * REST), line(1 - 3 * REST, REST))
    ((first, second),) = BeamSearch(beam_size=2, n_best=2)(decoder, Memory.empty(1))
    assert (first.tokens, second.tokens) == ([], [WORD, WORD])
