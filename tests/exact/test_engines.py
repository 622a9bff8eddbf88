"""Exported models against their originals: the same outputs, scores and log-probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from seqloom.data.special_tokens import BOS, EOS, UNK
from seqloom.engines import export_ctranslate2, export_onnx
from seqloom.engines.ctranslate2 import CTranslate2
from seqloom.engines.engine import Engine
from seqloom.engines.onnx import Onnx, OnnxDecoder
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.monotonic import Monotonic
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.attention.projected import Projected
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.cells.mut import MUT
from seqloom.nn.decoders.copy import Copy
from seqloom.nn.decoders.deep_att import DeepAtt
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.transformer import Transformer as TransformerDecoder
from seqloom.nn.encoders.deep_att import DeepAtt as DeepAttEncoder
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.model import Model
from seqloom.nn.teacher_forcing import teacher_force
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.required import Required
from seqloom.search.options import SearchOptions
from seqloom.search.sample import Sampling
from seqloom.types import Hypothesis, Memory, Padded

VOCABULARY = 23
LENGTHS = (1, 5, 9, 3, 3, 7)
SPECIAL = {"vocabulary": VOCABULARY, "bos": BOS, "eos": EOS}
ENDS = {"eos": EOS, "length_ratio": 1.0, "length_offset": 8}


def alone(sources: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Each source as a list of one, as engines expect it."""
    return [[source] for source in sources]


def decisive(model: Model) -> Model:
    """Random weights, large enough that outputs differ and scores do not tie; in float32, as engines are."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * (0.5 if parameter.dim() > 1 else 0.2))
            if parameter.dim() == 1 and len(parameter) > 1:  # gains of normalisation are around 1
                parameter += 1
    model.decoder.length_ratio, model.decoder.length_offset = 1.0, 8
    return model.float().eval()


def sources(features: int | None = None, seed: int = 1) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    if features:
        return [generator.normal(size=(length, features)).astype(np.float32) for length in LENGTHS]
    return [generator.integers(4, VOCABULARY, length) for length in LENGTHS]


@torch.no_grad()
def native(
    model: Model, given: Sequence[np.ndarray], search: Any, prefix: Any = None, constraints: Any = ()
) -> list[list[Hypothesis]]:
    memory = model.encode(Padded.stack(given).to("cpu"))
    begun = None if prefix is None else Padded.stack([np.array(prefix)] * len(given)).to("cpu")
    return search(model.decoder, memory, begun, constraints)


def best(found: list[list[Hypothesis]]) -> list[list[int]]:
    return [hypotheses[0].tokens for hypotheses in found]


def assert_equal(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """The same outputs with the same scores.

    Engines and processors round differently, so a near-tie may end otherwise for one of many sources.
    """
    assert len(found) == len(expected)
    assert sum(differ(*each) for each in zip(found, expected)) <= len(found) // 4


def differ(ours: list[Hypothesis], theirs: list[Hypothesis]) -> bool:
    """Whether scores differ, or the outputs of scores that do not tie."""
    scores = np.array([one.score for one in theirs])
    if len(ours) != len(theirs) or not np.allclose([one.score for one in ours], scores, atol=1e-4):
        return True
    alone = [number for number, score in enumerate(scores) if (abs(scores - score) < 1e-4).sum() == 1]
    return any(
        ours[number].tokens != theirs[number].tokens
        or not np.allclose(ours[number].log_probs, theirs[number].log_probs, atol=1e-4)
        for number in alone
    )


# -- CTranslate2

TRANSFORMERS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": {"norm": "post"},
    "learned": {"positions": "learned", "longest": 9},
    "untied": {"tied": False, "share": False},
    "post untied learned": {"norm": "post", "positions": "learned", "longest": 9, "tied": False, "share": False},
    "unlike sides": {"share": False, "sides": {"size": 24, "heads": 3, "layers": 1, "norm": "post"}},
}


def transformer(tied: bool = True, share: bool = True, sides: dict[str, Any] | None = None, **settings: Any) -> Model:
    sizes = {"size": 16, "layers": 2, "heads": 2, "hidden": 24, **settings}
    encoder = TransformerEncoder(vocabulary=VOCABULARY, **(sizes | (sides or {})))
    decoder = TransformerDecoder(**SPECIAL, memory_size=encoder.output_size, tied=tied, **sizes)
    return decisive(Model(encoder, decoder, share_embeddings=share))


def to_ctranslate2(model: Model, folder: Path, int8: bool = False) -> CTranslate2:
    return CTranslate2.load(folder, {**export_ctranslate2.export(model, folder, int8), **ENDS}, 1)


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Model, CTranslate2]]:
    found = {}
    for name, settings in TRANSFORMERS.items():
        model = transformer(**settings)
        found[name] = model, to_ctranslate2(model, tmp_path_factory.mktemp("ctranslate2"))
    return found


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("search", [BeamSearch(beam_size=1), BeamSearch(beam_size=1, length_penalty=0.5)])
def test_ctranslate2_greedy_search_equals_the_models(translators, name, search):
    model, engine = translators[name]
    assert_equal(engine.find(alone(sources()), search), native(model, sources(), search))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_ctranslate2_beam_finds_nothing_worse_than_the_model(translators, name):
    """Its beam stays wide when hypotheses finish: it may find a better output."""
    model, engine = translators[name]
    search = BeamSearch(beam_size=5)
    expected, found = native(model, sources(), search), engine.find(alone(sources()), search)
    same = [ours == theirs for ours, theirs in zip(best(found), best(expected))]
    assert sum(same) >= len(same) - 1
    for ours, theirs, equal in zip(found, expected, same):
        assert ours[0].score >= theirs[0].score - 1e-4
        assert not equal or ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)
        assert ours[0].score == pytest.approx(sum(ours[0].log_probs) / len(ours[0].log_probs), abs=1e-4)


def test_ctranslate2_returns_n_best_outputs_in_order(translators):
    _, engine = translators["pre"]
    for each in engine.find(alone(sources()), BeamSearch(beam_size=4, n_best=3)):
        assert len(each) == 3
        assert [one.score for one in each] == sorted((one.score for one in each), reverse=True)
        assert len({tuple(one.tokens) for one in each}) == 3


@pytest.mark.parametrize("maximum", [1, 2, 5, 12])
def test_ctranslate2_keeps_the_length_limit_of_the_model(translators, maximum):
    """Each source has its own limit, where only EOS may follow; EOS counts in the score."""
    model, engine = translators["pre"]
    search = BeamSearch(beam_size=1, maximum_length=maximum)
    assert_equal(engine.find(alone(sources()), search), native(model, sources(), search))
    assert max(map(len, best(engine.find(alone(sources()), search)))) < maximum


@pytest.mark.parametrize("beam_size", [1, 4])
def test_ctranslate2_starts_with_the_prefix(translators, beam_size):
    model, engine = translators["post"]
    search, prefix = BeamSearch(beam_size=beam_size), [7, 8, 9]
    expected, found = native(model, sources(), search, prefix), engine.find(alone(sources()), search, np.array(prefix))
    assert best(found) == best(expected)
    assert all(each[:3] == prefix for each in best(found))
    for ours, theirs in zip(found, expected):
        assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)
        assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-4)


@pytest.mark.parametrize("settings", [{"no_repeat": 2}, {"minimum_length": 8}, {"no_repeat": 1, "minimum_length": 4}])
def test_ctranslate2_obeys_constraints(translators, settings):
    model, engine = translators["untied"]
    free = best(native(model, sources(), BeamSearch(beam_size=1)))
    banned = [Banned([[free[1][0]], free[2][:2]])]
    search = BeamSearch(beam_size=1, **settings)
    found = engine.find(alone(sources()), search, constraints=banned)
    expected = native(model, sources(), search, constraints=banned)
    assert best(found) == best(expected) != free
    for ours, theirs in zip(found, expected):
        assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)
    for each in best(engine.find(alone(sources()), BeamSearch(beam_size=4, **settings), constraints=banned)):
        assert free[1][0] not in each
        assert len(each) >= settings.get("minimum_length", 0)


def test_ctranslate2_samples_from_the_models_distribution(translators):
    """The first token of a thousand samples: relative frequencies against probabilities, within five deviations."""
    model, engine = translators["pre"]
    source, count = [sources()[1]], 1000
    search = Sampling(n_best=count, temperature=2.0, top_k=5, maximum_length=2)
    (found,) = engine.find(alone(source), search)
    with torch.no_grad():
        memory = model.encode(Padded.stack(source).to("cpu"))
        logits = model.decoder.step(torch.tensor([BOS]), model.decoder.start(memory), memory)[0]
    expected = search.probabilities(torch.log_softmax(logits, -1))[0]
    counts = Counter(each.tokens[0] if each.tokens else EOS for each in found)
    assert set(counts) <= set(expected.nonzero()[:, 0].tolist())
    for token, times in counts.items():
        probability = float(expected[token])
        assert abs(times / count - probability) < 5 * (probability * (1 - probability) / count) ** 0.5 + 1e-3
    for each in found[:20]:
        assert each.score == pytest.approx(sum(each.log_probs), abs=1e-4)


def test_ctranslate2_returns_attention(translators):
    _, engine = translators["pre"]
    for source, (one,) in zip(sources(), engine.find(alone(sources()), BeamSearch(beam_size=1), attention=True)):
        assert np.array(one.attention).shape == (min(len(one.tokens) + 1, len(one.attention or ())), len(source))
        assert np.array(one.attention).sum(1) == pytest.approx(np.ones(len(one.attention or ())), abs=1e-4)


@pytest.mark.parametrize(
    ("search", "constraints", "what"),
    [
        (BeamSearch(normalisation="gnmt"), (), 'normalisation = "gnmt"'),
        (BeamSearch(coverage_penalty=0.2), (), "coverage_penalty = 0.2"),
        (Sampling(argmax_every=2), (), "argmax_every = 2"),
        (Sampling(seed=1), (), "seed = 1"),
        (Sampling(top_p=0.5, temperature=0.5), (), "top_p and temperature together"),
        (BeamSearch(), (Required([[[5]]], EOS),), "the constraint Required"),
    ],
)
def test_ctranslate2_refuses_unsupported_settings(translators, search, constraints, what):
    with pytest.raises(SeqloomError, match="use the run") as refusal:
        translators["pre"][1].find(alone(sources()), search, constraints=constraints)
    assert what in str(refusal.value)


def test_ctranslate2_refuses_a_source_longer_than_its_positions(translators):
    with pytest.raises(SeqloomError, match="a source of 5,000 tokens"):
        translators["pre"][1].find([[np.full(5000, 5)]], BeamSearch())


@torch.no_grad()
def test_int8_gives_its_outputs_the_probabilities_of_the_model_and_weights_are_a_quarter_as_large(tmp_path):
    """Whatever it writes, which need not be what the model would write, it scores as the model does."""
    model = transformer(size=64, hidden=256)
    (tmp_path / "full").mkdir()
    (tmp_path / "eight").mkdir()
    full, eight = to_ctranslate2(model, tmp_path / "full"), to_ctranslate2(model, tmp_path / "eight", int8=True)
    search = BeamSearch(beam_size=1)
    assert largest_error(full.find(alone(sources()), search), model) < 1e-4
    assert 1e-4 < largest_error(eight.find(alone(sources()), search), model) < 0.4
    weights = [export_size(tmp_path / name) for name in ("eight", "full")]
    assert weights[0] < 0.3 * weights[1]


@pytest.mark.parametrize("int8", [False, True])
def test_an_export_to_ctranslate2_leaves_the_model_as_it_is(tmp_path, int8):
    """It is measured beside its export."""
    model = transformer()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    export_ctranslate2.export(model, tmp_path, int8)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def largest_error(found: list[list[Hypothesis]], model: Model) -> float:
    """How far the log-probability of any token is from that of the model, which is forced to write the same."""
    memory = model.encode(Padded.stack(sources()).to("cpu"))
    errors = []
    for entry, hypotheses in enumerate(found):
        for one, forced in zip(hypotheses, teacher_force(model.decoder, memory, entry, hypotheses)):
            tokens = [*one.tokens, EOS]
            expected = forced.log_probs[range(len(tokens)), tokens]
            errors.append(np.abs(np.array(one.log_probs) - expected.numpy()).max())
    assert len(errors) == len(LENGTHS)
    return float(max(errors))


def export_size(folder: Path) -> int:
    """The model without its table of positions, which stays in float32."""
    return (folder / "model.bin").stat().st_size - export_ctranslate2.LONGEST * 64 * 4


# -- ONNX Runtime

ENCODER = {"embedding_size": 6, "size": 8}
DECODER = {**SPECIAL, **ENCODER}
# Every cell, attention, order and combination at least once. Tracing takes seconds per model: keep them few and small.
RECURRENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no attention": (
        {"features": 3, "cell": GRU},
        {"cell": partial(LSTM, without="forget"), "feed_context": True, "memory_size": 8},
    ),
    "luong, context as state": (
        {},
        {"attention": partial(Additive, size=5), "combine": "state", "input_feeding": True, "memory_size": 8},
    ),
    "bahdanau, monotonic": (
        {"cell": Elman},
        {
            "cell": partial(GRU, reset="before"),
            "attention": partial(Monotonic, size=5, bias=1.0),
            "order": "bahdanau",
            "combine": "add",
            "deep_output": True,
            "memory_size": 8,
        },
    ),
    "luong, further step": (
        {"cell": MUT, "reverse": True},
        {"cell": partial(MUT, variant=2), "attention": Bilinear, "combine": "rnn", "memory_size": 8},
    ),
    "gnmt": (
        {"bidirectional": "bottom", "layers": 2, "residual": True},
        {"attention": partial(Projected, size=4, layers=2, activation="tanh"), "layers": 2, "memory_size": 8},
    ),
    "deep_att": ({"layers": 3, "interface_size": 8}, {"layers": 3, "memory_size": 8}),
    "pointer": ({"features": 3}, {"attention": Dot, "glimpses": 1, "source_features": 3, "memory_size": 8}),
    "copy": (  # source tokens from 18 on are unknown
        {},
        {
            "attention": partial(Additive, size=5, coverage=True),
            "source_vocabulary": 18,
            "written": [*range(16), UNK, UNK],
            "unk": UNK,
            "memory_size": 8,
        },
    ),
}


def copier(embedding_size: int, size: int, **settings: Any) -> Copy:
    return Copy(decoder=partial(RecurrentDecoder, embedding_size=embedding_size, size=size), **settings)


PARTS: dict[str, Any] = {"gnmt": GNMT, "deep_att": DeepAtt, "pointer": Pointer, "copy": copier}
READERS: dict[str, Any] = {"deep_att": DeepAttEncoder}


def recurrent(name: str) -> Model:
    reading, writing = RECURRENT[name]
    given = {} if "features" in reading else {"vocabulary": VOCABULARY}
    reader, part = READERS.get(name, RecurrentEncoder), PARTS.get(name, RecurrentDecoder)
    return decisive(Model(reader(**given, **ENCODER, **reading), part(**DECODER, **writing)))


@pytest.fixture(scope="module", params=RECURRENT)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model, its exported engine, and sources for both."""
    folder, model = tmp_path_factory.mktemp("onnx"), recurrent(request.param)
    engine: Engine = Onnx.load(folder, {**export_onnx.export(model, folder, False), **ENDS}, 1)
    given = sources(RECURRENT[request.param][0].get("features"))
    if "state" in request.param:  # with one position the context is the same at every step, and all outputs tie
        given = given[1:]
    return model, engine, given


def test_onnx_equals_the_model(exported):
    """Step, searches with all their settings and attention; for any number of sources, rows and tokens."""
    model, engine, given = exported
    with torch.no_grad():
        memory, theirs = model.encode(Padded.stack(given).to("cpu")), engine.encode(Padded.stack(given))
        tokens = torch.arange(4, 4 + 2 * len(given)) % VOCABULARY  # two rows per source
        logits, state = model.decoder.step(tokens, model.decoder.start_rows(memory, len(tokens)), memory)
        found, after = engine.decoder.step(tokens.numpy(), engine.decoder.start_rows(theirs, len(tokens)), theirs)
        again, _ = engine.decoder.step(tokens.numpy(), after, theirs)
        np.testing.assert_allclose(found, logits, atol=1e-4)
        np.testing.assert_allclose(again, model.decoder.step(tokens, state, memory)[0], atol=1e-4)
    for search in (
        BeamSearch(beam_size=1),
        BeamSearch(beam_size=4, n_best=4),
        BeamSearch(beam_size=3, n_best=2, normalisation="gnmt", length_penalty=0.6, no_repeat=2, minimum_length=3),
        Sampling(n_best=2, argmax_every=1, maximum_length=5),
    ):
        assert_equal(engine.find(alone(given), search), native(model, given, search))
        assert_equal(engine.find(alone(given[:1]), search), native(model, given[:1], search))
    constraints = [Banned([[UNK], [5, 6]]), Required([[[9, 10]], [[11], [12, 13]]], EOS)]
    search, prefix = BeamSearch(beam_size=3, n_best=3), [7, 8]
    assert_equal(
        engine.find(alone(given), search, np.array(prefix), constraints),
        native(model, given, search, prefix, constraints),
    )
    attended = engine.find(alone(given), search, attention=True)
    for entry, each in enumerate(attended):
        for one, reading in zip(each, teacher_force(model.decoder, memory, entry, each)):
            assert (one.attention is None) == (not reading.alignment)
            if one.attention is not None:
                np.testing.assert_allclose(one.attention, reading.alignment, atol=1e-4)
    if reading.alignment:
        search = BeamSearch(beam_size=3, coverage_penalty=0.3)
        assert_equal(engine.find(alone(given), search), native(model, given, search))


def test_onnx_refuses_models_without_a_step_of_fixed_size(tmp_path):
    memory = {"memory_size": 8}
    reading = RecurrentEncoder(vocabulary=VOCABULARY, **ENCODER)
    alone = Model(None, RecurrentDecoder(**DECODER, memory_size=0))
    with pytest.raises(SeqloomError, match="one model that reads a source"):
        export_onnx.export(alone, tmp_path, False)
    with pytest.raises(SeqloomError, match="use --to ctranslate2"):
        export_onnx.export(transformer(), tmp_path, False)
    with pytest.raises(SeqloomError, match="--int8 goes with --to ctranslate2"):
        export_onnx.export(Model(reading, RecurrentDecoder(**DECODER, **memory)), tmp_path, True)
    with pytest.raises(SeqloomError, match="multi-head"):
        export_onnx.export(Model(reading, RecurrentDecoder(**DECODER, attention=MultiHead, **memory)), tmp_path, False)


def test_ctranslate2_refuses_models_other_than_transformers(tmp_path):
    reading = RecurrentEncoder(vocabulary=VOCABULARY, **ENCODER)
    with pytest.raises(SeqloomError, match="takes a Transformer that reads tokens"):
        export_ctranslate2.export(Model(reading, RecurrentDecoder(**DECODER, memory_size=8)), tmp_path, False)


@pytest.mark.parametrize("ratio", [2.2, 1.1, 2.25, 2.429])
def test_every_engine_has_the_models_length_limits(ratio):
    model = transformer()
    model.decoder.length_ratio = ratio
    lengths = np.arange(1, 200)
    memory = Memory(torch.zeros(199, 0, 0), torch.from_numpy(lengths))
    ends = {**ENDS, "length_ratio": ratio}
    session = SimpleNamespace(get_inputs=list, get_outputs=list)
    onnx = OnnxDecoder(session, bos=BOS, **ends).limit(Memory(np.zeros((199, 0, 0)), lengths))
    ours = CTranslate2(None, longest=4096, **ends).limits(
        [np.zeros(length) for length in lengths], SearchOptions(0, None, 0), 0
    )
    assert model.decoder.limit(memory).tolist() == onnx.tolist() == ours
