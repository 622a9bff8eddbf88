"""Tied embeddings begin small: an untrained decoder is about as good as a guess among all tokens."""

import math

import pytest
import torch

from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.deep_att import DeepAtt
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Memory, Padded

VOCABULARY, SIZE = 2000, 128
DECODERS = {
    "recurrent": lambda **given: Recurrent(embedding_size=SIZE, size=SIZE, attention=Additive, **given),
    "deep_att": lambda **given: DeepAtt(embedding_size=SIZE, size=SIZE, layers=3, **given),
    "gnmt": lambda **given: GNMT(embedding_size=SIZE, size=SIZE, layers=3, **given),
}


@pytest.mark.parametrize("kind", DECODERS)
def test_the_first_loss_of_a_tied_decoder_is_that_of_a_guess(kind):
    torch.manual_seed(1)
    decoder = DECODERS[kind](vocabulary=VOCABULARY, memory_size=SIZE, bos=2, eos=3, tied=True)
    lengths = torch.full((20,), 12)
    inputs, targets = (Padded(torch.randint(4, VOCABULARY, (20, 12)), lengths) for _ in range(2))
    memory = decoder.prepare(Memory(torch.randn(20, 7, SIZE), torch.full((20,), 7), {"summary": torch.randn(20, SIZE)}))
    batch = Batch(None, inputs, targets)
    loss = CrossEntropy().of(decoder(memory, inputs), batch)
    assert (loss.total / loss.count).item() == pytest.approx(math.log(VOCABULARY), abs=0.1)
