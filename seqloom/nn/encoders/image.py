"""A small residual network for pictures: a grid of states, row by row, and a summary of all of them.

Blocks are those of He, Zhang, Ren & Sun 2016 ("Identity mappings"), figure 4e,
    x + W_2 relu(norm(W_1 relu(norm(x))))
with group normalisation (Wu & He 2018), so that no row of a batch depends on another. The first layer sees overlapping
patches, as in AlexNet, because most of the work would be at full size. A state has its place in the grid added to it, a
vector for the row and one for the column. The summary is the mean of all states, or that of a dense layer, as in VGG,
which knows what is where. Decoders attend to the grid as in Xu et al. 2015 ("Show, Attend and Tell"), section 3.1.
"""

from math import ceil
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded

SCALE = 127.5  # pixels from 0 to 255 become -1 to 1
GROUPS = 8  # of channels, in layers of WIDE channels or more


class Image(Encoder):
    """Pictures (B, H, W, C), from 0 to 255 -> a grid of ceil(H / s) x ceil(W / s) states, s = patch * 2^(stages - 1).

    Every stage but the first halves the grid; the last has `size` channels, each before it half as many as the next.
    """

    modality = ()
    reads = "pictures"
    grid: tuple[int, int]

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        size: int = 128,
        patch: int = 4,
        stages: int = 2,
        blocks: int = 1,
        summary: Literal["dense", "mean"] = "dense",
        dropout: float = 0.0,
    ):
        super().__init__()
        for name, value in (("patch", patch), ("stages", stages), ("blocks", blocks)):
            if not 1 <= value <= 32:
                raise ValueError(f"{name} = {value}: expected 1 to 32")
        height, width, channels = shape
        stride = patch * 2 ** (stages - 1)
        if stride > min(height, width):
            made = f"patch = {patch} and stages = {stages} make one state of {stride} x {stride} pixels"
            raise ValueError(f"{made}, and pictures have {width} x {height}: lower them")
        self.output_size = size
        self.height, self.grid = height, (ceil(height / stride), ceil(width / stride))
        widths = [max(size >> (stages - 1 - stage), 1) for stage in range(stages)]
        self.patches = nn.Conv2d(channels, widths[0], 2 * patch - 1, patch, patch - 1)
        sizes = [widths[0], *(width for width in widths for _ in range(blocks))]
        halving = [stage > 0 and block == 0 for stage in range(stages) for block in range(blocks)]
        self.blocks = nn.Sequential(*(Block(*each) for each in zip(sizes, sizes[1:], halving)))
        self.norm = normalisation(size)
        self.rows, self.columns = (nn.Parameter(0.02 * torch.randn(count, size)) for count in self.grid)
        self.dense = nn.Linear(self.grid[0] * self.grid[1] * size, size) if summary == "dense" else None
        self.dropout = Dropout(dropout)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def count_states(self, length: int) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def one_state_per_token(self) -> bool:
        return False

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        values = source.values[:, : self.height].to(self.patches.weight.dtype) / SCALE - 1  # (B, H, W, C)
        features: Tensor = self.norm(self.blocks(self.patches(values.permute(0, 3, 1, 2)))).relu()  # (B, size, h, w)
        states = features.permute(0, 2, 3, 1) + self.rows[:, None] + self.columns
        states = states.reshape(len(values), -1, self.output_size)  # (B, h * w, size)
        lengths = torch.full_like(source.lengths, states.shape[1])
        states = self.dropout(states)
        summary = states.mean(1) if self.dense is None else self.dropout(self.dense(states.flatten(1)).relu())
        return Memory(states, lengths, {"summary": summary}, source_lengths=source.lengths)


class Block(nn.Module):
    """(B, inputs, h, w) -> (B, outputs, h, w), or half as high and wide."""

    def __init__(self, inputs: int, outputs: int, halve: bool):
        super().__init__()
        stride = 2 if halve else 1
        self.norms = nn.ModuleList([normalisation(inputs), normalisation(outputs)])
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        same = inputs == outputs and not halve
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        change = self.first(self.norms[0](values).relu())
        change = self.second(self.norms[1](change).relu())
        return cast(Tensor, self.shortcut(values)) + change


def normalisation(channels: int) -> nn.GroupNorm:
    """Of the groups' pixels and channels: one group where there are few channels."""
    groups = GROUPS if channels % GROUPS == 0 and channels >= 4 * GROUPS else 1
    return nn.GroupNorm(groups, channels)
