"""Cross-entropy under teacher forcing, with label smoothing.

-(1 - e) log p(gold) - e mean(log p). Szegedy et al. 2016, section 7; the mean is over tokens that can occur.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqloom.contracts import Objective
from seqloom.errors import SeqloomError
from seqloom.nn.model import Model
from seqloom.nn.ops.balance import evenness, squared_variation
from seqloom.nn.ops.linear import Projection
from seqloom.nn.ops.packing import Packing
from seqloom.types import COUNTED, Batch, Costs, Loss, Output, Padded, detach, sum_costs

NO_COSTS: Mapping[str, float] = MappingProxyType({})
ROWS = 512  # are projected at a time: the logits of a whole batch would be the largest tensors of all


class CrossEntropy(Objective):
    """Logs: nll, the sum of -log p(gold) without smoothing; correct, how often gold was the likeliest; each cost.

    `costs` weighs costs that parts of the model report, by name: {ponder = 0.001}. They count in training only.
    Costs of one number per row (ponder, steps, coverage) are summed over rows and parts. Those of experts (importance,
    load) are summed over the batch for each expert of a layer; what is weighed is the squared coefficient of variation
    of these sums (Shazeer et al. 2017, eq. 7 and 11), summed over layers, times the number of target tokens: the loss
    is divided by that number, so the weight means the same in batches of any size. Micro-batches and processes have
    coefficients of their own. Beside them `balance` is logged: the entropy of the load, or without noise of the
    importance, divided by log(experts), as a mean over layers.
    """

    def __init__(self, *, label_smoothing: float = 0.0, costs: Mapping[str, float] = NO_COSTS):
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing = {label_smoothing} must be in [0, 1)")
        for name, weight in costs.items():
            if not 0 <= weight < float("inf"):
                raise ValueError(f"costs.{name} = {weight} must be 0 or more")
        self.label_smoothing, self.costs = label_smoothing, dict(costs)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        output = model(batch)
        loss = self.of(output, batch)
        self.refuse_unknown(output)
        sums = {name: cost.sum() for name, cost in sum_costs(output.costs).items()}
        shares = expert_shares(output.costs)
        for name, layers in shares.items():
            sums[name] = loss.count * torch.stack([squared_variation(each) for each in layers]).sum()
        total = loss.total
        if self.training:
            total = total + sum(weight * sums[name] for name, weight in self.costs.items())
        if shares:
            taken = [evenness(each.detach()) for each in shares.get("load", shares["importance"])]
            sums["balance"] = loss.count * torch.stack(taken).mean()
        return replace(loss, total=total, logs={**loss.logs, **{name: each.detach() for name, each in sums.items()}})

    def refuse_unknown(self, output: Output) -> None:
        """Refuse a weight for a cost that no part of the model reports."""
        reported = {name for entries in output.costs.values() for name in entries}
        if unknown := [name for name in self.costs if name not in reported]:
            known = ", ".join(sorted(reported)) or "none"
            raise SeqloomError(f"objective.costs.{unknown[0]}: no part of this model has such a cost; it has {known}")

    def of(self, output: Output, batch: Batch, weights: Tensor | None = None) -> Loss:
        """The loss of a decoder's output, whose inputs need not be those of the batch.

        With weights (B,), all sums are weighted by row, the count included. `batch.extra` may say which tokens count.
        """
        if weights is not None:
            weights = weights[:, None].expand(batch.targets.mask.shape)
        elif COUNTED in batch.extra:
            weights = batch.extra[COUNTED]
        count = batch.targets.lengths.sum() if weights is None else (weights * batch.targets.mask).sum()
        smoothing = self.label_smoothing if self.training else 0.0
        total, nll, correct = cross_entropy(output, batch.targets, smoothing, weights)
        state = detach(output.state) if batch.carry else None
        return Loss(total, count, {"nll": nll, "correct": correct}, state)


def expert_shares(spent: Costs) -> dict[str, list[Tensor]]:
    """The costs of experts, summed over the batch: one tensor (experts,) for each layer, by name."""
    found: dict[str, list[Tensor]] = {}
    for entries in spent.values():
        for name, cost in entries.items():
            if cost.ndim == 2:
                found.setdefault(name, []).append(cost.sum(0))
    return found


def cross_entropy(
    output: Output, targets: Padded, smoothing: float = 0.0, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums of `smoothed_cross_entropy` over all target tokens; weights are (rows, U). Where they are 0 nothing is
    computed.
    """
    mask = targets.mask
    if weights is not None and (counted := mask & (weights != 0)).any():
        mask = counted
    packing, (vectors, project) = Packing(mask), output.positions
    hidden, tokens = packing.pack(vectors), packing.pack(targets.values)  # (N, D), (N,): no padding
    shares = None if weights is None else packing.pack(weights)
    if isinstance(project, Projection):
        return projected_cross_entropy(hidden, project, tokens, smoothing, shares)
    return smoothed_cross_entropy(project(hidden), tokens, smoothing, shares)


def smoothed_cross_entropy(
    scores: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over rows: the smoothed loss, -log p(gold), how often gold was the likeliest.  (N, V), (N,)

    Weighted by weights (N,), if given. Only the first has a gradient, at the scores.
    """
    sums: tuple[Tensor, Tensor, Tensor] = SmoothedCrossEntropy.apply(scores, targets, smoothing, weights)
    return sums


def projected_cross_entropy(
    hidden: Tensor, projection: Projection, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for the scores projection(hidden), of which only ROWS rows exist at a time.  (N, D), (N,)"""
    gradients = torch.is_grad_enabled()
    sums: tuple[Tensor, Tensor, Tensor] = ProjectedCrossEntropy.apply(
        hidden, projection.weight, projection.bias, targets, smoothing, weights, gradients
    )
    return sums


@dataclass
class Losses:
    """The loss of some rows, its parts, and its gradient."""

    log_probs: Tensor  # (N, V)
    targets: Tensor  # (N,)
    smoothing: float
    weights: Tensor | None = None  # (N,)

    def __post_init__(self) -> None:
        gold = self.log_probs.gather(1, self.targets[:, None])[:, 0]
        self.correct = self.sum(gold == self.log_probs.amax(dim=-1))
        self.nll = self.total = -self.sum(gold)
        self.possible: Tensor | None = None  # (N, V): tokens that can occur, if not all can
        if self.smoothing:
            mean = self.log_probs.mean(dim=-1)
            if not mean.isfinite().all():  # tokens that cannot occur get no share
                self.possible = self.log_probs.isfinite()
                mean = self.log_probs.masked_fill(~self.possible, 0).sum(-1) / self.possible.sum(-1)
            self.total = (1 - self.smoothing) * self.nll - self.smoothing * self.sum(mean)

    def sum(self, values: Tensor) -> Tensor:
        """(N,) -> ()"""
        return values.sum() if self.weights is None else (values * self.weights).sum()

    def gradient(self) -> Tensor:
        """With respect to the scores: p - (1 - e) gold - e / V. Overwrites the log-probabilities.  (N, V)"""
        gradient = self.log_probs.exp_()
        if self.possible is not None:
            gradient.sub_(self.possible * (self.smoothing / self.possible.sum(-1, keepdim=True)))
        elif self.smoothing:
            gradient.sub_(self.smoothing / gradient.shape[-1])
        share = gradient.new_full((len(self.targets), 1), self.smoothing - 1)
        gradient.scatter_add_(1, self.targets[:, None], share)
        return gradient if self.weights is None else gradient.mul_(self.weights[:, None])


def losses(scores: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None) -> Losses:
    if scores.dtype in (torch.bfloat16, torch.float16):
        scores = scores.float()  # a sum of many losses needs the precision
    if weights is not None:
        weights = weights.to(scores.dtype)
    return Losses(torch.log_softmax(scores, dim=-1), targets, smoothing, weights)


class SmoothedCrossEntropy(torch.autograd.Function):
    """With a hand-written gradient: a third of the passes over (N, V) that autograd makes."""

    @staticmethod
    def forward(
        context: Any, scores: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        found = losses(scores, targets, smoothing, weights)
        context.dtype = scores.dtype
        context.save_for_backward(found.gradient())
        total, nll = found.total.clone(), found.nll
        context.mark_non_differentiable(nll, found.correct)
        return total, nll, found.correct

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = context.saved_tensors
        return (gradient * scale).to(context.dtype), None, None, None


class ProjectedCrossEntropy(torch.autograd.Function):
    """Scores, losses and gradients of ROWS rows at a time, which stay in the cache."""

    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        weights: Tensor | None,
        gradients: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        sums: list[Tensor] = []
        of_hidden: list[Tensor] = []
        of_weight = torch.zeros_like(weight) if gradients else None
        of_bias = torch.zeros_like(bias) if gradients and bias is not None else None
        shares = repeat(None) if weights is None else weights.split(ROWS)
        for rows, gold, share in zip(hidden.split(ROWS), targets.split(ROWS), shares):
            found = losses(functional.linear(rows, weight, bias), gold, smoothing, share)
            sums.append(torch.stack([found.total, found.nll, found.correct.to(found.nll.dtype)]))
            if of_weight is not None:
                gradient = found.gradient().to(rows.dtype)
                of_hidden.append(gradient @ weight.to(rows.dtype))
                of_weight.addmm_(gradient.t().to(weight.dtype), rows.to(weight.dtype))
                if of_bias is not None:
                    of_bias += gradient.sum(dim=0)
        if of_weight is not None:
            context.save_for_backward(torch.cat(of_hidden), of_weight, of_bias)
        total, nll, correct = torch.stack(sums).sum(dim=0).unbind()
        context.mark_non_differentiable(nll, correct)
        return total.clone(), nll, correct

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * scale.to(part.dtype) for part in context.saved_tensors]
        return *scaled, None, None, None, None
