"""Optimisers, and their state as named tensors.

A parameter's state is stored under its name: "decoder.embedding.weight/exp_avg". The learning rate and other settings
are not state: they come from the recipe and the schedule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.config.settings import Settings
from seqloom.errors import SeqloomError
from seqloom.storage.files import RESTORE

Scalars = dict[str, float]  # the numbers of an optimiser's state


class NamedOptimiser:
    """A torch optimiser whose state is stored by the names of its parameters."""

    def __init__(self, module: nn.Module, settings: Settings):
        trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
        if not trained:
            raise SeqloomError("the model has no parameter to train: every one is frozen")
        matrices = [name for name, value in trained.items() if value.dim() > 1]
        vectors = [name for name, value in trained.items() if value.dim() <= 1]
        self.names = [*matrices, *vectors]
        self.parameters = [trained[name] for name in self.names]
        self.of_model = [trained[name] for name in self.names if not name.startswith("objective.")]
        self.of_objective = [trained[name] for name in self.names if name.startswith("objective.")]
        groups = [
            {"params": [trained[name] for name in names], "weight_decay": decay}
            for names, decay in ((matrices, settings.weight_decay), (vectors, 0.0))
            if names
        ]
        rate: dict[str, Any] = {"lr": settings.learning_rate}
        fused = self.parameters[0].device.type in ("cpu", "cuda")  # one kernel for the whole update
        self.parts = {"step", "exp_avg", "exp_avg_sq"}  # of the state of a parameter
        if settings.optimiser == "sgd":
            self.parts = {"momentum_buffer"}
            self.torch: torch.optim.Optimizer = torch.optim.SGD(groups, **rate, momentum=settings.momentum, fused=fused)
        elif settings.optimiser == "adam":
            self.torch = torch.optim.Adam(groups, **rate, betas=settings.betas, fused=fused)
        else:
            self.torch = torch.optim.AdamW(groups, **rate, betas=settings.betas, fused=fused)

    def step(self, learning_rate: float) -> None:
        for group in self.torch.param_groups:
            group["lr"] = learning_rate
        self.torch.step()

    def scale_and_clip(self, scale: float, clip: float) -> float:
        """Scale all gradients, clip their global norm, and return the norm before clipping.

        Parameters of the objective, such as a baseline's, are clipped on their own: they must not slow the model.
        """
        norms = []
        for parameters in (self.of_model, self.of_objective):
            gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
            if not gradients:
                continue
            torch._foreach_mul_(gradients, scale)
            norm = torch.nn.utils.get_total_norm(gradients)
            if clip and norm.isfinite():  # else clipping would break the finite gradients, too
                torch.nn.utils.clip_grads_with_norm_(parameters, clip, norm)
            norms.append(norm.item())
        return norms[0] if all(map(math.isfinite, norms)) else math.nan

    def clear_gradients(self) -> None:
        self.torch.zero_grad(set_to_none=True)

    def state(self) -> tuple[dict[str, Tensor], Scalars]:
        """The state of all parameters, as tensors and as numbers."""
        tensors: dict[str, Tensor] = {}
        scalars: Scalars = {}
        for name, parameter in zip(self.names, self.parameters, strict=True):
            for part, value in self.torch.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    tensors[f"{name}/{part}"] = value
                elif value is not None:
                    scalars[f"{name}/{part}"] = value
        return tensors, scalars

    def load(self, tensors: Mapping[str, Tensor], scalars: Scalars, origin: str) -> None:
        """Load what `state` returned; errors name the origin."""
        numbers = {name: number for number, name in enumerate(self.names)}
        states: dict[int, dict[str, Any]] = {}
        for key, value in {**tensors, **scalars}.items():
            name, _, part = key.rpartition("/")
            if name not in numbers:
                raise SeqloomError(
                    f'{origin}: "{name}" is not a parameter of this model; resume with the recipe of the run'
                )
            expected = self.parameters[numbers[name]].shape
            if isinstance(value, Tensor) and value.shape != (() if part == "step" else expected):
                raise SeqloomError(
                    f'{origin}: "{key}" has shape {tuple(value.shape)}, the model expects {tuple(expected)}; '
                    "resume with the recipe of the run"
                )
            if not is_number(value, part):
                raise SeqloomError(f'{origin}: "{key}" is no state of this optimiser; {RESTORE}')
            states.setdefault(numbers[name], {})[part] = value
        for number, state in states.items():
            if state.keys() != self.parts:
                raise SeqloomError(
                    f'{origin}: "{self.names[number]}" has {", ".join(sorted(state))}; expected '
                    f"{', '.join(sorted(self.parts))}; {RESTORE}"
                )
        self.torch.load_state_dict({"state": states, "param_groups": self.torch.state_dict()["param_groups"]})


def is_number(value: Any, part: str) -> bool:
    """Whether a value of a stored state can be computed with; a number of steps is 0 or more."""
    if isinstance(value, Tensor):
        return value.is_floating_point() and (part != "step" or bool(value >= 0))
    return part == "step" and type(value) in (int, float) and value >= 0
