"""What holds for every search, with a small recurrent decoder or, if it cannot search that, with a transducer."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from seqloom.contracts import Decoder, Search
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transducer import Transducer
from seqloom.search.constraints.banned import Banned
from seqloom.testing.claims import ContractError, NotAsked, require, require_same
from seqloom.testing.small import build, memory_for
from seqloom.types import Hypothesis, Memory, Padded

Found = list[list[Hypothesis]]


def every_source_gets_its_hypotheses_best_first(search: Search) -> None:
    found = _find(search)
    require(len(found) == 3, f"finish() returns {len(found)} lists for 3 sources")
    for number, hypotheses in enumerate(found):
        require(hypotheses, f"source {number} has no hypothesis, and nothing forbids one")
        scores = [each.score for each in hypotheses]
        require(
            scores == sorted(scores, reverse=True), f"the hypotheses of source {number} are not best first: {scores}"
        )
        most = getattr(search, "n_best", len(hypotheses))
        require(len(hypotheses) <= most, f"source {number} has {len(hypotheses)} hypotheses, n_best is {most}")


def outputs_have_neither_eos_nor_blanks_and_keep_to_the_limit(search: Search) -> None:
    decoder = _decoder(search)
    limits = decoder.limit(memory_for(decoder)).tolist()
    for limit, hypotheses in zip(limits, _find(search)):
        for each in hypotheses:
            ends = {decoder.eos, *decoder.blanks} & {*each.tokens}
            require(not ends, f"tokens {each.tokens} contain EOS or a blank: leave these out")
            wrong = f"an output has {len(each.tokens)} tokens and EOS, more than the limit of {limit}"
            require(decoder.online or len(each.tokens) < limit, wrong)


def log_probabilities_are_those_of_the_decoder(search: Search) -> None:
    decoder = _decoder(search)
    if decoder.online:
        raise NotAsked("this decoder writes an output in several ways")
    memory = memory_for(decoder)
    for row, hypotheses in enumerate(_find(search)):
        for each in hypotheses:
            inputs = torch.tensor([[decoder.bos, *each.tokens]])
            scores = decoder(memory.select(torch.tensor([row])), Padded(inputs, torch.tensor([inputs.shape[1]]))).scores
            targets = torch.tensor([*each.tokens, decoder.eos])[: len(each.log_probs)]
            expected = scores[0, : len(targets)].log_softmax(-1).gather(1, targets[:, None])[:, 0]
            wrong = f"log_probs of {each.tokens} are not what the decoder gives these tokens and EOS, one each"
            require_same(torch.tensor(each.log_probs, dtype=torch.float64), expected, wrong)


def a_batch_is_its_sources_one_by_one(search: Search) -> None:
    _expect_no_chance(search)
    found, decoder = _find(search), _decoder(search)
    memory = memory_for(decoder)
    for row in range(3):
        (alone,) = _find(search, memory.select(torch.tensor([row])))
        theirs = [each.tokens for each in found[row]]
        wrong = f"source {row} has outputs {theirs} in a batch and {[each.tokens for each in alone]} alone"
        require([each.tokens for each in alone] == theirs, wrong)


def a_banned_token_never_comes(search: Search) -> None:
    written = [token for hypotheses in _find(search) for each in hypotheses for token in each.tokens]
    banned = max(set(written), key=written.count) if written else 5
    found = _find(search, constraints=[Banned([[banned]])])
    wrong = f"token {banned} is written though a constraint forbids it: call forbid() before choosing, step() after"
    require(all(banned not in each.tokens for hypotheses in found for each in hypotheses), wrong)


def a_prefix_begins_every_output(search: Search) -> None:
    prefixes = Padded(torch.tensor([[5, 6], [7, 0], [0, 0]]), torch.tensor([2, 1, 0]))
    for prefix, hypotheses in zip(([5, 6], [7], []), _find(search, prefix=prefixes)):
        begins = all(each.tokens[: len(prefix)] == prefix for each in hypotheses)
        require(begins, f"an output begins with {hypotheses[0].tokens[:3]}, its prefix is {prefix}")


def the_memory_stays_as_it_is(search: Search) -> None:
    decoder = _decoder(search)
    memory = memory_for(decoder)
    before = memory.states.clone()
    _find(search, memory)
    require(torch.equal(memory.states, before), "the search changes the memory that it was given")


@cache
def _decoders() -> tuple[Decoder, Decoder]:
    return build(Recurrent, attention=Additive), build(Transducer)


def _decoder(search: Search) -> Decoder:
    refusals = []
    for decoder in _decoders():
        try:
            search.suit(decoder)
        except ValueError as error:
            refusals.append(str(error))
        else:
            return decoder
    raise ContractError(f"suit() refuses a recurrent decoder ({refusals[0]}) and a transducer ({refusals[1]})")


def _find(search: Search, memory: Memory | None = None, seed: int = 1, **given: Any) -> Found:
    decoder = _decoder(search)
    torch.manual_seed(seed)
    with torch.no_grad():
        return search(decoder, memory_for(decoder) if memory is None else memory, **given)


def _expect_no_chance(search: Search) -> None:
    outputs = [[each.tokens for hypotheses in _find(search, seed=seed) for each in hypotheses] for seed in range(3)]
    if not outputs[0] == outputs[1] == outputs[2]:
        raise NotAsked("it draws at random")
