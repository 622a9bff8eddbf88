"""Input layers: an embedding for tokens, a linear layer for vectors, and positions for Transformers."""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.nn.layers.positions import Learned, Sinusoidal
from seqloom.nn.ops.dropout import Dropout


def embedding(vocabulary: int, size: int) -> nn.Embedding:
    """A table whose rows have norm about 1, so that it can be tied to the output layer."""
    table = nn.Embedding(vocabulary, size)
    nn.init.normal_(table.weight, std=size**-0.5)
    return table


def embed(table: nn.Embedding, tokens: Tensor) -> Tensor:
    """Embed tokens (...), or mixtures of tokens (..., V).  -> (..., E)"""
    return tokens @ table.weight if tokens.is_floating_point() else table(tokens)


def input_layer(
    vocabulary: int | None, features: int | None, size: int, scaled: bool = False
) -> nn.Embedding | nn.Linear:
    """The layer that maps tokens (B, T), or vectors (B, T, features), to (B, T, size).

    Outputs have a standard deviation of about 1, or of size^-1/2 if `scaled`, which Transformers multiply by
    sqrt(size); for vectors, if their components have one of about 1.
    """
    if vocabulary is not None and features is None:
        return embedding(vocabulary, size) if scaled else nn.Embedding(vocabulary, size)
    if features is None or vocabulary is not None:
        raise ValueError("an encoder reads tokens or vectors: give either vocabulary or features")
    matrix = nn.Linear(features, size)
    nn.init.normal_(matrix.weight, std=(features * (size if scaled else 1)) ** -0.5)
    nn.init.zeros_(matrix.bias)
    return matrix


class AddPositions(nn.Module):
    """Embeddings times sqrt(size), plus positions, with drop-out (Vaswani et al. 2017, section 3.4). With `normalised`
    their sum is normalised instead, as in BERT.
    """

    def __init__(
        self,
        *,
        size: int,
        positions: Literal["sinusoidal", "learned"] = "sinusoidal",
        longest: int = 512,
        dropout: float = 0.0,
        normalised: bool = False,
    ):
        super().__init__()
        self.scale = 1.0 if normalised else size**0.5
        self.positions = Sinusoidal(size=size) if positions == "sinusoidal" else Learned(size=size, longest=longest)
        self.norm = nn.LayerNorm(size) if normalised else nn.Identity()
        self.dropout = Dropout(dropout)

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """(..., size) at positions (...)"""
        values = torch.add(self.positions(positions).to(embedded.dtype), embedded, alpha=self.scale)
        return self.dropout(self.norm(values))
