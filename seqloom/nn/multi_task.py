"""One model for several tasks: models that share a body, each with modality nets of its own.

Kaiser et al. 2017 (MultiModel): inputs of every kind enter one body through a net of their modality, and leave it
through another. Here each task has a plain model; what does not depend on its data is one module in all of them. A
task's first input, BOS in its own embedding, is the token that tells the shared decoder which task it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import nn

from seqloom.contracts import Decoder, Encoder
from seqloom.nn.model import Model


class MultiTask(nn.Module):
    """The models of several tasks, by name. Parts of one type are one body; those without `modality` stay apart."""

    def __init__(self, models: Mapping[str, Model]):
        super().__init__()
        self.models = nn.ModuleDict(models)
        shared = 0
        for part in ("encoder", "decoder"):
            bodies: dict[type, tuple[str, Encoder | Decoder]] = {}  # the first of each type, and whose it is
            for name, model in models.items():
                own = getattr(model, part)
                if own is None or not own.modality:
                    continue
                first, body = bodies.setdefault(type(own), (name, own))
                if body is not own:
                    shared += 1
                    try:
                        share_body(body, own)
                    except ValueError as error:
                        raise ValueError(f"{part}: tasks {first} and {name} cannot share a body: {error}") from None
        if len(models) > 1 and not shared:
            raise ValueError("no two tasks share an encoder or a decoder: take parts of one type, such as transformer")

    def of(self, task: str) -> Model:
        model: Model = self.models[task]  # type: ignore[assignment]  # all are models
        return model

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def freeze(self) -> Self:
        """For inference, as of a single model."""
        for model in self.models.values():
            model.freeze()  # type: ignore[operator]  # all are models
        return self.eval()


def share_body(body: Encoder | Decoder, part: Encoder | Decoder) -> None:
    """Let a part use all modules and parameters of another but its modality nets."""
    for ours, theirs in ((part._modules, body._modules), (part._parameters, body._parameters)):
        for name, value in theirs.items():
            if name in body.modality:
                continue
            if shapes(value) != shapes(ours[name]):
                raise ValueError(f"{name} has other sizes")
            ours[name] = value  # type: ignore[assignment]  # a module or a parameter, as theirs


def shapes(value: nn.Module | nn.Parameter | None) -> dict[str, torch.Size]:
    """The sizes of all tensors of a module, or of a parameter."""
    if isinstance(value, nn.Module):
        return {name: tensor.shape for name, tensor in value.state_dict().items()}
    return {} if value is None else {"": value.shape}
