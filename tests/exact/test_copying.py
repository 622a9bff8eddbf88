"""Copying: distributions over words and copies, coverage, the pointer sentinel."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from seqloom.contracts import Decoder
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.monotonic import Monotonic
from seqloom.nn.decoders.copy import Copy
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.sentinel import Sentinel
from seqloom.nn.encoders.recurrent import Recurrent as Encoder
from seqloom.nn.model import Model
from seqloom.nn.ops.pointing import add_pointer_probs
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Memory, Padded, costs, select
from tests.building import BOS, EOS, INNER, INNER_TRANSFORMER, SMALL, UNK, VOCABULARY, build

LENGTHS = torch.tensor([5, 3])
# Row 0: an unknown word twice, a known one, one that the target's vocabulary lacks (5 -> UNK), another unknown one.
SOURCE = torch.tensor([[VOCABULARY, 4, VOCABULARY, 5, VOCABULARY + 4], [6, 6, VOCABULARY + 2, 0, 0]])
WRITTEN = SMALL["written"]  # 4 -> 8, 5 -> UNK, 6 -> 5, 7 -> 4, 8 -> 6


def copying(**settings):
    return build(Copy, **{"decoder": partial(Recurrent, **INNER), **settings})


def memory_of(decoder, source=SOURCE, lengths=LENGTHS):
    torch.manual_seed(0)
    states = torch.randn(*source.shape, SMALL["memory_size"], dtype=torch.float64)
    summary = torch.randn(len(source), SMALL["memory_size"], dtype=torch.float64)
    read = {"source": Memory(source, lengths)}
    return decoder.prepare(Memory(states, lengths, {"summary": summary}, parts=read))


def forced(rows, width, tokens=VOCABULARY):
    torch.manual_seed(1)
    words = torch.randint(4, tokens, (rows, width - 1))
    return Padded(torch.cat([torch.full((rows, 1), BOS), words], 1), torch.full((rows,), width))


def parts_of(decoder, memory, inputs):
    """The gate g (rows, U), probabilities of the vocabulary (rows, U, V) and attention (rows, U, T)."""
    extra = {name: entry for name, entry in memory.extra.items() if name != "copy"}
    inner = replace(memory, extra=extra)
    output = decoder.decoder(inner, Padded(decoder.copies_as_unknown(inputs.values), inputs.lengths))
    ours = replace(memory, extra=memory.extra["copy"]["attention"])
    state = select(decoder.attention.start(ours), ours.owner(len(inputs.values)))
    context, _, weights = decoder.attention(output.hidden, ours, state, weights=True)
    gate = decoder.gate(torch.cat([output.hidden, context], -1))[..., 0].sigmoid()
    return gate, output.project(output.hidden + decoder.context(context)).softmax(-1), weights.mean(1)


class TestCopy:
    @pytest.mark.parametrize("mixture", ["soft", "switch"])
    @pytest.mark.parametrize("inner", [partial(Recurrent, **INNER), INNER_TRANSFORMER])
    def test_words_and_copies_together_are_one_distribution(self, mixture, inner):
        decoder = copying(mixture=mixture, decoder=inner)
        scores = decoder(memory_of(decoder), forced(4, 3)).scores
        assert scores.shape == (4, 3, VOCABULARY + 5)
        torch.testing.assert_close(scores.exp().sum(-1), torch.ones(4, 3, dtype=torch.float64))

    @pytest.mark.parametrize("mixture", ["soft", "switch"])
    def test_each_token_has_the_probability_that_a_loop_over_positions_gives(self, mixture):
        decoder = copying(mixture=mixture)
        memory, inputs = memory_of(decoder), forced(4, 3)
        gates, words, weights = parts_of(decoder, memory, inputs)
        expected = torch.zeros(4, 3, VOCABULARY + 5, dtype=torch.float64)
        for row in range(4):
            source = SOURCE[row // 2, : LENGTHS[row // 2]].tolist()
            for time in range(3):
                expected[row, time, :VOCABULARY] = gates[row, time] * words[row, time]
                for place, token in enumerate(source):
                    known = mixture == "soft" and token < VOCABULARY and WRITTEN[token] != UNK
                    target = WRITTEN[token] if known else VOCABULARY + source.index(token)
                    expected[row, time, target] += (1 - gates[row, time]) * weights[row, time, place]
        output = decoder(memory, inputs, attention=True)
        torch.testing.assert_close(output.scores.exp(), expected)
        torch.testing.assert_close(output.copied, 1 - gates)
        assert decoder(memory, inputs).copied is None

    def test_a_word_of_vocabulary_and_source_has_the_sum_of_both(self):
        decoder = copying()
        memory, inputs = memory_of(decoder), forced(2, 1)
        gates, words, weights = parts_of(decoder, memory, inputs)
        wanted = gates[1, 0] * words[1, 0, 5] + (1 - gates[1, 0]) * (weights[1, 0, 0] + weights[1, 0, 1])
        torch.testing.assert_close(decoder(memory, inputs).scores[1, 0, 5].exp(), wanted)

    def test_with_the_gate_open_it_is_the_inner_decoder(self):
        decoder = copying()
        torch.nn.init.zeros_(decoder.context.weight)
        torch.nn.init.zeros_(decoder.gate.weight)
        torch.nn.init.constant_(decoder.gate.bias, 60.0)
        memory, inputs = memory_of(decoder), forced(2, 4)
        alone = decoder.decoder(memory, inputs).scores.log_softmax(-1)
        torch.testing.assert_close(decoder(memory, inputs).scores[:, :, :VOCABULARY], alone)

    def test_the_likelihood_of_the_switch_is_that_of_the_observed_choice(self):
        decoder = copying(mixture="switch")
        memory, inputs = memory_of(decoder), forced(2, 2)
        targets = Padded(torch.tensor([[7, VOCABULARY], [VOCABULARY + 2, EOS]]), torch.tensor([2, 2]))
        gates, words, weights = parts_of(decoder, memory, inputs)
        first = gates[0, 0].log() + words[0, 0, 7].log()
        first = first + (1 - gates[0, 1]).log() + (weights[0, 1, 0] + weights[0, 1, 2]).log()
        second = (1 - gates[1, 0]).log() + weights[1, 0, 2].log() + gates[1, 1].log() + words[1, 1, EOS].log()
        torch.testing.assert_close(decoder.log_prob(memory, inputs, targets), torch.stack([first, second]))

    def test_copies_are_read_as_unknown(self):
        decoder = copying()
        memory = memory_of(decoder)
        copied, unknown = (torch.full((2,), token) for token in (VOCABULARY + 1, UNK))
        state = decoder.start(memory)
        torch.testing.assert_close(decoder.step(copied, state, memory)[0], decoder.step(unknown, state, memory)[0])

    @pytest.mark.parametrize("mixture", ["soft", "switch"])
    def test_gradients_are_finite_where_probabilities_are_zero(self, mixture):
        decoder = copying(mixture=mixture)
        torch.nn.init.constant_(decoder.attention.energy.weight, 1e4)  # attention to one position only
        memory, inputs = memory_of(decoder), forced(2, 3)
        scores = decoder(memory, inputs).scores
        scores[scores.isfinite()].sum().backward()
        assert all(each.grad.isfinite().all() for each in decoder.parameters() if each.grad is not None)

    def test_it_refuses_what_it_cannot_copy_from(self):
        with pytest.raises(ValueError, match="source of tokens"):
            copying(source_vocabulary=None)
        with pytest.raises(ValueError, match="monotonic"):
            copying(attention=Monotonic)


class TestCoverage:
    def test_weights_and_cost_are_those_of_a_loop(self):
        attention = build(Additive, coverage=True)
        memory = attention.prepare(Memory(torch.randn(2, 4, 8, dtype=torch.float64), torch.tensor([4, 2])))
        query = torch.randn(4, 3, 8, dtype=torch.float64)
        state = select(attention.start(memory), memory.owner(4))
        lengths = torch.tensor([3, 1, 2, 0])
        context, after, weights = attention(query, memory, state, weights=True, lengths=lengths)
        for row in range(4):
            length, count = int(memory.lengths[row // 2]), int(lengths[row])
            states, coverage = memory.states[row // 2, :length], torch.zeros(length, dtype=torch.float64)
            cost = coverage.sum()
            for time in range(3):
                inner = (
                    attention.query(query[row, time])
                    + attention.key(states)
                    + coverage[:, None] * (attention.covered.weight[:, 0])
                )
                weight = attention.energy(torch.tanh(inner))[:, 0].softmax(0)
                torch.testing.assert_close(weights[row, 0, time, :length], weight)
                torch.testing.assert_close(context[row, time], weight @ states)
                if time < count:
                    cost = cost + torch.minimum(weight, coverage).sum()
                coverage = coverage + weight
                if time + 1 == count:
                    torch.testing.assert_close(after["coverage"][row, :length], coverage)
            torch.testing.assert_close(after["cost"]["coverage"][row], cost)

    def test_repeated_attention_has_a_cost_that_the_objective_weighs(self):
        decoder = copying(attention=partial(Additive, coverage=True))
        memory, inputs = memory_of(decoder), forced(2, 4)

        class Encoded(torch.nn.Module):
            encode = staticmethod(lambda *_: memory)
            decoder: Decoder

            def forward(self, batch, attention=False):
                output = decoder(memory, batch.inputs)
                return replace(output, costs=costs(output.state))

        batch = Batch(None, inputs, Padded(torch.full((2, 4), EOS), torch.full((2,), 4)))
        plain, weighed = (CrossEntropy(costs={"coverage": weight})(Encoded(), batch, 0.5) for weight in (0.0, 2.0))
        spent = decoder(memory, inputs).state["attention"]["cost"]["coverage"].sum()
        assert spent > 0.1
        torch.testing.assert_close(weighed.total - plain.total, 2.0 * spent)
        torch.testing.assert_close(weighed.logs["coverage"], spent)

    def test_a_model_reports_the_cost_of_its_coverage(self):
        decoder = build(Recurrent, attention=partial(Additive, coverage=True))
        model = Model(build(Encoder), decoder)
        inputs = forced(2, 3)
        batch = Batch(Padded(torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])), inputs, inputs)
        assert model(batch).costs["decoder.attention"]["coverage"].shape == (2,)
        with torch.no_grad():
            first = replace(batch, inputs=Padded(inputs.values[:, :1], torch.ones(2, dtype=torch.long)))
            assert not model(first).costs["decoder.attention"]["coverage"].any()  # nothing was attended to before


class TestSentinel:
    def test_each_word_has_the_probability_that_a_loop_over_the_window_gives(self):
        window, width = 3, 7
        decoder = build(Sentinel, window=window, decoder=partial(Recurrent, **INNER), memory_size=0)
        memory, inputs = Memory.empty(2), forced(2, width, 7)  # few words, so that some come again
        hidden = decoder.decoder(memory, inputs)
        output = decoder(memory, inputs, attention=True)
        scores = output.scores
        for row in range(2):
            for time in range(width):
                vectors, places = hidden.hidden[row], range(max(time - window + 1, 0), time + 1)
                query = torch.tanh(decoder.query(vectors[time]))
                energies = torch.stack([*(query @ vectors[place] for place in places), query @ decoder.sentinel])
                *shares, gate = energies.softmax(0)
                expected = gate * hidden.scores[row, time].softmax(-1)
                for place, share in zip(places, shares):
                    expected[inputs.values[row, place]] += share
                torch.testing.assert_close(scores[row, time].exp(), expected)
                torch.testing.assert_close(output.copied[row, time], 1 - gate)
                torch.testing.assert_close(expected.sum(), torch.tensor(1.0, dtype=torch.float64))

    def test_the_state_does_not_grow(self):
        decoder = build(Sentinel, window=3, decoder=partial(Recurrent, **INNER), memory_size=0)
        memory = Memory.empty(2)
        output = decoder(memory, forced(2, 9))
        assert output.state["keys"].shape == (2, 3, decoder.hidden_size)
        assert output.state["symbols"].tolist() == forced(2, 9).values[:, -3:].tolist()
        assert output.state["count"].tolist() == [3, 3]

    def test_with_all_attention_on_the_sentinel_it_is_the_inner_decoder(self):
        decoder = build(Sentinel, window=3, decoder=partial(Recurrent, **INNER), memory_size=0)
        torch.nn.init.zeros_(decoder.query.weight)
        torch.nn.init.constant_(decoder.query.bias, 5.0)
        torch.nn.init.constant_(decoder.sentinel, 50.0)
        memory, inputs = Memory.empty(2), forced(2, 6)
        torch.testing.assert_close(
            decoder(memory, inputs).scores, decoder.decoder(memory, inputs).scores.log_softmax(-1)
        )


def test_shares_are_added_where_they_are_chosen_and_nowhere_else():
    log_probs = torch.tensor([0.5, 0.25, 0.25]).double().log().view(1, 1, 3)
    shares, tokens = torch.tensor([[[0.2, 0.3, 0.2]]]).double(), torch.tensor([[[2, 0, 2]]])
    chosen = torch.tensor([[[True, True, False]]])
    found = add_pointer_probs(log_probs, shares, tokens, chosen).exp()
    torch.testing.assert_close(found, torch.tensor([[[0.8, 0.25, 0.45]]]).double())
