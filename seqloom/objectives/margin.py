"""Beam-search optimisation: the target must stay in the beam, by a margin. Wiseman & Rush 2016, eq. 4 and algorithm 1.

f(w_t, h_{t-1}), the score of the last token as it comes from the decoder, says what a whole prefix is worth. At every
t a beam of the K best prefixes is searched, and the target's should be 1 above the K-th of them, at the end 1 above
the best of all others. Where it is not, the loss grows by

    Delta (1 - f(gold_t) + f(K-th))

and the beam starts anew from the target's prefix alone. Delta is 1, or 1 - BLEU of the two prefixes. Where the target
is the K-th itself there is a loss of Delta and no gradient; where there are no K prefixes, no loss. A prefix that ended
leaves the beam, whose place is filled again; in the search it would go on to compete with others that end.

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
from seqloom.contracts import Constraint, Decoder, Objective, Task
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
    """Where targets were not far enough above the beam, and by which prefix."""

    found: Tensor  # (B, U)
    symbols: Tensor  # (B, U): the last of the wrong prefix
    prefixes: Tensor  # (B, U, U): those before it
    on_gold: Tensor  # (B, U): those before it are the target's


class BeamSearchOptimisation(Objective):
    """constrained = true: the beam holds only what the task's constraints allow.

    Nothing is dropped out. The loss is a sum over violations, divided by sources.
    Logs: violations; beam_size, K.
    """

    improves: ClassVar[str] = "outputs"
    searched: ClassVar[dict[str, Any]] = {"rank_by": "last"}

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
        if not 2 <= first_beam_size <= beam_size:  # of a beam of 1 the target would be the K-th itself
            raise ValueError(f"first_beam_size = {first_beam_size} must be from 2 to beam_size = {beam_size}")
        self.constraints, self.constrained = constraints, constrained
        self.beam_size, self.first_beam_size, self.cost = beam_size, first_beam_size, cost
        self.cross_entropy = CrossEntropy()

    def suit(self, task: Task) -> None:
        if self.constrained and not task.constrained:
            raise ValueError("constrained = true, but the task constrains nothing: set task.bag, or leave it out")

    def width(self, progress: float) -> int:
        """K."""
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
        """By a search of all sources at once, `width` rows each."""
        targets, lengths = batch.targets.values, batch.targets.lengths
        (count, longest), device = targets.shape, targets.device
        sources, ranks = torch.arange(count, device=device), torch.arange(width, device=device)
        state = decoder.start_rows(memory, count * width)
        constraints = self.begun(decoder, memory, batch, width)
        tokens = torch.full((count * width,), decoder.bos, device=device)
        prefixes = targets.new_zeros(count * width, 0)
        live = (ranks == 0).expand(count, -1)  # (B, K)
        place = torch.zeros_like(lengths)  # of the target's prefix among the K
        steps = []
        for time in range(longest):
            logits, state = decoder.step(tokens, state, memory)
            gold, last = targets[:, time], lengths == time + 1  # (B,)
            right = logits.view(count, width, -1)[sources, place, gold]
            if constraints is not None:
                constraints = constraints.step(tokens)
                logits = constraints.forbid(logits.clone())
            scores = logits.view(count, width, -1).masked_fill(~live[:, :, None], float("-inf"))  # (B, K, V)
            scores[sources, place, gold] = right.masked_fill(last, float("-inf"))  # whatever the constraints say

            each = min(width, scores.shape[2])
            best, symbols = (part.view(count, -1) for part in topk(scores.flatten(0, 1), each))  # (B, K * each)
            best, chosen = topk(best, width)  # (B, K)
            symbols, parents = symbols.gather(1, chosen), chosen // each
            rank = torch.where(last, 0, width - 1)
            # Also where scores are not numbers: then the loss is none either, and training says so.
            violated = ~(right - best[sources, rank] >= 1) & (time < lengths)
            parent = parents[sources, rank]
            before = functional.pad(prefixes.view(count, width, -1)[sources, parent], (0, longest - time))  # (B, U)
            steps.append((violated, symbols[sources, rank], before, parent == place))

            anew = violated[:, None]
            symbols, parents = torch.where(anew, gold[:, None], symbols), torch.where(anew, place[:, None], parents)
            live = torch.where(anew, ranks == 0, best > float("-inf"))
            if decoder.eos is not None:
                live = live & (symbols != decoder.eos)
            place = ((parents == place[:, None]) & (symbols == gold[:, None])).int().argmax(dim=1)
            rows, tokens = (sources[:, None] * width + parents).flatten(), symbols.flatten()
            state, constraints = select(state, rows), constraints and constraints.select(rows)
            prefixes = torch.cat([prefixes[rows], tokens[:, None]], dim=1)
        return Violations(*(torch.stack(part, dim=1) for part in zip(*steps)))

    def begun(self, decoder: Decoder, memory: Memory, batch: Batch, width: int) -> Constraints | None:
        """The constraints of the task before the first token, `width` rows a source; the limit ends nothing here."""
        if not self.constrained:
            return None
        found = self.constraints(batch.source) if self.constraints else []
        if not found:
            raise SeqloomError(
                "objective.constrained = true, but the task constrains nothing: set task.bag, or leave it out"
            )
        limit = torch.maximum(decoder.limit(memory), batch.targets.lengths)
        begun = replace(Constraints.begin(found, decoder, limit, None), eos=None)
        return begun.select(memory.owner(len(limit) * width))

    def total(self, decoder: Decoder, memory: Memory, batch: Batch, violations: Violations) -> Tensor:
        """The loss of all violations, with a gradient: targets in one pass, wrong prefixes in another."""
        thought, project = decoder(memory, batch.inputs).positions
        entries, places = violations.found.nonzero(as_tuple=True)  # (N,)
        gold, wrong = batch.targets.values[entries, places], violations.symbols[entries, places]
        prefixes = violations.prefixes[entries, places]  # (N, U)
        right = hidden = thought[entries, places]  # (N, D)
        (others,) = (~violations.on_gold[entries, places]).nonzero(as_tuple=True)  # who need a pass of their own
        if len(others):
            ends, rows = places[others], torch.arange(len(others), device=others.device)
            begin = torch.full_like(ends, decoder.bos)[:, None]
            inputs = torch.cat([begin, prefixes[others, : int(ends.max())]], dim=1)
            read = decoder(memory.select(entries[others]), Padded(inputs, ends + 1))
            hidden = hidden.index_copy(0, others, read.positions[0][rows, ends])
        margins = 1 - scores_of(right, project, gold) + scores_of(hidden, project, wrong)
        margins = margins.clamp(min=0)  # rounded otherwise than in the search, one may be kept after all
        if self.cost == "bleu":
            said = [[*row[:place], symbol] for row, place, symbol in lists(prefixes, places, wrong)]
            meant = [row[: place + 1] for row, place in lists(batch.targets.values[entries], places)]
            margins = margins * torch.as_tensor(
                1 - bleu.rewards(said, meant), dtype=margins.dtype, device=margins.device
            )
        return margins.sum()


def scores_of(hidden: Tensor, project: Callable[[Tensor], Tensor], symbols: Tensor) -> Tensor:
    """The logit of one token a row.  (N, D), (N,) -> (N,)"""
    if not isinstance(project, Projection):
        return project(hidden).gather(1, symbols[:, None])[:, 0]
    scores = (hidden * functional.embedding(symbols, project.weight)).sum(dim=1)
    return scores if project.bias is None else scores + project.bias[symbols]


def lists(*columns: Tensor) -> Any:
    return zip(*(column.tolist() for column in columns))
