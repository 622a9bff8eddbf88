"""Beam-search optimisation: the target must stay in the beam, by a margin. Wiseman & Rush 2016, eq. 4 and algorithm 1.

f(w_t, h_{t-1}), the logit of the last token, is the score of a whole prefix. At every t a beam of the K best prefixes
is searched, and the target's should be 1 above the K-th of them, at the end 1 above the best of all others. Where it is
not, the loss grows by

    Delta (1 - f(gold_t) + f(K-th))

and the beam restarts from the target's prefix alone. Delta is 1, or 1 - BLEU of the two prefixes. Where the target is
the K-th itself, the loss is Delta and has no gradient; where there are fewer than K prefixes, there is none. A prefix
that ended leaves the beam and is replaced; in the search it would go on to compete with others that end.

The beam grows with training: each K from `first_beam_size` to `beam_size` has an equal share of it,

    K = min(first_beam_size + floor(progress (beam_size - first_beam_size + 1)), beam_size)

Begin with a model trained by cross-entropy, and search with rank_by = "last" and a beam of one less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.arrays import topk
from seqloom.contracts import Constraint, Decoder, Objective, Search, Task
from seqloom.errors import SeqloomError
from seqloom.metrics import bleu
from seqloom.nn.model import Model
from seqloom.nn.ops.dropout import without_dropout
from seqloom.nn.ops.linear import Projection
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.constraints.combined import Constraints
from seqloom.types import Batch, Loss, Memory, Padded, select

Cost = Literal["one", "bleu"]


@dataclass(frozen=True)
class Violations:
    """Where targets were not far enough above the beam, and the prefixes they were compared with."""

    found: Tensor  # (B, U)
    tokens: Tensor  # (B, U): the last token of the wrong prefix
    prefixes: Tensor  # (B, U, U): the tokens before it
    on_gold: Tensor  # (B, U): whether the tokens before it are the target's


class BeamSearchOptimisation(Objective):
    """`constrained`: the beam holds only what the task's constraints allow.

    Without drop-out. The loss is a sum over violations. Count: sources. Logs: violations; beam_size, K.
    """

    improves: ClassVar[str] = "outputs"
    steps: ClassVar[bool] = True

    def __init__(
        self,
        *,
        constraints: Callable[[Padded | None], list[Constraint]] | None,
        beam_size: int = 6,
        first_beam_size: int = 2,
        cost: Cost = "one",
        constrained: bool = False,
    ):
        super().__init__()
        if not 2 <= first_beam_size <= beam_size:  # in a beam of 1 the target is the K-th itself
            raise ValueError(f"first_beam_size = {first_beam_size} must be from 2 to beam_size = {beam_size}")
        self.constraints, self.constrained = constraints, constrained
        self.beam_size, self.first_beam_size, self.cost = beam_size, first_beam_size, cost
        self.cross_entropy = CrossEntropy()

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if self.constrained and not task.constrained:
            raise ValueError("constrained = true, but the task has no constraints: set task.bag, or leave it out")
        if (rank_by := getattr(search, "rank_by", None)) != "last":
            raise ValueError(f'trains the last score of a hypothesis: set search.rank_by = "last", not "{rank_by}"')

    def width(self, progress: float) -> int:
        """K, the beam size at this point of the training."""
        sizes = self.beam_size - self.first_beam_size + 1
        return min(self.first_beam_size + int(progress * sizes), self.beam_size)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        if not self.training:
            loss: Loss = self.cross_entropy(model, batch, progress)
            return loss
        if batch.carry:
            raise SeqloomError("beam-search optimisation needs outputs that end: set task.carry = false")
        width, count = self.width(progress), len(batch.targets.lengths)
        with without_dropout(model):
            memory = model.encode(batch.source, count)
            violations = self.violations(model.decoder, memory, batch, width)
            total = self.total(model.decoder, memory, batch, violations)
        sources = torch.tensor(count, device=total.device)
        return Loss(total, sources, {"violations": violations.found.sum(), "beam_size": sources * width})

    @torch.no_grad()
    def violations(self, decoder: Decoder, memory: Memory, batch: Batch, width: int) -> Violations:
        """The violations in a beam search of all sources at once, `width` rows each."""
        targets, lengths = batch.targets.values, batch.targets.lengths
        (count, longest), device = targets.shape, targets.device
        sources, ranks = torch.arange(count, device=device), torch.arange(width, device=device)
        state = decoder.start_rows(memory, count * width)
        constraints = self.start_constraints(decoder, memory, batch, width)
        tokens = torch.full((count * width,), decoder.bos, device=device)
        prefixes = targets.new_zeros(count * width, 0)
        live = (ranks == 0).expand(count, -1)  # (B, K)
        gold_row = torch.zeros_like(lengths)  # the row of the target's prefix among the K
        steps = []
        for time in range(longest):
            logits, state = decoder.step(tokens, state, memory)
            gold, last = targets[:, time], lengths == time + 1  # (B,)
            right = logits.view(count, width, -1)[sources, gold_row, gold]
            if constraints is not None:
                constraints = constraints.step(tokens)
                logits = constraints.forbid(logits.clone())
            scores = logits.view(count, width, -1).masked_fill(~live[:, :, None], float("-inf"))  # (B, K, V)
            scores[sources, gold_row, gold] = right.masked_fill(last, float("-inf"))  # whatever the constraints

            each = min(width, scores.shape[2])
            best, choices = (part.view(count, -1) for part in topk(scores.flatten(0, 1), each))  # (B, K * each)
            best, chosen = topk(best, width)  # (B, K)
            choices, parents = choices.gather(1, chosen), chosen // each
            rank = torch.where(last, 0, width - 1)
            # Also where scores are NaN: the loss is then NaN too, which training reports.
            violated = ~(right - best[sources, rank] >= 1) & (time < lengths)
            parent = parents[sources, rank]
            before = functional.pad(prefixes.view(count, width, -1)[sources, parent], (0, longest - time))  # (B, U)
            steps.append((violated, choices[sources, rank], before, parent == gold_row))

            anew = violated[:, None]
            choices, parents = torch.where(anew, gold[:, None], choices), torch.where(anew, gold_row[:, None], parents)
            live = torch.where(anew, ranks == 0, best > float("-inf"))
            if decoder.eos is not None:
                live = live & (choices != decoder.eos)
            gold_row = ((parents == gold_row[:, None]) & (choices == gold[:, None])).int().argmax(dim=1)
            rows, tokens = (sources[:, None] * width + parents).flatten(), choices.flatten()
            state, constraints = select(state, rows), constraints and constraints.select(rows)
            prefixes = torch.cat([prefixes[rows], tokens[:, None]], dim=1)
        return Violations(*(torch.stack(part, dim=1) for part in zip(*steps)))

    def start_constraints(self, decoder: Decoder, memory: Memory, batch: Batch, width: int) -> Constraints | None:
        """The task's constraints before the first token, `width` rows per source; the length limit forces no EOS."""
        if not self.constrained:
            return None
        found = self.constraints(batch.source) if self.constraints else []
        if not found:
            raise SeqloomError(
                "objective.constrained = true, but the task has no constraints: set task.bag, or leave it out"
            )
        limit = torch.maximum(decoder.limit(memory), batch.targets.lengths)
        started = replace(Constraints.begin(found, decoder, limit, None), eos=None)
        return started.select(memory.owner(len(limit) * width))

    def total(self, decoder: Decoder, memory: Memory, batch: Batch, violations: Violations) -> Tensor:
        """The loss of all violations, with a gradient: one pass for targets, one for wrong prefixes."""
        vectors, project = decoder(memory, batch.inputs).positions
        entries, positions = violations.found.nonzero(as_tuple=True)  # (N,)
        gold, wrong = batch.targets.values[entries, positions], violations.tokens[entries, positions]
        prefixes = violations.prefixes[entries, positions]  # (N, U)
        right = hidden = vectors[entries, positions]  # (N, D)
        (others,) = (~violations.on_gold[entries, positions]).nonzero(as_tuple=True)  # these need a pass of their own
        if len(others):
            ends, rows = positions[others], torch.arange(len(others), device=others.device)
            bos = torch.full_like(ends, decoder.bos)[:, None]
            inputs = torch.cat([bos, prefixes[others, : int(ends.max())]], dim=1)
            read = decoder(memory.select(entries[others]), Padded(inputs, ends + 1))
            hidden = hidden.index_copy(0, others, read.positions[0][rows, ends])
        margins = 1 - scores_of(right, project, gold) + scores_of(hidden, project, wrong)
        margins = margins.clamp(min=0)  # a margin may be kept after all, since one pass rounds differently from steps
        if self.cost == "bleu":
            outputs = [[*row[:position], token] for row, position, token in lists(prefixes, positions, wrong)]
            references = [row[: position + 1] for row, position in lists(batch.targets.values[entries], positions)]
            margins = margins * torch.as_tensor(
                1 - bleu.rewards(outputs, references), dtype=margins.dtype, device=margins.device
            )
        return margins.sum()


def scores_of(hidden: Tensor, project: Callable[[Tensor], Tensor], tokens: Tensor) -> Tensor:
    """The logit of one token per row.  (N, D), (N,) -> (N,)"""
    if not isinstance(project, Projection):
        return project(hidden).gather(1, tokens[:, None])[:, 0]
    scores = (hidden * functional.embedding(tokens, project.weight)).sum(dim=1)
    return scores if project.bias is None else scores + project.bias[tokens]


def lists(*columns: Tensor) -> Any:
    return zip(*(column.tolist() for column in columns))
