"""Outputs that are sets: cross-entropy of the order that the model finds most likely.

Vinyals, Bengio & Kudlur 2016, section 5.2. A set may be written in any order, and some orders are easier. For each
target, several random orders are drawn, and one of them is learned:
    choose="best"     the likeliest, an estimate of min over orders of -log p(order | source)     eq. 11
    choose="sample"   one drawn with p(order | source), so that training does not settle on an order too early
For the first share `uniform` of the training a random order is learned, as the authors do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqloom.arrays import as_numpy
from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Loss, Padded

ORDERS = "orders"


class AnyOrder(Objective):
    """`orders`: how many are drawn per target. Logs: as cross-entropy. In validation, targets keep their order."""

    def __init__(
        self,
        *,
        orders: int = 8,
        choose: Literal["best", "sample"] = "best",
        uniform: float = 0.1,
        label_smoothing: float = 0.0,
    ):
        super().__init__()
        if orders < 2 or not 0 <= uniform < 1:
            raise ValueError(f"orders = {orders} must be at least 2, and uniform = {uniform} in [0, 1)")
        self.orders, self.choose, self.uniform = orders, choose, uniform
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if task.running or task.eos is None:
            raise ValueError("trains sets, which end: not running text or single answers; take another objective")

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch with random orders of each target; EOS and padding keep their positions."""
        lengths, width = as_numpy(batch.targets.lengths), batch.targets.values.shape[1]
        positions = np.arange(width)
        fixed = positions >= lengths[:, None, None] - 1  # (B, 1, U)
        keys = np.where(fixed, 1 + positions, chance.random((len(lengths), self.orders, width)))
        return replace(batch, extra={**batch.extra, ORDERS: torch.from_numpy(keys.argsort(-1))})

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            loss: Loss = self.cross_entropy(model, batch, progress)
            return loss
        memory = model.encode(batch.source, len(batch.targets.lengths))
        orders: Tensor = batch.extra[ORDERS]  # (B, K, U)
        if progress < self.uniform:
            chosen = reorder(batch, orders[:, 0])
        else:
            with torch.no_grad():
                every = reorder(batch, orders.flatten(0, 1))
                log_probs = model.decoder.log_prob(memory, every.inputs, every.targets).unflatten(0, orders.shape[:2])
                if self.choose == "sample":  # the largest of log p plus Gumbel noise is a draw from p
                    log_probs = log_probs - torch.empty_like(log_probs).exponential_().log()
            best = log_probs.argmax(1)  # (B,)
            chosen = reorder(batch, orders[torch.arange(len(best), device=best.device), best])
        return self.cross_entropy.of(model.decoder(memory, chosen.inputs), chosen)


def reorder(batch: Batch, orders: Tensor) -> Batch:
    """The batch with its targets in other orders, n per source; rows of one source are adjacent.  (B * n, U)"""
    rows = torch.arange(len(orders), device=orders.device) // (len(orders) // len(batch.targets.lengths))
    targets = batch.targets.values[rows].gather(1, orders)
    inputs = torch.cat([batch.inputs.values[rows, :1], targets[:, :-1]], dim=1)
    lengths = batch.targets.lengths[rows]
    return replace(batch, inputs=Padded(inputs, lengths), targets=Padded(targets, lengths))
