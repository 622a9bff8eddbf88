"""Language models of vectors: any decoder whose inputs are vectors and whose outputs describe the next one.

Boulanger-Lewandowski, Bengio & Vincent 2012 and Chung, Gulcehre, Cho & Bengio 2014 model music and speech in this way.
A vector enters as a mixture of tokens does, as its product with the embedding of the inner decoder; the output layer
gives the numbers of a distribution (seqloom/nn/layers/densities.py).
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder, Encoder, Task
from seqloom.nn.decoders.inner import OuterDecoder, inner_decoder
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.densities import Bernoulli, Density, Gaussians
from seqloom.types import Memory, Output, Padded, State


class Vectors(OuterDecoder):
    """State: the inner decoder's. The first input is a vector of zeros; only its length ends an output."""

    trained_by = "likelihood"
    features: int

    def __init__(
        self,
        *,
        features: int,
        memory_size: int,
        bos: int,
        density: Literal["bernoulli", "gaussians"] = "bernoulli",
        components: int = 20,
        decoder: Callable[..., Decoder] = Recurrent,
        length_ratio: float = 2.0,
        length_offset: int = 100,
    ):
        super().__init__(bos=bos, eos=None, lengths=(length_ratio, length_offset))
        if components < 1:
            raise ValueError(f"components = {components} must be 1 or more")
        inner = inner_decoder(decoder, vocabulary=features, memory_size=memory_size, bos=bos, eos=None)
        if not isinstance(inner, VocabularyDecoder):
            raise ValueError("decoder must have an embedding and an output layer: take recurrent or transformer")
        self.decoder, self.hidden_size = inner, inner.hidden_size
        self.features = features
        self.density: Density = Bernoulli(features) if density == "bernoulli" else Gaussians(features, components)
        # The sum over all components is to have a variance of about 1, as the embedding of one token has.
        nn.init.normal_(inner.embedding.weight, std=features**-0.5)
        inner.output = nn.Linear(inner.hidden_size, self.density.size)

    def start(self, memory: Memory) -> State:
        return self.decoder.start(memory)

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """The numbers of the distribution of the next vector.  (rows, F) -> (rows, size)"""
        return self.decoder.step(token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        output: Output = self.decoder(memory, inputs, state, attention)
        return output

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The log-density of each series.  (rows,)"""
        found = self.density.log_prob(self(memory, inputs).scores, targets.values)  # (rows, U)
        return found.masked_fill(~targets.mask, 0).sum(1)

    def first_input(self, rows: int) -> Tensor:
        """What comes before the first vector.  (rows, F)"""
        return torch.zeros(rows, self.features, device=next(self.parameters()).device)

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        if task.eos is not None or not task.target.is_vectors:
            raise ValueError('writes series of vectors: set task.type = "series"')
        super().suit(task, encoder)
