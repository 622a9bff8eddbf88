"""Search against brute force on tiny random models."""

import itertools
import math

import pytest
import torch

from seqloom.errors import SeqloomError
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.required import Required
from seqloom.search.sample import Sampling
from seqloom.types import Memory, Padded
from tests.building import build, cases, memory_for

BOS, EOS, WORDS = 0, 1, (2, 3)  # a vocabulary of four: BOS is an ordinary token to the model
LIMIT = 4


@pytest.fixture(params=cases("decoders", chooses=("",), endless=False))
def decoder(request):
    made = request.param(vocabulary=4, bos=BOS, eos=EOS)
    made.limit = lambda memory: torch.full((memory.rows,), LIMIT)
    for parameter in made.parameters():
        parameter.data *= 2  # sharper distributions: ties and near-ties would hide mistakes
    return made


@pytest.fixture
def memory(decoder):
    return memory_for(decoder, (4, 2, 3))


def log_prob(decoder, memory, tokens):
    """Of one complete output, EOS included, by teacher forcing."""
    inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
    log_probs = torch.log_softmax(decoder(memory, inputs).scores[0], dim=-1)
    return sum(float(log_probs[place, token]) for place, token in enumerate([*tokens, EOS]))


def log_probs(decoder, memory, every):
    """Of many complete outputs of one source, in one pass."""
    inputs = Padded.stack([torch.tensor([BOS, *tokens]) for tokens in every])
    targets = Padded.stack([torch.tensor([*tokens, EOS]) for tokens in every])
    found = torch.log_softmax(decoder(memory, inputs).scores, dim=-1).gather(2, targets.values[:, :, None])[:, :, 0]
    return found.masked_fill(~targets.mask, 0).sum(1).tolist()


def outputs(allowed=(0, 2, 3)):
    """All outputs of at most LIMIT tokens, EOS included."""
    return [tokens for length in range(LIMIT) for tokens in itertools.product(allowed, repeat=length)]


def exhaustive(decoder, memory, score, allowed=lambda tokens: True):
    """All outputs of each source with their scores, best first."""
    result = []
    for row in range(memory.rows):
        ours = memory.select(torch.tensor([row]))
        every = [tokens for tokens in outputs() if allowed(tokens)]
        totals = log_probs(decoder, ours, every)
        scored = [(score(total, len(tokens) + 1), tokens) for total, tokens in zip(totals, every)]
        result.append(sorted(scored, reverse=True))
    return result


NORMALISERS = {
    "none": ({"length_penalty": 0.0}, lambda total, length: total),
    "1/L": ({"length_penalty": 1.0}, lambda total, length: total / length),
    "gnmt": ({"length_penalty": 0.6, "normalisation": "gnmt"}, lambda total, length: total / ((5 + length) / 6) ** 0.6),
}


@pytest.mark.parametrize("name", NORMALISERS)
@torch.no_grad()
def test_a_wide_beam_finds_what_exhaustive_search_finds(decoder, memory, name):
    settings, score = NORMALISERS[name]
    found = BeamSearch(beam_size=40, n_best=40, **settings)(decoder, memory)
    for hypotheses, expected in zip(found, exhaustive(decoder, memory, score)):
        assert len(hypotheses) == len(expected) == 40
        for hypothesis, (value, tokens) in zip(hypotheses, expected):
            assert hypothesis.score == pytest.approx(value, abs=1e-9)
            assert tuple(hypothesis.tokens) == tokens


@pytest.mark.parametrize("choosing", cases("decoders", chooses=("places", "copies")))
@torch.no_grad()
def test_a_wide_beam_finds_all_that_can_be_chosen_from_each_source(choosing):
    """Sources of one batch have different tokens: words of the vocabulary, if there are any, and their own places."""
    words = {"unk": 2, "written": (0, 1, 2, 3, 2, 2, 3, 2, 2)} if choosing.args[0].chooses == "copies" else {}
    decoder = choosing(vocabulary=4, bos=BOS, eos=EOS, **words)
    decoder.limit = lambda memory: torch.full((memory.rows,), 3)
    memory = memory_for(decoder, (4, 2, 3))
    scores, _ = decoder.step(torch.full((3,), BOS), decoder.start(memory), memory)
    found = BeamSearch(beam_size=90, n_best=90, length_penalty=0.0)(decoder, memory)
    for row, hypotheses in enumerate(found):
        words = [token for token in scores[row].isfinite().nonzero()[:, 0].tolist() if token != EOS]
        every = [tokens for length in range(3) for tokens in itertools.product(words, repeat=length)]
        ours = memory.select(torch.tensor([row]))
        expected = sorted(((log_prob(decoder, ours, tokens), tokens) for tokens in every), reverse=True)
        assert len(hypotheses) == len(expected) > 3
        for hypothesis, (value, tokens) in zip(hypotheses, expected):
            assert hypothesis.score == pytest.approx(value, abs=1e-9)
            assert tuple(hypothesis.tokens) == tokens


def by_last_score(decoder, memory, size):
    """Of one source: a beam search of tuples, whose score is the logit of their last token."""
    beam, finished = [()], []
    for length in range(1, LIMIT + 1):
        grown = []
        for tokens in beam:
            inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([length]))
            scores = decoder(memory, inputs).scores[0, -1].tolist()
            allowed = [EOS] if length == LIMIT else range(4)
            grown += [(scores[token], (*tokens, token)) for token in allowed]
        kept = sorted(grown, reverse=True)[: size - len(finished)]
        finished += [(score, tokens[:-1]) for score, tokens in kept if tokens[-1] == EOS]
        beam = [tokens for _, tokens in kept if tokens[-1] != EOS]
    return sorted(finished, reverse=True)


@pytest.mark.parametrize("size", [1, 3, 5])
@torch.no_grad()
def test_a_beam_ranked_by_last_scores_is_the_plain_one(decoder, memory, size):
    found = BeamSearch(beam_size=size, n_best=size, rank_by="last")(decoder, memory)
    for row, hypotheses in enumerate(found):
        ours = memory.select(torch.tensor([row]))
        expected = by_last_score(decoder, ours, size)
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-9)
        for one in hypotheses:
            assert sum(one.log_probs) == pytest.approx(log_prob(decoder, ours, one.tokens), abs=1e-9)


def test_last_scores_take_no_penalty():
    with pytest.raises(ValueError, match="coverage_penalty"):
        BeamSearch(rank_by="last", coverage_penalty=0.2)


@torch.no_grad()
def test_a_beam_of_one_is_greedy(decoder, memory):
    found = BeamSearch(beam_size=1)(decoder, memory)
    for row, (hypothesis,) in enumerate(found):
        ours = memory.select(torch.tensor([row]))
        state, token, tokens = decoder.start(ours), torch.tensor([BOS]), []
        while len(tokens) < LIMIT - 1:
            logits, state = decoder.step(token, state, ours)
            token = logits.argmax(-1)
            if int(token) == EOS:
                break
            tokens.append(int(token))
        assert hypothesis.tokens == tokens


@torch.no_grad()
def test_finished_outputs_take_a_place_in_the_beam(decoder, memory):
    for size in (1, 2, 3, 5):
        search = BeamSearch(beam_size=size, early_stopping=False)
        beam = search.advance(decoder, memory, search.start(decoder, memory))
        finished = dict.fromkeys(range(memory.rows), 0)
        for step in beam.steps:
            for row, entry in enumerate(step.entries.tolist()):
                assert int((step.totals[row] > float("-inf")).sum()) <= size - finished[entry]
                finished[entry] += int(step.finished[row].sum())
        assert max(finished.values()) <= size


@torch.no_grad()
def test_the_score_is_that_of_teacher_forced_rescoring(decoder, memory):
    for row, hypotheses in enumerate(BeamSearch(beam_size=3, n_best=3, length_penalty=0.0)(decoder, memory)):
        ours = memory.select(torch.tensor([row]))
        for hypothesis in hypotheses:
            expected = log_prob(decoder, ours, hypothesis.tokens)
            assert hypothesis.score == pytest.approx(expected, abs=1e-9)
            assert sum(hypothesis.log_probs) == pytest.approx(expected, abs=1e-9)


@torch.no_grad()
def test_a_batch_is_its_sentences_one_by_one(decoder, memory):
    search = BeamSearch(beam_size=3, n_best=2)
    together = search(decoder, memory)
    for row in range(memory.rows):
        (alone,) = search(decoder, memory.select(torch.tensor([row])))
        assert [one.tokens for one in alone] == [one.tokens for one in together[row]]
        assert [one.score for one in alone] == pytest.approx([one.score for one in together[row]])


@pytest.mark.parametrize("penalty", [-0.5, 0.0, 1.0])
@torch.no_grad()
def test_early_stopping_changes_nothing(decoder, memory, penalty):
    for size, n_best in ((1, 1), (2, 1), (3, 2), (5, 5)):
        early, late = (
            BeamSearch(beam_size=size, n_best=n_best, length_penalty=penalty, early_stopping=stop)(decoder, memory)
            for stop in (True, False)
        )
        for one, other in zip(early, late):
            assert [each.tokens for each in one] == [each.tokens for each in other]
            assert [each.score for each in one] == pytest.approx([each.score for each in other])


@torch.no_grad()
def test_a_prefix_is_the_beginning_of_every_output_and_the_rest_is_the_best_given_it(decoder, memory):
    prefix = Padded(torch.tensor([[2, 3], [3, 0], [0, 0]]), torch.tensor([2, 1, 0]))
    search = BeamSearch(beam_size=40, n_best=3, length_penalty=0.0)
    found = search(decoder, memory, prefix)
    for row, hypotheses in enumerate(found):
        begin = tuple(prefix.values[row, : prefix.lengths[row]].tolist())
        ours = memory.select(torch.tensor([row]))
        given = sum_of_prefix(decoder, ours, begin)
        expected = sorted(
            (
                (log_prob(decoder, ours, tokens) - given, tokens)
                for tokens in outputs()
                if tokens[: len(begin)] == begin
            ),
            reverse=True,
        )[:3]
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]
        assert [one.score for one in hypotheses] == pytest.approx([value for value, _ in expected])


def sum_of_prefix(decoder, memory, tokens):
    if not tokens:
        return 0.0
    inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
    log_probs = torch.log_softmax(decoder(memory, inputs).scores[0], dim=-1)
    return sum(float(log_probs[place, token]) for place, token in enumerate(tokens))


def repeats_no_bigram(tokens):
    pairs = list(itertools.pairwise(tokens))
    return len(pairs) == len(set(pairs))


def contains(tokens, phrase):
    return any(tokens[place : place + len(phrase)] == phrase for place in range(len(tokens)))


RULES = {
    "no word 2": ([Banned([[2]])], lambda tokens: 2 not in tokens),
    "no phrase 2 3": ([Banned([[2, 3], [0]])], lambda tokens: not contains(tokens, (2, 3)) and 0 not in tokens),
    "no bigram twice": ([NoRepeat(2)], repeats_no_bigram),
    "no word twice": ([NoRepeat(1)], lambda tokens: len(set(tokens)) == len(tokens)),
    "a 2": ([Required([[[2]]], EOS)], lambda tokens: 2 in tokens),
    "a 2 3 or a 0": ([Required([[[2, 3], [0]]], EOS)], lambda tokens: contains(tokens, (2, 3)) or 0 in tokens),
    "a 3 2 and a 0": ([Required([[[3, 2]], [[0]]], EOS)], lambda tokens: contains(tokens, (3, 2)) and 0 in tokens),
}


@pytest.mark.parametrize("name", RULES)
@torch.no_grad()
def test_constrained_search_finds_the_best_of_what_is_allowed(decoder, memory, name):
    constraints, allowed = RULES[name]
    found = BeamSearch(beam_size=60, n_best=60)(decoder, memory, None, constraints)
    for hypotheses, expected in zip(found, exhaustive(decoder, memory, NORMALISERS["1/L"][1], allowed)):
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]


@pytest.mark.parametrize("name", [name for name in RULES if name.startswith("a ")])
@torch.no_grad()
def test_even_a_narrow_beam_contains_what_is_required(decoder, memory, name):
    constraints, allowed = RULES[name]
    for search in (BeamSearch(beam_size=1), BeamSearch(beam_size=2), Sampling(seed=1)):
        assert all(allowed(tuple(one[0].tokens)) for one in search(decoder, memory, None, constraints))


@torch.no_grad()
def test_constraints_count_prefixes_of_any_length(decoder, memory):
    prefix = Padded(torch.tensor([[2, 3], [3, 0], [0, 0]]), torch.tensor([2, 1, 0]))
    for constraints in ([NoRepeat(1)], [Banned([[3, 2]])], [Required([[[3]]], EOS)]):
        search = BeamSearch(beam_size=40, n_best=40)
        together = search(decoder, memory, prefix, constraints)
        for row, length in enumerate(prefix.lengths.tolist()):
            own = Padded(prefix.values[row : row + 1, :length], prefix.lengths[row : row + 1])
            (alone,) = search(decoder, memory.select(torch.tensor([row])), own, constraints)
            assert [one.tokens for one in alone] == [one.tokens for one in together[row]]


@torch.no_grad()
def test_scores_that_are_not_numbers_end_the_search_with_one_line(decoder, memory):
    for parameter in decoder.parameters():
        parameter.fill_(float("nan"))
    beams = (BeamSearch(beam_size=2, **each) for each in ({}, {"early_stopping": False}, {"rank_by": "last"}))
    for search in (*beams, Sampling()):
        with pytest.raises(SeqloomError):
            search(decoder, memory)


@torch.no_grad()
def test_where_nothing_is_allowed_there_is_no_output(decoder, memory):
    impossible = [Required([[[2, 3, 2, 3, 2]]], EOS)]
    assert BeamSearch(beam_size=2)(decoder, memory, None, impossible) == [[], [], []]
    assert Sampling(n_best=2)(decoder, memory, None, impossible) == [[], [], []]


@torch.no_grad()
def test_minimum_and_maximum_length_hold(decoder, memory):
    shortest = BeamSearch(beam_size=40, n_best=40, minimum_length=2)(decoder, memory)
    assert all({len(one.tokens) for one in each} == {2, 3} for each in shortest)
    longest = BeamSearch(beam_size=40, n_best=40, maximum_length=2)(decoder, memory)
    assert all({len(one.tokens) for one in each} == {0, 1} for each in longest)


@torch.no_grad()
def test_without_an_end_token_the_limit_ends_an_output(decoder, memory):
    decoder.eos = None
    for hypotheses in BeamSearch(beam_size=300, n_best=300, length_penalty=0.0)(decoder, memory):
        assert len(hypotheses) == 4**LIMIT
        assert all(len(one.tokens) == LIMIT for one in hypotheses)
        assert sum(math.exp(one.score) for one in hypotheses) == pytest.approx(1.0)


def test_gnmt_length_penalty_has_the_published_values():
    search = BeamSearch(length_penalty=0.6, normalisation="gnmt")
    assert [round(float(search.normaliser(length)), 4) for length in (1, 5, 10, 20)] == [1.0, 1.3587, 1.7329, 2.3544]


@torch.no_grad()
def test_the_coverage_penalty_is_added_as_the_formula_says():
    from seqloom.nn.attention.additive import Additive
    from seqloom.nn.decoders.recurrent import Recurrent

    decoder = build(Recurrent, attention=Additive, vocabulary=4, bos=BOS, eos=EOS)
    decoder.limit = lambda memory: torch.full((memory.rows,), LIMIT)
    memory = memory_for(decoder, (4, 2, 3))
    plain = BeamSearch(beam_size=40, n_best=40)(decoder, memory)
    penalised = BeamSearch(beam_size=40, n_best=40, coverage_penalty=0.4)(decoder, memory)
    for row, (before, after) in enumerate(zip(plain, penalised)):
        scores = {tuple(one.tokens): one.score for one in after}
        for hypothesis in before:
            ours = memory.select(torch.tensor([row]))
            inputs = Padded(torch.tensor([[BOS, *hypothesis.tokens]]), torch.tensor([len(hypothesis.tokens) + 1]))
            weights = decoder(ours, inputs, attention=True).attention["source"][0, 0, 0]  # (U, T)
            penalty = 0.0
            for place in range(int(ours.lengths[0])):
                penalty += math.log(min(sum(float(each) for each in weights[:, place]), 1.0))
            assert scores[tuple(hypothesis.tokens)] == pytest.approx(hypothesis.score + 0.4 * penalty)


class Fixed(torch.nn.Module):
    """A decoder whose next token never depends on anything."""

    bos, eos, blanks = 0, 1, ()

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def start(self, memory):
        return {"none": torch.zeros(memory.rows)}

    def step(self, token, state, memory):
        return self.logits.expand(len(token), -1), state

    def limit(self, memory):
        return torch.full((memory.rows,), 2)


def sampled_frequencies(logits, count=20_000, **settings):
    found = Sampling(n_best=count, seed=3, minimum_length=1, **settings)(Fixed(logits), Memory.empty(1))
    tokens = torch.tensor([one.tokens[0] for one in found[0]])
    return torch.bincount(tokens, minlength=len(logits)) / count


@torch.no_grad()
def test_samples_follow_the_distribution():
    logits = torch.tensor([0.5, -9.0, 1.0, -1.0, 0.0], dtype=torch.float64)
    masked = logits.clone()
    masked[1] = -math.inf
    for temperature in (1.0, 0.5, 2.0):
        expected = torch.softmax(masked / temperature, 0) * 20_000
        observed = sampled_frequencies(logits, temperature=temperature) * 20_000
        real = expected > 0
        chi_square = float(((observed - expected)[real] ** 2 / expected[real]).sum())
        assert chi_square < 16.27  # 3 degrees of freedom, p = 0.001
    assert sampled_frequencies(logits, top_k=2).nonzero()[:, 0].tolist() == [0, 2]
    assert sampled_frequencies(logits, top_p=0.45).nonzero()[:, 0].tolist() == [2]
    assert sampled_frequencies(logits, top_p=0.7).nonzero()[:, 0].tolist() == [0, 2]
    assert sampled_frequencies(logits, argmax_every=1)[2] == 1


@torch.no_grad()
def test_every_second_token_is_the_likeliest_when_argmax_and_sampling_mix():
    decoder = Fixed(torch.tensor([0.0, -20.0, 0.3, 0.0]))
    decoder.limit = lambda memory: torch.full((memory.rows,), 9)
    found = Sampling(n_best=200, seed=1, argmax_every=2, minimum_length=8)(decoder, Memory.empty(1))[0]
    tokens = torch.tensor([one.tokens for one in found])
    assert (tokens[:, 1::2] == 2).all()
    assert not (tokens[:, ::2] == 2).all()


@torch.no_grad()
def test_samples_of_a_batch_end_on_their_own(decoder, memory):
    for hypotheses in Sampling(n_best=5, seed=2)(decoder, memory):
        assert len(hypotheses) == 5
        for row, one in enumerate(hypotheses):
            assert len(one.tokens) < LIMIT
            assert len(one.log_probs) == len(one.tokens) + 1, row
