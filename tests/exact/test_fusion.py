"""Shallow fusion and rescoring against the formula, every output enumerated."""

from types import SimpleNamespace

import pytest
import torch

from seqloom.data.codecs.text import Text
from seqloom.errors import SeqloomError
from seqloom.inference import rescoring
from seqloom.inference.find import Prediction
from seqloom.inference.rescoring import UNEXPLAINED, rerank
from seqloom.nn.attention.dot import Dot
from seqloom.nn.combine.ensemble import Ensemble
from seqloom.nn.combine.shallow_fusion import ShallowFusion, same_tokens
from seqloom.nn.decoders.ctc import CTC
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transducer import Transducer
from seqloom.nn.decoders.transformer import Transformer
from seqloom.search.beam import BeamSearch
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.search.sample import Sampling
from seqloom.types import Memory, Padded, select
from tests.building import build, memory_for
from tests.exact.test_search import outputs

BLANK, BOS, EOS = 0, 2, 3
WEIGHT = 0.7

LANGUAGE_MODELS = {"recurrent": Recurrent, "transformer": Transformer}
language_models = pytest.mark.parametrize("kind", LANGUAGE_MODELS)


def sharp(part, scale=3.0, **settings):
    made = build(part, vocabulary=6, bos=BOS, eos=EOS, **settings)
    for parameter in made.parameters():
        parameter.data *= scale
    return made


def fused(decoder, kind, weight=WEIGHT):
    made = ShallowFusion(decoder=decoder, language_model=sharp(LANGUAGE_MODELS[kind], memory_size=0), weight=weight)
    made.checked_memory_size = decoder.checked_memory_size
    return made


def fused_score(decoder, tokens, memory):
    """log p(y | x) + weight * log p_LM(y), from two separate passes."""
    inputs = Padded.stack([torch.tensor([decoder.bos, *tokens])])
    targets = Padded.stack([torch.tensor([*tokens, decoder.eos])])
    model = decoder.language_model
    ours = decoder.decoder.log_prob(memory, inputs, targets)
    return float(ours + WEIGHT * model.log_prob(model.prepare(Memory.empty(1)), inputs, targets))


@language_models
@pytest.mark.parametrize("part", [Recurrent, Transformer])
@torch.no_grad()
def test_wide_fused_beam_equals_exhaustive_search(part, kind):
    limit, settings = 4, {"attention": Dot} if part is Recurrent else {}
    inner = build(part, vocabulary=4, bos=0, eos=1, **settings)
    inner.limit = lambda memory: torch.full((memory.rows,), limit)
    model = build(LANGUAGE_MODELS[kind], vocabulary=4, bos=0, eos=1, memory_size=0)
    for parameter in (*inner.parameters(), *model.parameters()):
        parameter.data *= 3
    decoder = ShallowFusion(decoder=inner, language_model=model, weight=WEIGHT)
    decoder.checked_memory_size = inner.checked_memory_size
    memory = memory_for(decoder, (4, 2, 3))
    found = BeamSearch(beam_size=40, n_best=40, length_penalty=0.0)(decoder, memory)
    for row, hypotheses in enumerate(found):
        ours = memory.select(torch.tensor([row]))
        expected = sorted(((fused_score(decoder, each, ours), each) for each in outputs()), reverse=True)
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in expected]
        assert [one.score for one in hypotheses] == pytest.approx([total for total, _ in expected], abs=1e-9)


@language_models
@pytest.mark.parametrize("part", [Transducer, CTC])
@torch.no_grad()
def test_fused_score_of_an_output_sums_its_alignments_and_adds_the_language_model(part, kind):
    """The beam holds every prefix of at most three tokens at every frame, so no alignment is lost."""
    decoder = fused(sharp(part, 1.0), kind)
    memory = memory_for(decoder, (3, 2))
    search = PrefixBeam(beam_size=200, n_best=200, symbols_per_state=3, maximum_length=4)
    found, plain = search(decoder, memory), search(decoder.decoder, memory)
    for row, hypotheses in enumerate(found):
        ours = memory.select(torch.tensor([row]))
        expected = [fused_score(decoder, one.tokens, ours) for one in hypotheses]
        assert len(expected) == len(plain[row]) >= 10
        assert [one.score for one in hypotheses] == pytest.approx(expected, abs=1e-9)
        assert expected == pytest.approx(sorted(expected, reverse=True), abs=1e-9)
        assert [one.tokens for one in hypotheses] != [one.tokens for one in plain[row]]
        for one, worth in list(zip(hypotheses, expected))[:5]:
            framed = [Padded.stack([torch.tensor(each)]) for each in ([BOS, *one.tokens], [*one.tokens, EOS])]
            assert float(decoder.log_prob(ours, *framed)) == pytest.approx(worth, abs=1e-9)


@language_models
@pytest.mark.parametrize("part", [Recurrent, Transformer, Transducer, CTC])
@torch.no_grad()
def test_weight_zero_equals_the_decoder_alone(part, kind):
    decoder = fused(sharp(part), kind, weight=0.0)
    memory = memory_for(decoder, (4, 2, 3))
    search = PrefixBeam(beam_size=3, n_best=3) if decoder.blanks else BeamSearch(beam_size=3, n_best=3)
    ours, theirs = search(decoder, memory), search(decoder.decoder, memory)
    assert [[one.tokens for one in each] for each in ours] == [[one.tokens for one in each] for each in theirs]
    for one, other in zip(ours, theirs):
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-12)


@language_models
@torch.no_grad()
def test_teacher_forcing_equals_stepping(kind):
    decoder = fused(sharp(Recurrent, attention=Dot), kind)
    memory = memory_for(decoder, (4, 2, 3))
    inputs = Padded(torch.tensor([[BOS, 4, 5, 5], [BOS, 5, 0, 0], [BOS, 4, 4, 0]]), torch.tensor([4, 2, 3]))
    output, state = decoder(memory, inputs, attention=True), decoder.start(memory)
    assert output.attention["source"].shape[-2:] == (4, 4)
    for place in range(4):
        scores, state = decoder.step(inputs.values[:, place], state, memory)
        real = inputs.lengths > place
        torch.testing.assert_close(output.scores[real, place], scores[real])
    token = torch.tensor([4, 5, 5])
    following = decoder.step(token, output.state, memory)[0]
    torch.testing.assert_close(following[0], decoder.step(token, state, memory)[0][0])


@language_models
@torch.no_grad()
def test_prefix_conditions_decoder_and_language_model(kind):
    decoder = fused(sharp(Recurrent), kind)
    memory = memory_for(decoder, (4, 2))
    prefix = Padded(torch.tensor([[4, 5], [5, 0]]), torch.tensor([2, 1]))
    for row, (one,) in enumerate(BeamSearch(beam_size=3, length_penalty=0.0)(decoder, memory, prefix)):
        begun = prefix.values[row, : prefix.lengths[row]].tolist()
        assert one.tokens[: len(begun)] == begun
        ours = memory.select(torch.tensor([row]))
        whole = Padded.stack([torch.tensor([BOS, *one.tokens])])
        scores = decoder(ours, whole).scores[0]
        log_probs = [float(scores[place, token]) for place, token in enumerate([*one.tokens, EOS])]
        assert one.score == pytest.approx(sum(log_probs[len(begun) :]), abs=1e-9)


@language_models
@torch.no_grad()
def test_language_model_does_not_read_blanks(kind):
    decoder = fused(sharp(Transducer), kind)
    memory = memory_for(decoder, (5, 5))
    state = decoder.start(memory)
    log_probs = []
    for token in ([BOS, BOS], [BLANK, 4], [BLANK, BLANK], [4, 5], [5, BLANK]):
        scores, state = decoder.step(torch.tensor(token), state, memory)
        inner, _ = decoder.decoder.step(torch.tensor(token), decoder.decoder.start(memory), memory)
        assert torch.equal(scores.isinf(), inner.isinf())
        log_probs.append(state["language_model"]["log_probs"])
    torch.testing.assert_close(log_probs[-1][0], log_probs[-1][1])  # both have written 4 5, at different frames
    torch.testing.assert_close(log_probs[0][0], log_probs[1][0])
    model, tokens = decoder.language_model, Padded.stack([torch.tensor([BOS, 4, 5])])
    expected = model(model.prepare(Memory.empty(1)), tokens).scores.log_softmax(-1)
    torch.testing.assert_close(log_probs[-1][0], expected[0, -1])


@torch.no_grad()
def test_language_model_of_running_text_starts_with_its_own_token():
    inner, model = sharp(Recurrent), sharp(Recurrent, memory_size=0)
    model.bos, model.eos = EOS, None
    decoder = ShallowFusion(decoder=inner, language_model=model, weight=WEIGHT)
    decoder.checked_memory_size = inner.checked_memory_size
    memory = memory_for(decoder, (3,))
    scores, _ = decoder.step(torch.tensor([BOS]), decoder.start(memory), memory)
    empty = model.prepare(Memory.empty(1))
    theirs, _ = model.step(torch.tensor([EOS]), model.start(empty), empty)
    ours, _ = inner.step(torch.tensor([BOS]), inner.start(memory), memory)
    torch.testing.assert_close(scores, ours.log_softmax(-1) + WEIGHT * theirs.log_softmax(-1))
    again = decoder(memory, Padded(torch.tensor([[BOS]]), torch.tensor([1]))).scores[:, 0]
    torch.testing.assert_close(again, scores)


@torch.no_grad()
def test_vocabularies_in_a_different_order_are_mapped():
    inner, model = sharp(Recurrent, attention=Dot), sharp(Recurrent, memory_size=0)
    order = [0, 1, 2, 3, 5, 4]
    other = sharp(Recurrent, memory_size=0)
    other.load_state_dict(model.state_dict())
    other.embedding.weight.data = model.embedding.weight.data[order]
    for parameter in other.output.parameters():
        parameter.data = parameter.data[order]
    plain = ShallowFusion(decoder=inner, language_model=model, weight=WEIGHT)
    turned = ShallowFusion(decoder=inner, language_model=other, weight=WEIGHT, tokens=order)
    plain.checked_memory_size = turned.checked_memory_size = 8
    memory, search = memory_for(plain, (4, 2, 3)), BeamSearch(beam_size=4, n_best=4)
    for ours, theirs in zip(search(plain, memory), search(turned, memory)):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-9)
    inputs = Padded(torch.tensor([[BOS, 4, 5]] * 3), torch.tensor([3, 3, 3]))
    torch.testing.assert_close(plain(memory, inputs).scores, turned(memory, inputs).scores)


def test_token_mapping_between_codecs():
    def codec(text, **settings):
        return Text(**{"units": "char", **settings}).fit([text])

    one, more = codec("aab"), codec("bbbaac")
    assert same_tokens(one, more) == [0, 1, 2, 3, *more.encode(one.decode([4, 5])).tolist()]
    assert same_tokens(one, more) != [0, 1, 2, 3, 4, 5]
    assert same_tokens(more, one) is None  # it has no c
    assert same_tokens(one, codec("aab", lowercase=True)) is None
    assert same_tokens(codec("aab", units="bpe"), codec("bbbaac", units="bpe")) is None
    assert same_tokens(codec("a b b", units="word"), codec("a a b", units="word")) == [0, 1, 2, 3, 5, 4]


@torch.no_grad()
def test_rows_can_be_selected_and_ensembles_can_be_fused():
    members = Ensemble(members=[sharp(Recurrent), sharp(Transformer, 2.0)])
    members.checked_memory_size = 8
    decoder = fused(members, "transformer")
    memory = memory_for(decoder, (4, 2, 3))
    assert all(BeamSearch(beam_size=3)(decoder, memory))
    assert all(Sampling(seed=1)(decoder, memory))
    state, token = decoder.start_rows(memory, 6), torch.tensor([BOS] * 6)
    _, state = decoder.step(token, state, memory)
    token = torch.tensor([4, 5, 4, 5, 4, 5])
    rows = torch.tensor([1, 0, 3, 2, 5, 4])
    scores, _ = decoder.step(token, state, memory)
    swapped, _ = decoder.step(token[rows], select(state, rows), memory)
    torch.testing.assert_close(swapped, scores[rows])


def test_fusion_refuses_what_cannot_be_fused():
    recurrent, transducer = sharp(Recurrent), sharp(Transducer)
    with pytest.raises(SeqloomError, match="lm_weight = -1"):
        ShallowFusion(decoder=recurrent, language_model=sharp(Recurrent, memory_size=0), weight=-1)
    with pytest.raises(SeqloomError, match="a decoder with blanks is no language model"):
        ShallowFusion(decoder=recurrent, language_model=transducer, weight=1)
    other = build(Recurrent, vocabulary=7, bos=BOS, eos=EOS, memory_size=0)
    decoder = ShallowFusion(decoder=recurrent, language_model=other, weight=1)
    decoder.checked_memory_size = 8
    memory = memory_for(decoder, (3,))
    with pytest.raises(SeqloomError, match="6 and 7 tokens"):
        decoder.step(torch.tensor([BOS]), decoder.start(memory), memory)


# -- rescoring


def predictions(*scored):
    return [Prediction(text, score, list(text), []) for text, score in scored]


def language_model(running=False):
    """Each letter a of a text costs one nat."""
    asked = []

    def score(texts):
        asked.append(list(texts))
        return [-float(text.count("a")) - (len(texts) - 1 if running else 0) for text in texts]

    return SimpleNamespace(task=SimpleNamespace(source=None, running=running), score=score, asked=asked, path=None)


@pytest.fixture(autouse=True)
def stand_in_scores(monkeypatch):
    """Models of these tests bring their own scoring function."""
    monkeypatch.setattr(rescoring, "score", lambda system, pairs: system.score(pairs))


def test_rescoring_ranks_by_both_scores():
    answers = [predictions(("aa", -1.0), ("b", -2.0), ("ab", -2.2)), predictions(("aa", -3.0)), []]
    model = language_model()
    found = rerank(answers, model, 0.5)
    assert [[(one.text, one.score) for one in each] for each in found] == [
        [("aa", -2.0), ("b", -2.0), ("ab", -2.7)],
        [("aa", -4.0)],
        [],
    ]
    assert [one.text for one in rerank(answers, model, 0.6)[0]] == ["b", "aa", "ab"]
    assert rerank(answers, model, 0.0)[0] == answers[0]
    assert model.asked[0] == ["aa", "b", "ab"]  # each text once


def test_running_text_model_scores_each_line_separately():
    (found,) = rerank([predictions(("aa", -1.0), ("b", -2.0))], language_model(running=True), 1.0)
    assert [(one.text, one.score) for one in found] == [("b", -2.0), ("aa", -3.0)]


def test_reverse_model_scores_the_source_given_the_output():
    asked = []

    def score(pairs):
        asked.extend(pairs)
        return [-float(len(source) * len(text)) for text, source in pairs]

    channel = SimpleNamespace(task=SimpleNamespace(source=SimpleNamespace(encode=list)), score=score)
    answers = [predictions(("aa", -1.0), ("", -1.5), ("b", -2.0)), predictions(("aa", -3.0))]
    found = rerank(answers, channel, 0.5, sources=["xyz", "x"])
    assert [[(one.text, one.score) for one in each] for each in found] == [
        [("b", -3.5), ("aa", -4.0), ("", -1.5 + 0.5 * UNEXPLAINED)],
        [("aa", -4.0)],
    ]
    assert asked == [("aa", "xyz"), ("b", "xyz"), ("aa", "x")]  # no channel is asked for the empty output


def test_rescoring_refuses_a_weight_that_is_not_a_number():
    with pytest.raises(SeqloomError, match="rescore_weight = nan"):
        rerank([], language_model(), float("nan"))
