"""Scheduled sampling: the decoder is sometimes fed its own tokens, more often as training goes on.

Bengio et al. 2015. Each input is the target's token with probability e_i, else one that the model predicts there.
Targets stay the same, and no gradient goes through the choice. i counts hundredths of the training:

    linear           max(least, first - rate i)
    exponential      first rate^i
    inverse_sigmoid  first rate / (rate + exp(i / rate))

Recurrent decoders choose inputs one by one, each after those chosen so far ("steps"); Transformers in two passes
(Mihaylova & Martins 2019): predictions after the target's tokens first, then the loss after the mixed inputs, so that
training stays parallel. Inputs are chosen first, without a gradient; the loss is one pass of teacher forcing with them.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Objective
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Loss, Memory, Padded

Decay = Literal["linear", "exponential", "inverse_sigmoid"]
Choice = Literal["sample", "argmax"]
Form = Literal["auto", "steps", "two_passes"]


RATES: dict[Decay, float] = {"linear": 0.01, "exponential": 0.97, "inverse_sigmoid": 12.0}


class ScheduledSampling(Objective):
    """`least` is the lowest epsilon of every decay; `rate` has a default for each decay.

    form = "auto" takes two passes for decoders whose state grows.
    """

    steps: ClassVar[bool] = True

    def __init__(
        self,
        *,
        decay: Decay = "inverse_sigmoid",
        rate: float | None = None,
        first: float = 1.0,
        least: float = 0.0,
        choose: Choice = "sample",
        form: Form = "auto",
        label_smoothing: float = 0.0,
    ):
        super().__init__()
        if not 0 <= least <= first <= 1:
            raise ValueError(f"least = {least} and first = {first} must be in [0, 1], least not above first")
        rate = RATES[decay] if rate is None else rate
        if decay == "inverse_sigmoid" and rate < 1:
            raise ValueError(f'rate = {rate} must be 1 or more with decay = "inverse_sigmoid"')
        if decay != "inverse_sigmoid" and not 0 <= rate <= 1:
            raise ValueError(f'rate = {rate} must be in [0, 1] with decay = "{decay}"')
        self.decay, self.rate, self.first, self.least = decay, rate, first, least
        self.choose, self.form = choose, form
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def epsilon(self, progress: float) -> float:
        """The probability that an input is the target's token."""
        i = 100 * progress
        if self.decay == "linear":
            value = self.first - self.rate * i
        elif self.decay == "exponential":
            value = self.first * self.rate**i
        else:
            value = self.first * self.rate / (self.rate + math.exp(min(i / self.rate, 700.0)))
        return max(self.least, value)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            return self.cross_entropy(model, batch, progress)
        memory = model.encode(batch.source, batch.inputs.values.shape[0])
        given = torch.rand(batch.inputs.values.shape, device=batch.inputs.values.device) < self.epsilon(progress)
        given[:, 0] = True  # BOS
        inputs = self.mix_inputs(model.decoder, memory, batch, given)
        return self.cross_entropy.of(model.decoder(memory, inputs, batch.state), batch)

    @torch.no_grad()
    def mix_inputs(self, decoder: Decoder, memory: Memory, batch: Batch, given: Tensor) -> Padded:
        """The inputs, with those not given chosen by the model.  (B, U)"""
        inputs = batch.inputs.values
        if bool((given | ~batch.inputs.mask).all()):
            return batch.inputs
        if self.form == "two_passes" or (self.form == "auto" and decoder.grows):
            scores = decoder(memory, batch.inputs, batch.state).scores[:, :-1]
            chosen = torch.cat([inputs[:, :1], self.choose_tokens(scores)], dim=1)
            return Padded(torch.where(given, inputs, chosen), batch.inputs.lengths)
        state = decoder.start_rows(memory, len(inputs)) if batch.state is None else batch.state
        tokens = [inputs[:, 0]]
        for time in range(1, inputs.shape[1]):
            scores, state = decoder.step(tokens[-1], state, memory)
            tokens.append(torch.where(given[:, time], inputs[:, time], self.choose_tokens(scores)))
        return Padded(torch.stack(tokens, dim=1), batch.inputs.lengths)

    def choose_tokens(self, scores: Tensor) -> Tensor:
        """Tokens sampled from the model, or its likeliest.  (..., V) -> (...)"""
        if self.choose == "argmax":
            return scores.argmax(dim=-1)
        flat = torch.softmax(scores, dim=-1).flatten(0, -2)
        flat = flat.nan_to_num(1.0)  # NaN scores: the loss will be NaN too, which training reports
        return flat.multinomial(1).view(scores.shape[:-1])
