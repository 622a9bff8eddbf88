"""Decoders whose logits are a linear map of their hidden vectors: by a matrix of its own, or the embedding if tied."""

from collections.abc import Callable

from torch import Tensor, nn

from seqloom.contracts import Decoder
from seqloom.nn.ops.linear import projection


class VocabularyDecoder(Decoder):
    modality = ("embedding", "output")
    embedding: nn.Embedding
    output: nn.Linear | None  # None: tied

    @property
    def project(self) -> Callable[[Tensor], Tensor]:
        """(..., hidden_size) -> (..., V)"""
        return projection(self.output, self.embedding)
