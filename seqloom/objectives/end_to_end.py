"""End-to-end back-propagation: after the given tokens, the decoder is fed its own distribution over tokens.

Ranzato et al. 2016, section 3.2.2: the input is the mean of the embeddings of the k likeliest tokens of the step
before, weighted by their renormalised probabilities, through which gradients flow. It is introduced from the end of
the outputs backwards; targets stay the same.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.objectives.annealing import Annealing
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Loss, Output, Padded


class EndToEnd(Objective):
    """`top_k`: how many tokens are mixed. `delta`, `wait` and `longest` are those of `Annealing`."""

    steps: ClassVar[bool] = True

    def __init__(
        self, *, top_k: int = 5, delta: int = 2, wait: float = 0.0, longest: int = 0, label_smoothing: float = 0.0
    ):
        super().__init__()
        if top_k < 1:
            raise ValueError(f"top_k = {top_k} must be 1 or more")
        self.top_k, self.annealing = top_k, Annealing(delta, wait, longest)
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        width = batch.inputs.values.shape[1]
        given = 1 + self.annealing.given(progress, width)  # inputs: BOS is always given
        if not self.training or given >= width:
            return self.cross_entropy(model, batch, progress)
        decoder, memory = model.decoder, model.encode(batch.source, batch.inputs.values.shape[0])
        known = Padded(batch.inputs.values[:, :given], batch.inputs.lengths.clamp(max=given))
        output = decoder(memory, known, batch.state)
        state, scores = output.state, list(output.scores.unbind(1))
        for _ in range(given, width):
            after, state = decoder.step(self.mixture(scores[-1]), state, memory)
            scores.append(after)
        return self.cross_entropy.of(Output(torch.stack(scores, dim=1), torch.nn.Identity(), state), batch)

    def mixture(self, scores: Tensor) -> Tensor:
        """The weight of each token in the next input, 0 for all but the k likeliest.  (rows, V) -> (rows, V)"""
        best, tokens = scores.topk(min(self.top_k, scores.shape[1]), dim=1)
        return torch.zeros_like(scores).scatter(1, tokens, torch.softmax(best, dim=1).to(scores.dtype))
