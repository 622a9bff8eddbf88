"""What must not be done twice, or at all: work is counted, not timed."""

import pytest
import torch

from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.transformer import Transformer as Encoder
from seqloom.nn.layers import kv_cache as history
from seqloom.nn.layers.transformer import FeedForward
from seqloom.nn.model import Model
from seqloom.objectives import cross_entropy
from seqloom.search.beam import BeamSearch
from seqloom.types import Batch, Padded
from tests.building import BOS, VOCABULARY

EOS = 2
SOURCES, TARGETS = torch.tensor([3, 7, 5]), torch.tensor([6, 2, 4])


@pytest.fixture
def model():
    torch.manual_seed(1)
    shape = {"vocabulary": VOCABULARY, "size": 8, "heads": 2, "hidden": 16, "layers": 2, "dropout": 0.0}
    return Model(Encoder(**shape), Decoder(memory_size=8, bos=BOS, eos=EOS, **shape))


def padded(lengths):
    return Padded(torch.randint(4, VOCABULARY, (len(lengths), int(lengths.max()))), lengths)


class Counting:
    """How many rows come into each module of a kind, call by call."""

    def __init__(self, model, chosen):
        self.rows: dict[str, list[int]] = {}
        for name, module in model.named_modules():
            if chosen(name, module):
                module.register_forward_pre_hook(lambda _, given, name=name: self.note(name, given[0]))

    def note(self, name, values):
        self.rows.setdefault(name, []).append(values.numel() // values.shape[-1])


# -- training


def test_no_layer_works_on_padding(model):
    counting = Counting(model, lambda _, module: isinstance(module, FeedForward | torch.nn.LayerNorm))
    model(Batch(padded(SOURCES), padded(TARGETS), padded(TARGETS)))
    assert len(counting.rows) == 2 * (2 + 1) + 2 * (3 + 1) + 2  # norms and feed-forwards of all layers, two last norms
    for name, rows in counting.rows.items():
        assert rows == [int((SOURCES if name.startswith("encoder") else TARGETS).sum())]


def test_logits_of_a_batch_never_exist_all_at_once(model, monkeypatch):
    monkeypatch.setattr(cross_entropy, "ROWS", 5)
    seen, losses = [], cross_entropy.losses
    monkeypatch.setattr(
        cross_entropy, "losses", lambda scores, *rest: seen.append(len(scores)) or losses(scores, *rest)
    )
    batch = Batch(padded(SOURCES), padded(TARGETS), padded(TARGETS))
    cross_entropy.CrossEntropy()(model, batch, 0.0).total.backward()
    assert seen == [5, 5, 2]


# -- search


@torch.inference_mode()
def test_sources_are_read_once_whatever_the_beam_and_the_length(model):
    counting = Counting(model, lambda name, _: name.endswith(("encoder.norm", "cross_attention.key_value")))
    BeamSearch(beam_size=3, minimum_length=6)(model.eval().decoder, model.encode(padded(SOURCES)))
    assert len(counting.rows) == 3
    assert all(rows == [int(SOURCES.sum())] for rows in counting.rows.values())


@torch.inference_mode()
def test_a_step_a_symbol_for_rows_that_still_run(model):
    """All end at their limits: short sources leave the batch when they are done."""
    counting = Counting(model, lambda name, _: name == "decoder.layers.0.feed_forward")
    decoder = model.eval().decoder
    decoder.length_ratio, decoder.length_offset = 1.0, 0
    decoder.embedding.weight[EOS] = 0
    decoder.embedding.weight[EOS, 0] = -1e3
    decoder.norm.weight[0], decoder.norm.bias[0] = 0, 1  # EOS is as good as impossible
    found = BeamSearch(beam_size=2)(decoder, model.encode(padded(SOURCES)))
    assert [len(each[0].tokens) + 1 for each in found] == SOURCES.tolist()
    assert counting.rows["decoder.layers.0.feed_forward"] == [6, 6, 6, 4, 4, 2, 2]


@torch.inference_mode()
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_cache_of_a_long_output_is_seldom_copied(model, beam_size, monkeypatch):
    made = []

    class Noted(history.Buffer):
        def __init__(self, capacity, *rest):
            made.append(capacity)
            super().__init__(capacity, *rest)

    monkeypatch.setattr(history, "Buffer", Noted)
    length = 200
    search = BeamSearch(beam_size=beam_size, minimum_length=length - 1, maximum_length=length)
    model.decoder.length_ratio = 100.0
    search(model.eval().decoder, model.encode(padded(SOURCES)))
    assert len(made) < 2 + length / history.LEAST_ROOM
    assert max(made) < beam_size * length / 2 + 8 * history.LEAST_ROOM * beam_size or beam_size == 1
