"""Models so small that all their outputs can be listed, and a batch for them."""

from itertools import product

import pytest
import torch
from torch import Tensor

from seqloom.data.special_tokens import BOS, EOS
from seqloom.nn.model import Model
from seqloom.testing.models import DECODERS, VOCABULARY, small_batch, small_model
from seqloom.types import Batch

__all__ = ["BOS", "EOS", "FURTHER", "KINDS", "VOCABULARY", "batch", "gradients", "kinds", "model", "outputs"]

FURTHER = {"gnmt": DECODERS["gnmt"]}  # for tests that list no outputs
KINDS = {name: build for name, build in DECODERS.items() if name not in FURTHER}
kinds = pytest.mark.parametrize("kind", KINDS)
model, batch = small_model, small_batch


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
