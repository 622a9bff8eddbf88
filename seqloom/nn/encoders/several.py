"""An encoder for each input of a source, such as lips and sound ("Watch" and "Listen").

Chung, Senior, Vinyals & Zisserman 2017, section 3: the decoder starts from the last states of both, here by one layer,
    summary = W [s_video; s_sound] + b
and attends to each of them by itself (seqloom/nn/attention/several.py). An input that is missing has no states, and its
summary is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder, Task
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.video import Video
from seqloom.types import Memory, Padded

Inputs = dict[str, dict[str, Any]]  # what each input consists of; the source itself is ""


class Several(Encoder):
    """`encoder` reads the source itself, whose states the memory has; `parts` read the others, and are its parts.

    All are equally wide. Without `parts` each is read by the encoder `recurrent`.
    """

    modality = ()

    def __init__(
        self,
        *,
        inputs: Inputs,
        encoder: Callable[..., Encoder] = Video,
        parts: dict[str, Callable[..., Encoder]] | None = None,
    ):
        super().__init__()
        others = inputs.keys() - {""}
        parts = dict.fromkeys(sorted(others), Recurrent) if parts is None else parts
        if parts.keys() != others:
            found = ", ".join(sorted(others)) or "none"
            raise ValueError(f"parts has encoders of {', '.join(parts) or 'none'}; the source has these parts: {found}")
        self.encoder = encoder(**facts_of(inputs, ""))
        made = {name: part(**facts_of(inputs, name)) for name, part in parts.items()}
        self.parts = cast(Mapping[str, Encoder], nn.ModuleDict(made))
        sizes = {"encoder": self.encoder.output_size}
        sizes |= {f"parts.{name}": each.output_size for name, each in made.items()}
        if len(set(sizes.values())) > 1:
            widths = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise ValueError(f"its encoders make states of different sizes ({widths}): make them equal")
        self.output_size, self.stride = self.encoder.output_size, self.encoder.stride
        self.summary = nn.Linear(len(sizes) * self.output_size, self.output_size)

    def count_states(self, length: int) -> int:
        return self.encoder.count_states(length)

    def suit(self, task: Task) -> None:
        source = task.source
        if source is None or not source.parts:
            raise ValueError('reads several inputs, and these sources have one: set task.source.sound of "video"')
        self.encoder.suit(stand_in(source))
        for name, each in self.parts.items():
            each.suit(stand_in(source.parts[name]))

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        memory = read(self.encoder, source, attention)
        parts = {name: read(each, source.parts[name], attention) for name, each in self.parts.items()}
        own = [each.final["summary"] for each in (memory, *parts.values())]
        lengths = torch.stack([source.lengths, *(each.lengths for each in source.parts.values())]).amax(0)
        return replace(
            memory, final={"summary": self.summary(torch.cat(own, dim=-1))}, parts=parts, source_lengths=lengths
        )


def facts_of(inputs: Inputs, name: str) -> dict[str, Any]:
    """What an input consists of, as arguments of the constructor of its encoder."""
    return {fact: value for fact, value in inputs[name].items() if value is not None}


def stand_in(codec: Any) -> Any:
    """A task whose sources are one input."""
    facts = ("vocabulary", "features", "shape", "moving", "nested", "divided")
    return SimpleNamespace(source=SimpleNamespace(**{name: getattr(codec, name) for name in facts}, parts={}))


def read(encoder: Encoder, source: Padded, attention: bool) -> Memory:
    """The memory of one input. Where it is empty, one position of nothing is read, and what comes of it is not used."""
    values, lengths = source.values, source.lengths
    missing = lengths == 0
    if not missing.any():
        return encoder(Padded(values, lengths), attention)
    if not values.shape[1]:
        values = values.new_zeros(len(lengths), 1, *values.shape[2:])
    memory: Memory = encoder(Padded(values, lengths.clamp(min=1)), attention)
    summary: Tensor = memory.final["summary"].masked_fill(missing[:, None], 0)
    return replace(memory, lengths=memory.lengths.masked_fill(missing, 0), final={"summary": summary})
