"""Models so small that all their outputs can be listed, and a batch for them."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.types import Batch, Padded

VOCABULARY, BOS, EOS = 6, 2, 3

KINDS: dict[str, Any] = {
    "recurrent": lambda: Recurrent(
        vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=EOS, embedding_size=4, size=4, attention=Additive
    ),
    "input feeding": lambda: Recurrent(
        vocabulary=VOCABULARY,
        memory_size=4,
        bos=BOS,
        eos=EOS,
        embedding_size=4,
        size=4,
        attention=Additive,
        input_feeding=True,
    ),
    "transformer": lambda: Transformer(
        vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=EOS, size=4, layers=2, heads=2, hidden=6, dropout=0.0
    ),
}
FURTHER: dict[str, Any] = {  # for tests that list no outputs
    "gnmt": lambda: GNMT(vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=EOS, embedding_size=4, size=4, layers=3),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def model(kind: str, seed: int = 1) -> Model:
    torch.manual_seed(seed)
    decoder = {**KINDS, **FURTHER}[kind]()
    made = Model(RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4), decoder).double().train()
    for parameter in made.parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return made


def batch(targets: tuple[tuple[int, ...], ...] = ((4, 5), (5,))) -> Batch:
    """As many sources, of different lengths, as there are targets."""
    sources = [torch.tensor(([4, 5, 5, 4] * 2)[: 1 + number]) for number in range(len(targets))]
    return Batch(
        source=Padded.stack(sources),
        inputs=Padded.stack([torch.tensor([BOS, *target]) for target in targets]),
        targets=Padded.stack([torch.tensor([*target, EOS]) for target in targets]),
    )


def outputs(longest: int) -> list[list[int]]:
    """Every output of at most so many tokens, EOS among them."""
    others = [following for following in range(VOCABULARY) if following != EOS]
    return [[*body, EOS] for length in range(longest) for body in product(others, repeat=length)]


def probabilities(given: Model, one: Batch, longest: int, begun: tuple[int, ...] = (), forced: bool = True) -> Tensor:
    """Of each output of one source, with gradient. If forced, the limit makes the last EOS sure."""
    memory = given.encode(one.source)
    found = []
    for tokens in outputs(longest):
        if tuple(tokens[: len(begun)]) != begun or len(tokens) <= len(begun):
            found.append(memory.states.new_zeros(()))
            continue
        state, token, total = given.decoder.start(memory), torch.tensor([BOS]), memory.states.new_ones(())
        for place, following in enumerate(tokens):
            logits, state = given.decoder.step(token, state, memory)
            if len(begun) <= place and (place < longest - 1 or not forced):
                total = total * torch.softmax(logits[0], dim=-1)[following]
            token = torch.tensor([following])
        found.append(total)
    return torch.stack(found)


def gradients(total: Tensor, given: Model) -> list[Tensor]:
    parameters = list(given.parameters())
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found)]
