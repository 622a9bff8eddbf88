"""Data as demonstrator, the original: the decoder also learns to go on from what it used to write.

Venkatraman, Hebert & Bagnell 2015, algorithm 1. Train on the data; write an output for each example; pair what was
written up to each step with the true next token, whatever came before it; add these pairs to the data, and train on all
of it. Repeat. `dad` is the form of Ranzato et al. 2016: tokens replaced as the present model would, and nothing kept.

Outputs are greedy, so the weights of each round stand for all that it wrote: they are kept, not the outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.scheduled_sampling import ScheduledSampling
from seqloom.storage.weights import weights_of
from seqloom.types import Batch, Loss, Padded


class Rollouts(Objective):
    """Each of `rounds` + 1 equal parts of the training has the outputs of one more round; each batch draws a round."""

    steps: ClassVar[bool] = True

    def __init__(self, *, rounds: int = 3, label_smoothing: float = 0.0):
        super().__init__()
        if rounds < 1:
            raise ValueError(f"rounds = {rounds} must be 1 or more")
        self.rounds = rounds
        self.past = nn.ModuleList()  # Snapshots, one for each round so far
        self.free_run = ScheduledSampling(choose="argmax", form="steps")
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if task.running:
            raise ValueError("writes outputs from their beginning, which running text does not have; take another")

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            return self.cross_entropy(model, batch, progress)
        while len(self.past) < min(int(progress * (self.rounds + 1)), self.rounds):
            self.past.append(Snapshot(weights_of(model)))
        chosen = int(torch.randint(len(self.past) + 1, ()))  # 0: the targets' own tokens
        inputs = self.write(model, batch, self.past[chosen - 1]) if chosen else batch.inputs
        memory = model.encode(batch.source, batch.inputs.values.shape[0])
        return self.cross_entropy.of(model.decoder(memory, inputs), batch)

    def write(self, model: Model, batch: Batch, past: nn.Module) -> Padded:
        """BOS and what the model wrote in an earlier round, as long as the target.  (B, U)"""
        given = torch.zeros_like(batch.inputs.values, dtype=torch.bool)
        given[:, 0] = True  # BOS
        assert isinstance(past, Snapshot)
        with torch.no_grad(), past.put_into(model):
            memory = model.encode(batch.source, len(given))
            return self.free_run.mix_inputs(model.decoder, memory, batch, given)

    def make_room(self, stored: Mapping[str, Tensor]) -> None:
        rounds: dict[int, dict[str, Tensor]] = {}
        for name, value in stored.items():
            if found := re.fullmatch(r"past\.(\d{1,3})\.([^.]+)", name):
                rounds.setdefault(int(found[1]), {})[found[2]] = value
        self.past = nn.ModuleList(Snapshot(rounds[number]) for number in sorted(rounds))


class Snapshot(nn.Module):
    """The weights of a model at some time. They are stored with a training, and never trained."""

    def __init__(self, weights: Mapping[str, Tensor]):
        super().__init__()
        for name, value in weights.items():
            self.register_buffer(name.replace(".", ":"), value.detach().clone())  # a buffer's name has no dots

    @contextmanager
    def put_into(self, model: Model) -> Iterator[None]:
        """Compute with these weights, without drop-out, for a while."""
        state, training = model.state_dict(keep_vars=True), model.training
        present = {name: value.data for name, value in state.items()}
        try:
            model.eval()
            for name, value in self.named_buffers():
                state[name.replace(":", ".")].data = value
            yield
        finally:
            for name, value in present.items():
                state[name].data = value
            model.train(training)
