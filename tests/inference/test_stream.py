"""A stream ends with the output of `predict`, however its source was cut, and does not grow."""

import io
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.cli.stream import lines, stream_input
from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.errors import SeqloomError
from seqloom.inference.system import System
from seqloom.predictor import Predictor

ALPHABET = "abcdef"
ONLINE = {"search.type": "prefix_beam"}
DECODERS = {
    "transducer": {"type": "transducer", "embedding_size": 8, "size": 8},
    "transducer, mlp": {"type": "transducer", "embedding_size": 8, "size": 8, "joint": "mlp", "hidden": 8},
    "ctc": {"type": "ctc"},
    "ssnt": {"type": "ssnt", "embedding_size": 8, "size": 8, "hidden": 8},
    "neural transducer": {"type": "neural_transducer", "block": 3, "embedding_size": 8, "size": 8},
    "emission": {"type": "emission", "embedding_size": 8, "size": 8},
    "monotonic": {
        "type": "recurrent",
        "embedding_size": 8,
        "size": 8,
        "attention": {"type": "monotonic", "size": 8, "bias": 0.0},
        "bridge": "zero",
    },
    "wait": {"type": "recurrent", "embedding_size": 8, "size": 8, "attention": {"type": "additive", "size": 8}},
}
ENCODERS = {
    "recurrent": {"type": "recurrent", "embedding_size": 8, "size": 8},
    "chunked": {"type": "chunked", "size": 8, "layers": 2, "heads": 2, "hidden": 16, "chunk": 3, "dropout": 0.0},
    "pyramidal": {"type": "pyramidal", "embedding_size": 8, "size": 8, "layers": 2, "bidirectional": False},
}


def predictor(decoder: str, encoder: str = "recurrent", seed: int = 1, **task: bool) -> Predictor:
    """A model that was never trained: it only has to be the same in pieces."""
    online = DECODERS[decoder]["type"] != "recurrent"
    recipe = {
        "task": {"source": {"type": "text", "units": "char"}, "target": {"type": "text", "units": "char"}, **task},
        "encoder": ENCODERS[encoder],
        "decoder": DECODERS[decoder],
        "search": {"type": "prefix_beam" if online else "beam", "beam_size": 2},
        "objective": {"type": "marginal"},
        "train": {},
    }
    full = complete(recipe, "test")
    task = build_task(full)
    task.target.fit([ALPHABET[:3]])
    task.source.fit([ALPHABET])
    torch.manual_seed(seed)
    model = build_model(full, task.source, task.target)
    for parameter in model.parameters():  # far from even, so that outputs are not empty
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    return Predictor(System(model, task, full))


def waiting(decoder: str) -> dict:
    return {"wait": 2} if decoder == "wait" else {}


CASES = [(decoder, "recurrent") for decoder in DECODERS] + [("transducer", encoder) for encoder in ENCODERS]


@pytest.mark.parametrize(("decoder", "encoder"), CASES)
def test_a_stream_ends_as_the_whole_does_and_what_was_final_stays(decoder, encoder):
    model = predictor(decoder, encoder)

    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.text(ALPHABET, max_size=4), min_size=1, max_size=6).filter(any), st.integers(1, 3))
    def check(chunks, width):
        (whole,) = model.candidates(["".join(chunks)], beam_size=width, **waiting(decoder))
        stream = model.stream(beam_size=width, **waiting(decoder))
        final = ""
        for chunk in chunks:
            now = stream.feed(chunk)
            assert now.final.startswith(final)
            final = now.final
            assert len(now.times) == len(final)
        end = stream.close()
        assert end.final.startswith(final)
        assert (end.final, end.provisional) == (whole[0].text, "")
        if width == 1:
            assert end.times == pytest.approx(whole[0].times)
        else:  # a token keeps the time it had when it became certain, where it might have got a later one
            assert all(ours <= theirs for ours, theirs in zip(end.times, whole[0].times, strict=True))
        assert stream.close() == end

    check()


def test_a_stream_obeys_the_constraints_of_its_task_as_predict_does():
    """A bag is known when its source is: until then nothing is certain."""
    model = predictor("wait", joint=True, bag=True)
    free = predictor("wait", joint=True)
    for source in ("abcab", "ffa", "d"):
        stream = model.stream(wait=2)
        assert {stream.feed(letter).final for letter in source} == {""}
        found = stream.close().final
        assert sorted(found) == sorted(source)
        assert [found] == model.predict([source], wait=2)
    assert sorted(free.predict(["ffa"], wait=2)[0]) != sorted("ffa")


@pytest.mark.parametrize("decoder", ["transducer", "ctc", "neural transducer", "emission"])
def test_a_long_stream_keeps_no_more_than_a_short_one(decoder):
    model = predictor(decoder)
    chance = np.random.default_rng(1)
    stream, sizes = model.stream(beam_size=2), []
    for _ in range(40):
        stream.feed("".join(chance.choice(list(ALPHABET), 25)))
        sizes.append(stream.memory.states.shape[1])
    assert max(sizes) <= 64 + 25 + 10
    assert stream.inputs == 1000


def test_a_stream_says_what_it_cannot_do():
    model = predictor("transducer")
    stream = model.stream()
    with pytest.raises(SeqloomError, match="before there was anything to read"):
        stream.close()
    stream = model.stream()
    stream.feed("abc")
    stream.close()
    with pytest.raises(SeqloomError, match="this stream is closed"):
        stream.feed("a")
    with pytest.raises(SeqloomError, match="reads its whole source before it writes"):
        predictor("wait").stream()
    with pytest.raises(SeqloomError, match="decides itself when to write"):
        model.stream(wait=2)
    with model.stream() as empty:
        pass
    assert not empty.closed


def test_lines_come_in_pieces_and_each_is_a_source_of_its_own(monkeypatch):
    given = [b"ab", b"c\nd", "é".encode()[:1], "é".encode()[1:], b"\n\nlast", b""]
    monkeypatch.setattr("os.read", lambda descriptor, size: given.pop(0) if given else b"")
    assert [list(line) for line in lines(0)] == [["ab", "c"], ["d", "é"], [], ["last"]]


def test_a_text_is_written_as_it_is_read_a_line_a_line(monkeypatch, capsys):
    model = predictor("transducer")
    sources = ["abcab", "", "ffeedc"]
    text = "\n".join(sources).encode() + b"\n"
    given = [text[start : start + 3] for start in range(0, len(text), 3)]
    monkeypatch.setattr("os.read", lambda descriptor, size: given.pop(0) if given else b"")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys.stdin, "fileno", lambda: 0, raising=False)
    told = []
    stream_input(model.stream, None, as_json=False, timing=told.append)
    answers = dict(zip(["abcab", "ffeedc"], model.predict(["abcab", "ffeedc"])))
    assert capsys.readouterr().out == "".join(answers.get(source, "") + "\n" for source in sources)
    assert len(told) == 2
    assert all("ms per input" in line for line in told)


def test_a_language_model_counts_in_a_stream_as_it_does_in_a_prediction():
    model, recipe = predictor("transducer", seed=2), {"task": {"target": {"type": "text", "units": "char"}}}
    recipe |= {"decoder": {"type": "recurrent", "embedding_size": 8, "size": 8}, "search": {"type": "sample"}}
    full = complete(recipe, "test")
    torch.manual_seed(3)
    lm = Predictor(System(build_model(full, None, model.task.target), build_task(full), full))
    lm.task.target.fit([ALPHABET[:3]])
    for parameter in lm.model.parameters():
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    changed = 0
    for source in ("abcab", "ffeedc", "dabbac", "aabbccddeeff", "fedcba", "cafe"):
        with model.stream(lm=lm, lm_weight=0.5, beam_size=2) as stream:
            stream.feed(source)
        assert [stream.close().final] == model.predict([source], lm=lm, lm_weight=0.5, beam_size=2)
        changed += stream.close().final != model.predict([source], beam_size=2)[0]
    assert changed
