"""Models so small that all their outputs can be listed, and a batch for them: what objectives are checked with."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any

import torch

from seqloom.contracts import Decoder, Objective
from seqloom.data.special_tokens import BOS, EOS
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.gnmt import GNMT
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.types import Batch, Padded

VOCABULARY = 6
GIVEN: dict[str, Any] = {"vocabulary": VOCABULARY, "memory_size": 4, "bos": BOS, "eos": EOS}
DECODERS: dict[str, Callable[[], Decoder]] = {
    "recurrent": lambda: Recurrent(**GIVEN, embedding_size=4, size=4, attention=Additive),
    "input feeding": lambda: Recurrent(**GIVEN, embedding_size=4, size=4, attention=Additive, input_feeding=True),
    "transformer": lambda: Transformer(**GIVEN, size=4, layers=2, heads=2, hidden=6, dropout=0.0),
    "gnmt": lambda: GNMT(**GIVEN, embedding_size=4, size=4, layers=3),
}


def small_model(decoder: str, seed: int = 1) -> Model:
    """A model with one of the decoders above, in float64, in training mode."""
    torch.manual_seed(seed)
    made = DECODERS[decoder]()
    model = Model(RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4), made).double().train()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return model


def small_batch(targets: tuple[tuple[int, ...], ...] = ((4, 5), (5,))) -> Batch:
    """As many sources, of different lengths, as there are targets."""
    sources = [torch.tensor(([4, 5, 5, 4] * 2)[: 1 + number]) for number in range(len(targets))]
    return Batch(
        source=Padded.stack(sources),
        inputs=Padded.stack([torch.tensor([BOS, *target]) for target in targets]),
        targets=Padded.stack([torch.tensor([*target, EOS]) for target in targets]),
    )


# -- what an objective is given


def from_program(objective: Callable[..., Objective]) -> dict[str, Any]:
    """What the constructor of an objective asks the program for, by arguments without a default."""
    known = {
        "vocabulary": VOCABULARY,
        "hidden_size": 4,
        "features": 4,
        "decode": lambda tokens: " ".join(map(str, tokens)),
        "constraints": lambda source: [],
    }
    arguments = signature(objective).parameters.items()
    return {name: known[name] for name, each in arguments if name in known and each.default is Parameter.empty}


def refuse_special(objective: Objective) -> None:
    """Refuse an objective that does not train every kind of decoder on tokens."""
    codec = SimpleNamespace(is_vectors=False)
    task: Any = SimpleNamespace(target=codec, source=codec, running=False, eos=EOS, constrained=True)
    decoder: Any = SimpleNamespace(trained_by="")
    search: Any = SimpleNamespace(rank_by="last")
    try:
        objective.suit(task, decoder, search)
    except ValueError as error:
        name = type(objective).__name__
        raise SeqloomError(
            f"{name} is for special decoders or targets, for which there are no checks: {error}"
        ) from None
