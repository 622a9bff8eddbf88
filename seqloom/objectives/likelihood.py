"""Maximum likelihood of vectors: sum -log p(y_t | y_1 .. y_{t-1}), in nats; the loss is the mean over steps.

p is the distribution of the decoder (seqloom/nn/layers/densities.py): independent Bernoulli components for music, a
mixture of Gaussians for signals.
"""

from typing import cast

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.decoders.vectors import Vectors
from seqloom.nn.model import Model
from seqloom.types import Batch, Loss


class Likelihood(Objective):
    """For decoders of vectors. Padding is left out."""

    def __init__(self) -> None:
        super().__init__()

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        if not isinstance(decoder, Vectors):
            raise ValueError('needs a distribution of vectors; take decoder.type = "vectors", or another objective')

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        real = batch.targets.mask
        output = model(batch)
        density = cast(Vectors, model.decoder).density
        found = density.log_prob(output.project(output.hidden[real]), batch.targets.values[real])  # (N,)
        return Loss(-found.sum(), real.sum())
