"""Transducer, CTC and SSNT against sums over all alignments, listed one by one."""

import math
from collections import defaultdict
from itertools import combinations_with_replacement, groupby, product

import pytest
import torch

from seqloom.nn.decoders.ctc import CTC
from seqloom.nn.decoders.ssnt import SSNT
from seqloom.nn.decoders.transducer import Transducer
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.model import Model
from seqloom.objectives.marginal import Marginal
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Batch, Padded
from tests.building import BOS, EOS, PAD, build, memory_for, source

VOCABULARY = 6  # PAD, UNK, BOS, EOS and two more
VISIBLE = (1, 4, 5)
NEVER = float("-inf")
KINDS = {
    "transducer, added": lambda: build(Transducer, vocabulary=VOCABULARY),
    "transducer, mlp": lambda: build(Transducer, vocabulary=VOCABULARY, joint="mlp"),
    "ctc": lambda: build(CTC, vocabulary=VOCABULARY),
    "ssnt": lambda: build(SSNT, vocabulary=VOCABULARY),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def inputs_and_targets(*outputs):
    inputs = Padded.stack([torch.tensor([BOS, *each]) for each in outputs])
    return inputs, Padded.stack([torch.tensor([*each, EOS]) for each in outputs])


def by_steps(decoder, memory, longest):
    """{output: probability} of one source, by following every possible step."""
    found = defaultdict(float)

    def follow(token, state, written, probability):
        scores, state = decoder.step(torch.tensor([token]), state, memory)
        for following, share in enumerate(scores[0].exp().tolist()):
            if following == EOS:
                found[written] += probability * share
            elif share and (following == PAD or len(written) < longest):
                follow(following, state, written if following == PAD else (*written, following), probability * share)

    follow(BOS, decoder.start(memory), (), 1.0)
    return found


@kinds
def test_the_probability_of_an_output_is_that_of_all_steps_that_spell_it(kind):
    decoder = KINDS[kind]()
    memory, longest = memory_for(decoder, (3,)), 3 if kind == "ctc" else 2
    found = by_steps(decoder, memory, longest)
    outputs = [output for length in range(longest + 1) for output in product(VISIBLE, repeat=length)]
    log_probs = decoder.log_prob(memory, *inputs_and_targets(*outputs)).tolist()  # many rows of one source
    for output, log_prob in zip(outputs, log_probs):
        assert math.exp(log_prob) == pytest.approx(found[output], abs=1e-12)
    assert sum(found.values()) <= 1 + 1e-9
    if kind == "ctc":  # equal tokens need a blank between them, and no output is longer than the source
        assert found[4, 4, 4] == 0
        assert log_probs[outputs.index((4, 4, 4))] == NEVER
        assert sum(found.values()) == pytest.approx(1)
    else:
        assert len(found) == len(outputs)


@pytest.mark.parametrize("joint", ["add", "mlp"])
def test_all_outputs_of_a_transducer_have_probability_one(joint):
    decoder = build(Transducer, vocabulary=5, joint=joint)
    with torch.no_grad():  # so that few outputs are long
        (decoder.output or decoder.read).bias[PAD] += 4
    memory = memory_for(decoder, (2,))
    sums = []
    for longest in (0, 2, 4, 7):
        outputs = [output for length in range(longest + 1) for output in product((1, 4), repeat=length)]
        sums.append(decoder.log_prob(memory, *inputs_and_targets(*outputs)).exp().sum().item())
    assert sums == sorted(sums)
    assert sums[0] < 0.98
    assert 0.999 < sums[-1] < 1 + 1e-12


@kinds
def test_padding_of_sources_and_outputs_changes_nothing_and_has_no_gradient(kind):
    decoder = KINDS[kind]()
    outputs, lengths = [(4, 5, 1), (4,), (5, 4), ()], (5, 3, 4, 2)
    memory = memory_for(decoder, lengths)
    inputs, targets = inputs_and_targets(*outputs)
    log_probs = decoder.log_prob(memory, inputs, targets)
    for row, (output, length) in enumerate(zip(outputs, lengths)):
        ours = memory.select(torch.tensor([row]))
        extra = {name: value[:, :length] for name, value in ours.extra.items()}
        alone = type(ours)(ours.states[:, :length], ours.lengths, extra=extra)
        torch.testing.assert_close(decoder.log_prob(alone, *inputs_and_targets(output))[0], log_probs[row])
    entries = [value.requires_grad_() for value in map(torch.Tensor.detach, memory.extra.values())]
    given = memory.with_extra(**dict(zip(memory.extra, entries)))
    gradients = torch.autograd.grad(decoder.log_prob(given, inputs, targets).sum(), entries)
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert gradient[:3][memory.mask[:3]].any(-1).all()
        assert not gradient[~memory.mask].any()


@kinds
def test_gradients_match_finite_differences(kind):
    decoder = KINDS[kind]()
    memory = memory_for(decoder, (3, 2))
    given = inputs_and_targets((4, 4), (5,))

    def total():
        return decoder.log_prob(decoder.prepare(memory), *given).sum()

    parameters = list(decoder.parameters())
    gradients = torch.autograd.grad(total(), parameters)
    generator = torch.Generator().manual_seed(3)
    for _ in range(3):
        directions = [torch.randn(each.shape, generator=generator, dtype=each.dtype) for each in parameters]
        expected = sum((one * other).sum() for one, other in zip(gradients, directions)).item()
        ends = []
        for sign in (1e-6, -2e-6, 1e-6):
            with torch.no_grad():
                for parameter, direction in zip(parameters, directions):
                    parameter.add_(sign * direction)
                ends.append(total().item())
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(expected, rel=1e-6, abs=1e-7)


# -- each by its own definition


def test_ctc_is_the_sum_over_all_labellings():
    decoder = KINDS["ctc"]()
    memory = memory_for(decoder, (4,))
    log_probs = memory.extra["log_probs"][0]
    expected = defaultdict(float)
    for labelling in product(range(VOCABULARY), repeat=4):
        output = tuple(token for token, _ in groupby(labelling) if token != PAD)
        expected[output] += log_probs[range(4), labelling].sum().exp().item()
    outputs = [output for output, probability in expected.items() if probability]
    found = decoder.log_prob(memory, *inputs_and_targets(*outputs)).exp().tolist()
    assert found == pytest.approx([expected[output] for output in outputs])
    assert sum(found) == pytest.approx(1)
    assert all(set(output) <= set(VISIBLE) for output in outputs)


def test_outputs_that_ctc_cannot_write_have_no_gradient_and_spoil_none():
    decoder = KINDS["ctc"]()
    memory = memory_for(decoder, (3, 3, 2, 1))
    log_prob = decoder.log_prob(memory, *inputs_and_targets((4, 5), (4, 4, 4), (4, 4), ()))
    assert (log_prob == NEVER).tolist() == [False, True, True, False]
    (total,) = torch.autograd.grad(log_prob.masked_fill(log_prob == NEVER, 0).sum(), decoder.output.weight)
    memory = memory.select(torch.tensor([0, 3]))
    memory = decoder.prepare(memory)
    (alone,) = torch.autograd.grad(
        decoder.log_prob(memory, *inputs_and_targets((4, 5), ())).sum(), decoder.output.weight
    )
    torch.testing.assert_close(total, alone)


def ssnt_tables(decoder, memory, output):
    """e(i, j) and p(y_j | i, j) of eq. 5 and 7, from the weights; EOS is the last token.  twice (I, J)"""
    states = memory.states[0]
    written = decoder.prediction(inputs_and_targets(output)[0])[0]  # (J, size)
    both = torch.stack([torch.cat([a, b]) for a in states for b in written]).view(len(states), len(written), -1)
    hidden = torch.tanh(both @ torch.cat([decoder.key.weight, decoder.query.weight], 1).T + decoder.key.bias)
    write = torch.sigmoid(decoder.energy(hidden))[:, :, 0]
    logits = both @ torch.cat([decoder.read.weight, decoder.wrote.weight], 1).T + decoder.read.bias
    kept = [token for token in range(VOCABULARY) if token not in (BOS, PAD)]
    probabilities = torch.zeros_like(logits)
    probabilities[:, :, kept] = logits[:, :, kept].softmax(-1)
    return write, probabilities[:, range(len(written)), [*output, EOS]]


SSNT_OUTPUTS = [(), (4,), (4, 5), (5, 5, 1, 4)]


@pytest.mark.parametrize("output", SSNT_OUTPUTS)
def test_ssnt_is_the_sum_over_alignments_that_never_go_back(output):
    decoder = KINDS["ssnt"]()
    memory = memory_for(decoder, (4,))
    write, label = ssnt_tables(decoder, memory, output)
    last, total, best = 3, 0, (0, None)
    for body in combinations_with_replacement(range(4), len(output)):
        probability, before = 1, 0
        for place, (at, count) in enumerate(zip((*body, last), range(len(output) + 1))):
            for passed in range(before, at):
                probability = probability * (1 - write[passed, count])
            probability = probability * write[at, count] * label[at, place]
            before = at
        total = total + probability
        best = max(best, (probability.item(), list(body)))
    torch.testing.assert_close(decoder.log_prob(memory, *inputs_and_targets(output))[0], total.log())
    assert decoder.alignment(memory, *inputs_and_targets(output))[0].tolist() == best[1]


@pytest.mark.parametrize("output", SSNT_OUTPUTS)
def test_ssnt_is_the_recursion_of_the_paper(output):
    """alpha(j, i) = p(y_j | i) sum_{k <= i} alpha(j - 1, k) p(a_j = i | a_{j-1} = k); the likelihood is alpha(J, I)."""
    decoder = KINDS["ssnt"]()
    memory = memory_for(decoder, (4,))
    write, label = ssnt_tables(decoder, memory, output)
    alpha = [1.0, 0.0, 0.0, 0.0]
    for place in range(len(output) + 1):
        alpha = [
            label[at, place]
            * sum(
                alpha[k] * write[at, place] * math.prod(1 - write[m, place] for m in range(k, at))
                for k in range(at + 1)
            )
            for at in range(4)
        ]
    torch.testing.assert_close(decoder.log_prob(memory, *inputs_and_targets(output))[0], alpha[-1].log())


@pytest.mark.parametrize("joint", ["add", "mlp"])
def test_a_transducer_joins_encoder_and_prediction_network(joint):
    """By eq. 12 to 16 of Graves 2012 over all cells, from the weights, without BOS and EOS."""
    decoder = build(Transducer, vocabulary=VOCABULARY, joint=joint)
    memory, output = memory_for(decoder, (4,)), (5, 4, 4)
    written = decoder.wrote(decoder.prediction(inputs_and_targets(output)[0]))[0]
    joined = decoder.read(memory.states[0])[:, None] + written
    logits = joined if joint == "add" else decoder.output(joined.tanh())
    kept = [token for token in range(VOCABULARY) if token not in (BOS, EOS)]
    probabilities = torch.zeros_like(logits)
    probabilities[:, :, kept] = logits[:, :, kept].softmax(-1)
    alpha = torch.zeros(4, 4, dtype=torch.float64)
    for t, u in product(range(4), range(4)):
        alpha[t, u] = 1.0 if (t, u) == (0, 0) else 0.0
        if t:
            alpha[t, u] += alpha[t - 1, u] * probabilities[t - 1, u, PAD]
        if u:
            alpha[t, u] += alpha[t, u - 1] * probabilities[t, u - 1, output[u - 1]]
    expected = (alpha[-1, -1] * probabilities[-1, -1, PAD]).log()
    torch.testing.assert_close(decoder.log_prob(memory, *inputs_and_targets(output))[0], expected)
    places = decoder.alignment(memory, *inputs_and_targets(output))[0]
    assert (places.diff() >= 0).all()


@kinds
def test_a_wide_prefix_beam_finds_the_likeliest_output_and_its_whole_probability(kind):
    decoder = KINDS[kind]()
    memory = memory_for(decoder, (3, 1, 2))
    search = PrefixBeam(beam_size=200, n_best=3, symbols_per_state=3, maximum_length=4)
    with torch.no_grad():
        found = search(decoder, memory)
    for row, hypotheses in enumerate(found):
        ours = memory.select(torch.tensor([row]))
        ours = decoder.prepare(type(ours)(ours.states[:, : ours.lengths[0]], ours.lengths))
        outputs = [output for length in range(4) for output in product(VISIBLE, repeat=length)]
        log_probs = decoder.log_prob(ours, *inputs_and_targets(*outputs)).tolist()
        ranked = sorted(zip(log_probs, outputs), reverse=True)[:3]
        assert [tuple(each.tokens) for each in hypotheses] == [output for _, output in ranked]
        assert [each.score for each in hypotheses] == pytest.approx([log_prob for log_prob, _ in ranked], abs=1e-5)


@kinds
def test_only_rows_that_are_alive_say_how_much_was_read(kind):
    """In a beam wider than the vocabulary, rows that are not alive may have gone on by a forbidden blank."""
    reads = []

    class Watched(PrefixBeam):
        def enforce_certain(self, group, read):
            reads.append(read.reshape(len(group.totals), -1).amax(1).tolist())
            return super().enforce_certain(group, read)

    decoder = KINDS[kind]()
    with torch.no_grad():
        Watched(beam_size=50, symbols_per_state=3)(decoder, memory_for(decoder, (3, 3)))
    assert reads[:3] == [[1, 1], [2, 2], [3, 3]]


# -- the objective


def model_of(kind):
    decoder = KINDS[kind]()
    return Model(build(Recurrent, size=8, layers=1), decoder)


def batch_of(*outputs):
    inputs, targets = inputs_and_targets(*outputs)
    return Batch(source((3, 4, 1)[: len(outputs)]), inputs, targets)


@kinds
def test_the_objective_is_minus_the_log_probability_of_the_outputs(kind):
    model, batch = model_of(kind), batch_of((4, 5), (5,), ())
    loss = Marginal()(model, batch, 0.5)
    expected = -model.decoder.log_prob(model.encode(batch.source), batch.inputs, batch.targets).sum()
    torch.testing.assert_close(loss.total, expected)
    assert int(loss.count) == 3 + 2 + 1
    assert loss.logs["nll"].item() == loss.total.item()
    assert int(loss.logs["impossible"]) == 0
    loss.total.backward()
    assert [name for name, value in model.named_parameters() if value.grad is None or not value.grad.any()] == []


@kinds
def test_in_half_precision_paths_are_summed_in_float32(kind):
    model, batch = model_of(kind).float(), batch_of((4, 5), (5,), ())
    with torch.autocast("cpu", torch.bfloat16):
        loss = Marginal()(model, batch, 0.5)
    assert loss.total.dtype == torch.float32
    assert loss.total.item() == pytest.approx(Marginal()(model, batch, 0.5).total.item(), rel=0.02)
    loss.total.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_examples_that_cannot_be_written_are_counted_and_left_out():
    model = model_of("ctc")
    with_one = Marginal()(model, batch_of((4, 5), (5,), (4, 5)), 0.5)  # the last has two tokens and one state
    without = Marginal()(model, batch_of((4, 5), (5,)), 0.5)
    assert int(with_one.logs["impossible"]) == 1
    assert int(with_one.count) == int(without.count) == 5
    torch.testing.assert_close(with_one.total, without.total)
    parameters = list(model.parameters())
    for one, other in zip(*(torch.autograd.grad(each.total, parameters) for each in (with_one, without))):
        torch.testing.assert_close(one, other)


def test_a_batch_in_which_nothing_can_be_written_has_no_loss_and_no_gradient():
    model = model_of("ctc")
    loss = Marginal()(model, batch_of((4, 4, 5, 5)), 0.5)
    assert (loss.total.item(), int(loss.count), int(loss.logs["impossible"])) == (0, 0, 1)
    loss.total.backward()
    assert not any(parameter.grad.any() for parameter in model.parameters() if parameter.grad is not None)
