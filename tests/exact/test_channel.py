"""The noisy channel against the formula, alignments and outputs listed one by one."""

from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
import torch

from seqloom.errors import SeqloomError
from seqloom.nn.combine.noisy_channel import UNEXPLAINED, NoisyChannel
from seqloom.nn.combine.shallow_fusion import ShallowFusion
from seqloom.nn.decoders.ctc import CTC
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.ssnt import SSNT
from seqloom.nn.decoders.transducer import Transducer
from seqloom.nn.encoders.chunked import Chunked
from seqloom.nn.encoders.convolution import Convolution
from seqloom.nn.encoders.pyramidal import Pyramidal
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.model import Model
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Memory, Padded, select
from tests.building import BOS, EOS, PAD, build
from tests.exact import online
from tests.exact.online import VOCABULARY, Table

OUTPUTS, SOURCES = 6, 7  # tokens of y, of which two are words, and of x
WORDS = (4, 5)
SOURCE = Padded.stack([torch.tensor(row) for row in ([4, 6, 5], [6, 6], [5])])
WEIGHT, LM_WEIGHT, BONUS = 0.8, 0.3, 0.4
DIRECT = {"ssnt": SSNT, "transducer": Transducer, "ctc": CTC}
directs = pytest.mark.parametrize("kind", DIRECT)


def shaken(part, scale=2.0):
    for parameter in part.parameters():
        parameter.data *= scale
    return part


def direct(kind="ssnt"):
    encoder = build(Recurrent, vocabulary=SOURCES, bidirectional=True, layers=1)
    return Model(encoder, shaken(build(DIRECT[kind], vocabulary=OUTPUTS, memory_size=encoder.output_size)))


def channel(encoder=Recurrent, **settings):
    encoder = build(encoder, vocabulary=OUTPUTS, **settings)
    torch.manual_seed(3)
    return Model(encoder, shaken(build(SSNT, vocabulary=SOURCES, memory_size=encoder.output_size)))


def with_language_model(model):
    lm = shaken(build(RecurrentDecoder, vocabulary=OUTPUTS, memory_size=0))
    return Model(model.encoder, ShallowFusion(decoder=model.decoder, language_model=lm, weight=LM_WEIGHT))


def noisy(model, channel, weight=WEIGHT, **settings):
    settings = {"proposals": OUTPUTS, **settings}
    decoder = NoisyChannel(decoder=model.decoder, channel=channel, weight=weight, **settings)
    return Model(model.encoder, decoder)


def framed(*outputs):
    inputs = Padded.stack([torch.tensor([BOS, *each]) for each in outputs])
    return inputs, Padded.stack([torch.tensor([*each, EOS]) for each in outputs])


def row(number):
    length = int(SOURCE.lengths[number])
    return Padded(SOURCE.values[number : number + 1, :length], SOURCE.lengths[number : number + 1])


def of_channel(channel, source, output):
    """log p(x | y), by a pass over both."""
    if not output:
        return UNEXPLAINED
    memory = channel.encode(Padded(torch.tensor([output]), torch.tensor([len(output)])))
    return float(channel.decoder.log_prob(memory, *framed(source.values[0].tolist())))


def objective(model, channel, source, output):
    """What an output is worth, each model asked by itself."""
    decoder = model.decoder
    total = WEIGHT * of_channel(channel, source, output) + BONUS * len(output)
    if isinstance(decoder, ShallowFusion):
        lm, decoder = decoder.language_model, decoder.decoder
        total += LM_WEIGHT * float(lm.log_prob(lm.prepare(Memory.empty(1)), *framed(output)))
    memory = decoder.prepare(model.encoder(source))
    return total + float(decoder.log_prob(memory, *framed(output)))


def by_alignments(channel, symbols, output):
    """p(x_1 .. x_i | y_1 .. y_j): every way to write each token of x at one of y, never going back."""
    decoder = channel.decoder
    memory = channel.encode(Padded(torch.tensor([output]), torch.tensor([len(output)])))
    inputs, targets = framed(symbols)
    shift, emit = (each[0].exp() for each in steps(decoder, memory, inputs, targets))  # (j, i + 1)
    total = 0.0
    for places in combinations_with_replacement(range(len(output)), len(symbols)):
        chance, stands = 1.0, 0
        for written, place in enumerate(places):
            for passed in range(stands, place):
                chance *= float(shift[passed, written])
            chance, stands = chance * float(emit[place, written]), place
        total += chance
    return total


def steps(decoder, memory, inputs, targets):
    """sigmoid(-e), and sigmoid(e) softmax, from the definition."""
    written = decoder.prediction(inputs)
    keys, encoded = memory.extra["keys"], memory.extra["encoded"]
    energy = decoder.energy(torch.tanh(keys[:, :, None] + decoder.query(written)[:, None]))[..., 0]
    logits = encoded[:, :, None] + decoder.wrote(written)[:, None]
    logits[..., [PAD, BOS]] = float("-inf")
    chosen = targets.values[:, None, :, None].expand(-1, logits.shape[1], -1, -1)
    symbol = logits.log_softmax(-1).gather(3, chosen)[..., 0]
    return torch.nn.functional.logsigmoid(-energy), torch.nn.functional.logsigmoid(energy) + symbol


def told(hypotheses):
    return [[(tuple(one.tokens), round(one.score, 5)) for one in each] for each in hypotheses]


# -- what beginnings are worth


@torch.no_grad()
def test_beginnings_are_worth_the_sum_over_alignments():
    channelled = channel()
    model = noisy(direct(), channelled)
    decoder, memory = model.decoder, model.encode(SOURCE)
    state = select(decoder.start(memory)["channel"], memory.owner(6))
    outputs = [[4, 5, 5], [5, 4, 4], [4, 4, 4], [5, 5, 4], [4, 5, 4], [5, 5, 5]]
    for count in range(1, 4):
        state = decoder.advance_channel(torch.tensor([output[count - 1] for output in outputs]), state, memory)
        for place, output in enumerate(outputs):
            symbols = row(place // 2).values[0].tolist()
            for read in range(1, len(symbols) + 1):
                expected = by_alignments(channelled, symbols[:read], output[:count])
                assert float(state["partial"][place, read].exp()) == pytest.approx(expected, rel=1e-9)
            whole = of_channel(channelled, row(place // 2), output[:count])
            assert float(state["whole"][place]) == pytest.approx(whole, abs=1e-9)


@torch.no_grad()
def test_before_anything_is_written_the_source_is_a_guess():
    model = noisy(direct("transducer"), channel())
    decoder, memory = model.decoder, model.encode(SOURCE)
    state, token, total = decoder.start(memory), torch.full((3,), BOS), torch.zeros(3)
    for read in range(1, 3):
        scores, state = decoder.step(token, state, memory)
        token = torch.full((3,), PAD)
        total = total + scores[:, PAD]
        inner, plain = torch.zeros(3), model.decoder.decoder.start(memory)
        for each in range(read):
            said, plain = decoder.decoder.step(torch.full((3,), PAD if each else BOS), plain, memory)
            inner = inner + said[:, PAD]
        guess = torch.minimum(torch.full((3,), read), SOURCE.lengths) * torch.tensor(1 / SOURCES).log()
        real = SOURCE.lengths >= read
        torch.testing.assert_close(total[real], (inner + WEIGHT * guess)[real], check_dtype=False)


# -- what outputs are worth


@directs
@pytest.mark.parametrize("fused", [False, True])
@torch.no_grad()
def test_a_wide_beam_finds_what_exhaustive_search_finds(kind, fused):
    model, channelled = direct(kind), channel()
    model = with_language_model(model) if fused else model
    ours = noisy(model, channelled, length_bonus=BONUS)
    search = PrefixBeam(beam_size=80, n_best=80, symbols_per_state=3, maximum_length=4)
    found = search(ours.decoder, ours.encode(SOURCE))
    for number, hypotheses in enumerate(found):
        outputs = [output for length in range(4) for output in product((1, *WORDS), repeat=length)]
        worth = [(objective(model, channelled, row(number), list(output)), output) for output in outputs]
        expected = sorted(((total, output) for total, output in worth if total > float("-inf")), reverse=True)
        assert [tuple(one.tokens) for one in hypotheses] == [output for _, output in expected]
        assert [one.score for one in hypotheses] == pytest.approx([total for total, _ in expected], abs=1e-4)
        assert all(sum(one.log_probs) == pytest.approx(one.score, abs=1e-4) for one in hypotheses)
        memory = ours.encode(SOURCE).select(torch.tensor([number]))
        asked = ours.decoder.log_prob(memory, *framed(*(output for _, output in expected))).tolist()
        assert asked == pytest.approx([total for total, _ in expected], abs=1e-6)
        assert expected


@directs
@pytest.mark.parametrize("size", [1, 3])
@torch.no_grad()
def test_without_weights_it_is_the_decoder_alone(kind, size):
    model = direct(kind)
    search = PrefixBeam(beam_size=size, n_best=size)
    plain = search(model.decoder, model.encode(SOURCE))
    ours = noisy(model, channel(), 0.0)
    assert search(ours.decoder, ours.encode(SOURCE)) == plain
    next_to_nothing = noisy(model, channel(), 1e-9)
    wide = PrefixBeam(beam_size=80, n_best=20, symbols_per_state=3, maximum_length=4)
    plain = wide(model.decoder, model.encode(SOURCE))
    found = wide(next_to_nothing.decoder, next_to_nothing.encode(SOURCE))
    for one, other in zip(told(found), told(plain)):
        assert [each[0] for each in one] == [each[0] for each in other]
        assert [each[1] for each in one] == pytest.approx([each[1] for each in other], abs=1e-3)


@directs
@pytest.mark.parametrize("size", [1, 2, 4])
@torch.no_grad()
def test_sources_in_a_batch_are_as_if_alone(kind, size):
    ours = noisy(with_language_model(direct(kind)), channel(), length_bonus=BONUS, proposals=2)
    search = PrefixBeam(beam_size=size, n_best=size, symbols_per_state=3)
    alone = [search(ours.decoder, ours.encode(row(number)))[0] for number in range(3)]
    assert told(search(ours.decoder, ours.encode(SOURCE))) == told(alone)
    assert all(alone)


@torch.no_grad()
def test_a_narrow_beam_may_find_an_output_that_the_decoder_alone_does_not():
    model, channelled = direct(), channel()
    search = PrefixBeam(beam_size=4)
    plain = search(model.decoder, model.encode(SOURCE))
    ours = noisy(model, channelled, weight=3.0)
    found = search(ours.decoder, ours.encode(SOURCE))
    assert [one.tokens for (one,) in found] != [one.tokens for (one,) in plain]
    for number, ((one,), (other,)) in enumerate(zip(found, plain)):
        source = row(number)
        assert of_channel(channelled, source, one.tokens) >= of_channel(channelled, source, other.tokens) - 1e-9


# -- what a step does


@torch.no_grad()
def test_only_proposals_are_looked_at_beside_silence_and_the_end():
    model = direct()
    every, few = noisy(model, channel()), noisy(model, channel(), proposals=1)
    memory, token = every.encode(SOURCE), torch.full((3,), BOS)
    scores, _ = every.decoder.step(token, every.decoder.start(memory), memory)
    some, _ = few.decoder.step(token, few.decoder.start(memory), memory)
    inner, _ = model.decoder.step(token, model.decoder.start(memory), memory)
    for number in range(3):
        best = max((1, *WORDS), key=lambda symbol: float(inner[number, symbol]))
        for symbol in range(OUTPUTS):
            kept = symbol in (best, PAD, EOS)
            assert float(some[number, symbol]) == (float(scores[number, symbol]) if kept else float("-inf"))


class Bold(Table):
    """4 and then 5 are unlikely, and after both of them silence is worth more than all."""

    may_rise = True

    def step(self, token, state, memory):
        written = 10 * state["story"] + np.where(token > EOS, token, 0)
        scores = np.full((len(token), VOCABULARY), float("-inf"))
        for place, (one, said) in enumerate(zip(written.tolist(), token.tolist())):
            if said == PAD:
                scores[place, EOS] = 0
            else:
                scores[place, PAD] = {0: -1.0, 4: -0.5, 45: 9.0}.get(one, -50.0)
                scores[place, WORDS] = {0: (-5.0, -9.0), 4: (-9.0, -3.0)}.get(one, (-50.0, -50.0))
        return scores, {
            "frame": state["frame"] + (token == PAD),
            "story": np.where(token > EOS, written, state["story"]),
        }


def test_the_search_follows_rows_that_may_rise_again():
    decoder, memory, search = Bold(), online.memory((1,)), PrefixBeam(beam_size=2, symbols_per_state=2)
    ((one,),) = search(decoder, memory)
    assert (one.tokens, one.score) == ([4, 5], 1.0)
    decoder.may_rise = False
    ((one,),) = search(decoder, memory)
    assert (one.tokens, one.score) == ([], -1.0)


def test_scores_may_rise_by_the_channel_and_by_the_bonus_alone():
    model, channelled = direct(), channel()
    assert noisy(model, channelled).decoder.may_rise
    assert noisy(model, channelled, 0.0, length_bonus=0.1).decoder.may_rise
    assert not noisy(model, channelled, 0.0, length_bonus=-0.1).decoder.may_rise
    assert with_language_model(noisy(model, channelled)).decoder.may_rise


@torch.no_grad()
def test_rows_may_be_selected():
    decoder = (model := noisy(with_language_model(direct()), channel())).decoder
    memory = model.encode(SOURCE)
    state = decoder.start_rows(memory, 6)
    _, state = decoder.step(torch.full((6,), BOS), state, memory)
    _, state = decoder.step(torch.tensor([4, PAD, 5, 4, PAD, 5]), state, memory)
    token, rows = torch.tensor([PAD, 4, PAD, 5, 5, PAD]), torch.tensor([1, 0, 3, 2, 5, 4])
    scores, _ = decoder.step(token, state, memory)
    swapped, _ = decoder.step(token[rows], select(state, rows), memory)
    torch.testing.assert_close(swapped, scores[rows])


@torch.no_grad()
def test_symbols_in_another_order_are_found():
    model, plain, turned = direct(), channel(), channel()
    outputs, sources = [0, 1, 2, 3, 5, 4], [0, 1, 2, 3, 5, 6, 4]
    turned.load_state_dict(plain.state_dict())
    turned.encoder.embedding.weight.data[outputs] = plain.encoder.embedding.weight.data
    for ours, theirs in (
        (turned.decoder.prediction.embedding, plain.decoder.prediction.embedding),
        (turned.decoder.read, plain.decoder.read),
        (turned.decoder.wrote, plain.decoder.wrote),
    ):
        for name, parameter in theirs.named_parameters():
            getattr(ours, name).data[sources] = parameter.data
    search = PrefixBeam(beam_size=4, n_best=4)
    one, other = noisy(model, plain), noisy(model, turned, tokens=outputs, sources=sources)
    assert told(search(one.decoder, one.encode(SOURCE))) == told(search(other.decoder, other.encode(SOURCE)))
    wrong = noisy(model, turned)
    assert told(search(one.decoder, one.encode(SOURCE))) != told(search(wrong.decoder, wrong.encode(SOURCE)))


@pytest.mark.parametrize("encoder", [Convolution, partial(Recurrent, layers=2, residual=True)])
@torch.no_grad()
def test_any_encoder_that_answers_at_once_will_do(encoder):
    model, channelled = direct(), channel(encoder)
    ours = noisy(model, channelled, length_bonus=BONUS)
    search = PrefixBeam(beam_size=80, n_best=10, symbols_per_state=3, maximum_length=4)
    for number, hypotheses in enumerate(search(ours.decoder, ours.encode(SOURCE))):
        worth = [objective(model, channelled, row(number), one.tokens) for one in hypotheses]
        assert [one.score for one in hypotheses] == pytest.approx(worth, abs=1e-4)
        assert len(worth) == 10


# -- what it refuses


def test_it_refuses_what_cannot_be_done():
    model, channelled = direct(), channel()
    for settings, said in (
        ({"weight": -1.0}, "channel_weight = -1"),
        ({"length_bonus": float("nan")}, "length_bonus = nan"),
        ({"proposals": 0}, "proposals = 0"),
    ):
        with pytest.raises(SeqloomError, match=said):
            noisy(model, channelled, **settings)
    for encoder in (partial(Recurrent, bidirectional=True), partial(Chunked, chunk=2), partial(Chunked, chunk=1)):
        with pytest.raises(SeqloomError, match="one state per token"):
            noisy(model, channel(encoder))
    with pytest.raises(SeqloomError, match='type = "ssnt"'):
        noisy(model, Model(channelled.encoder, direct("transducer").decoder))
    attends = Model(model.encoder, build(RecurrentDecoder, vocabulary=OUTPUTS))
    with pytest.raises(SeqloomError, match="reads all before it writes"):
        noisy(attends, channelled)
    with pytest.raises(ValueError, match="one encoder state per source token"):
        noisy(Model(build(Pyramidal, vocabulary=SOURCES), model.decoder), channelled).encode(SOURCE)
    ours = noisy(model, channelled)
    memory = replace(ours.encode(SOURCE), closed=False)
    with pytest.raises(SeqloomError, match="whole source"):
        PrefixBeam(beam_size=2)(ours.decoder, memory)
