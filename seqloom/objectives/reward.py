"""The reward of an output: a metric of single outputs, over tokens, words or characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pkgutil import iter_modules
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from seqloom import metrics
from seqloom.errors import nearest, show
from seqloom.objectives.paths import token_lists
from seqloom.types import Padded

Of = Literal["symbols", "words", "characters"]


class Reward:
    """`name` is a file of metrics/ with a function `rewards`; `of` says what it compares: tokens ("symbols"), or the
    words or characters of the decoded text."""

    def __init__(self, name: str, of: Of = "symbols", decode: Callable[[list[int]], Any] | None = None):
        modules = {file.name: metrics.find(file.name) for file in iter_modules(metrics.__path__)}
        known = {file: module.rewards for file, module in modules.items() if hasattr(module, "rewards")}
        file = name.replace("-", "_")
        if file not in known:
            raise ValueError(f"reward = {show(name)}: no such reward{nearest(name, known)}")
        if of not in ("symbols", "words", "characters"):
            raise ValueError(f'reward_of = {show(of)} must be "symbols", "words" or "characters"')
        if of != "symbols" and decode is None:
            raise ValueError(f'reward_of = "{of}" needs targets that can be decoded to text; take "symbols"')
        self.rewards, self.of, self.decode = known[file], of, decode

    def __call__(self, found: Sequence[list[int]], references: Sequence[list[int]]) -> np.ndarray:
        """The rewards of outputs without EOS, each against its reference.  (N,), float64"""
        if self.of == "symbols":
            return self.rewards(found, references)
        texts = {tokens: self.units(list(tokens)) for tokens in {*map(tuple, found), *map(tuple, references)}}
        return self.rewards([texts[tuple(each)] for each in found], [texts[tuple(each)] for each in references])

    def of_paths(self, paths: Padded, targets: Padded, eos: int | None, like: Tensor) -> Tensor:
        """The rewards of n outputs per target, on the device of `like`, in its precision or float32.  (B * n,)"""
        found, wanted = token_lists(paths, eos), token_lists(targets, eos)
        references = [target for target in wanted for _ in range(len(found) // len(wanted))]
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.as_tensor(self(found, references), dtype=dtype, device=like.device)

    def units(self, tokens: list[int]) -> Sequence[str]:
        """What is compared: the words of an output, or its text, a sequence of characters."""
        assert self.decode is not None
        text = str(self.decode(tokens))
        return text.split() if self.of == "words" else text
