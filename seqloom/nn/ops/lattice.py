"""All ways through a lattice of inputs and labels at once: the sum over alignments in transducers.

At (t, u) a model stands at input t and has written u labels. It goes on to the next input with log-probability
advance[t, u], or writes the next label with emit[t, u]; from the last input, all labels written, it ends with `final`:
    alpha(t, u) = alpha(t - 1, u) advance(t - 1, u) + alpha(t, u - 1) emit(t, u - 1)        Graves 2012, eq. 16
    P = alpha(T - 1, U) final
With Graves 2012 the final step is one more blank, with Yu, Buys & Blunsom 2016 it is EOS at the last input.

What stands on one anti-diagonal t + u depends on the one before alone: there are T + U steps, each for all rows and all
u. They are made in float64, because alpha of a long source is a large number. Memory: six arrays of B (T + U) (U + 1)
numbers. A softmax over V tokens at each place (`token_log_probs`) takes one array of B T (U + 1) V beside the logits,
which becomes their gradient; where logits are inputs[t] + outputs[u], `factored_token_log_probs` needs none.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.types import positions_below

ROWS = 2048  # places whose scores are handled at a time, while they are at hand
NEVER = float("-inf")


def all_paths(advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
    """The log-probability of all paths.  (B, T, U + 1), (B, T, U), (B,), and lengths (B,), (B,) -> (B,)

    What stands beyond the lengths does not matter and has gradient 0. A row without a path has -inf and gradient 0; one
    without inputs has a path only if it has no labels, and then a certain one.
    """
    total: Tensor = AllPaths.apply(advance, emit, final, frames, labels)
    return total


def best_path(advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
    """At which input the likeliest path writes each label; -1 beyond a row's labels.  (B, U)"""
    with torch.no_grad():
        lattice = Lattice(advance, emit, final, frames, labels)
        best = lattice.from_first(torch.maximum)  # (T + U + 1, B, U + 1)
        count, rows, width = best.shape
        written = torch.full((rows, 1), width - 1, device=best.device)
        places = torch.full((rows, width), -1, device=best.device)
        for diagonal in range(count - 2, -1, -1):
            before = (written - 1).clamp_min(0)
            stayed = (best[diagonal] + lattice.advance[diagonal]).gather(1, written)
            wrote = (best[diagonal] + lattice.emit[diagonal]).gather(1, before)
            is_label = (written > 0) & ((wrote > stayed) | (written > diagonal))
            written = torch.where(is_label, before, written)
            places.scatter_(1, torch.where(is_label, before, width - 1), diagonal - before)
        return places[:, : width - 1].masked_fill(~positions_below(labels, width - 1), -1)


def token_log_probs(logits: Tensor, symbols: Tensor, left_out: Sequence[int] = ()) -> Tensor:
    """Log-probabilities of a few tokens for each u, at all t.  (B, T, W, V), (few, B, W) -> (few, B, T, W)

    Those left out have no part in the softmax, and -inf where they are asked for. There is one backward pass only.
    """
    found: Tensor = TokenLogProbs.apply(logits, symbols, tuple(left_out), torch.is_grad_enabled())
    return found


def factored_token_log_probs(inputs: Tensor, outputs: Tensor, symbols: Tensor, left_out: Sequence[int] = ()) -> Tensor:
    """The same of logits inputs[t] + outputs[u]: sum_v e^i[v] e^o[v] is a product of matrices.  (B, T, V), (B, W, V)

    A logit may be 700 below the largest before its exponential, in float64, is lost.
    """
    wide = torch.promote_types(inputs.dtype, torch.float32)
    inputs, outputs = inputs.to(wide), outputs.to(wide)
    if left_out:
        inputs = inputs.index_fill(2, torch.tensor(left_out, device=inputs.device), NEVER)
    tops = inputs.detach().amax(2, keepdim=True), outputs.detach().amax(2, keepdim=True)  # (B, T, 1), (B, W, 1)
    exponentials = [(logits - top).to(exact(inputs)).exp() for logits, top in zip((inputs, outputs), tops)]
    sums = exponentials[0] @ exponentials[1].mT  # (B, T, W)
    normaliser = sums.clamp_min(torch.finfo(sums.dtype).tiny).log().to(wide) + tops[0] + tops[1].mT
    rows, width = inputs.shape[1], outputs.shape[1]
    return torch.stack(
        [
            inputs.gather(2, each[:, None].expand(-1, rows, width))
            + outputs.gather(2, each[:, :, None]).mT
            - normaliser
            for each in symbols
        ]
    )


def exact(like: Tensor) -> torch.dtype:
    """The best there is to add many small numbers in."""
    return torch.float32 if like.device.type == "mps" else torch.float64


class Lattice:
    """The steps by anti-diagonals: entry [t + u, row, u] of an array is that of (t, u).

    Beyond its own last corner a row goes on by certain steps, first over inputs and then over labels, so that all rows
    end in the corner (T, U). Where no row may go stands -inf.
    """

    def __init__(self, advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor):
        self.rows, self.inputs, self.width = advance.shape
        time = torch.arange(self.inputs, device=frames.device)[:, None]
        count = torch.arange(self.width, device=frames.device)
        last, all_labels = frames[:, None, None] - 1, labels[:, None, None]
        self.may_advance = (time < last) & (count <= all_labels)  # (B, T, U + 1)
        self.may_emit = (time <= last) & (count[:-1] < all_labels)  # (B, T, U)
        ends = final[:, None, None].masked_fill(time != last, 0)
        ends = ends.masked_fill((time < last) | (count != all_labels), NEVER)
        self.advance = self.by_diagonals(torch.where(self.may_advance, advance, ends))
        certain = emit.new_zeros(self.rows, 1, self.width - 1).masked_fill(count[:-1] < all_labels, NEVER)
        self.emit = self.by_diagonals(torch.cat([emit.masked_fill(~self.may_emit, NEVER), certain], dim=1))

    def by_diagonals(self, values: Tensor) -> Tensor:
        """(B, T or T + 1, U or U + 1) -> (T + U + 1, B, U + 1)"""
        shape = (self.inputs + self.width, self.rows, self.width)
        diagonals = values.new_full(shape, NEVER, dtype=exact(values))
        self.by_rows(diagonals, values).copy_(values)
        return diagonals

    def by_rows(self, diagonals: Tensor, like: Tensor) -> Tensor:
        """A view of the same numbers, in the shape of others."""
        apart = self.rows * self.width
        return diagonals.as_strided(like.shape, (self.width, apart, apart + 1))

    def from_first(self, join: Callable[..., Tensor]) -> Tensor:
        """All that leads to each place, joined: alpha.  (T + U + 1, B, U + 1)"""
        alpha = torch.full_like(self.advance, NEVER)
        alpha[0, :, 0] = 0
        stay, write = torch.empty_like(alpha[0]), torch.full_like(alpha[0], NEVER)
        written = write[:, 1:]  # nothing comes from before the first label
        left, emit = alpha[:, :, :-1], self.emit[:, :, :-1]
        for here, beside, on, out, there in zip(alpha, left, self.advance, emit, alpha[1:]):
            torch.add(here, on, out=stay)
            torch.add(beside, out, out=written)
            join(stay, write, out=there)
        return alpha

    def to_last(self, join: Callable[..., Tensor]) -> Tensor:
        """All that leads from each place to the last, joined: beta.  (T + U + 1, B, U + 1)"""
        beta = torch.full_like(self.advance, NEVER)
        beta[-1, :, -1] = 0
        stay, write = torch.empty_like(beta[0]), torch.full_like(beta[0], NEVER)
        written = write[:, :-1]  # nothing leads beyond the last label
        right, emit = beta[1:, :, 1:], self.emit[:-1, :, :-1]
        steps = list(zip(beta[1:], right, self.advance[:-1], emit, beta[:-1]))
        for there, beside, on, out, here in reversed(steps):
            torch.add(there, on, out=stay)
            torch.add(beside, out, out=written)
            join(stay, write, out=here)
        return beta


class AllPaths(torch.autograd.Function):
    """The gradient at a step is how likely it was taken: alpha, the step and beta, divided by P."""

    @staticmethod
    def forward(context: Any, advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
        lattice = Lattice(advance, emit, final, frames, labels)
        alpha = lattice.from_first(torch.logaddexp)
        context.lattice, context.alpha = lattice, alpha
        context.save_for_backward(advance, emit, final, frames)
        return alpha[-1, :, -1].to(advance.dtype)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        advance, emit, final, frames = context.saved_tensors
        lattice, alpha = context.lattice, context.alpha
        beta = lattice.to_last(torch.logaddexp)
        total = alpha[-1, :, -1]
        possible = total != NEVER
        gradient = gradient * possible
        share = gradient[:, None, None]
        before = alpha[:-1] - total.masked_fill(~possible, 0)[:, None]  # (T + U, B, U + 1)
        advanced = (before + lattice.advance[:-1]).add_(beta[1:]).exp_()
        emitted = before.add_(lattice.emit[:-1])
        emitted[:, :, :-1] += beta[1:, :, 1:]
        emitted.exp_()
        of_advance = lattice.by_rows(advanced, advance).to(advance.dtype).masked_fill(~lattice.may_advance, 0)
        of_emit = lattice.by_rows(emitted, emit).to(emit.dtype).masked_fill(~lattice.may_emit, 0)
        return of_advance * share, of_emit * share, gradient.to(final.dtype) * (frames > 0), None, None


class TokenLogProbs(torch.autograd.Function):
    """The softmax of all places is kept and becomes the gradient where it lies."""

    @staticmethod
    def forward(context: Any, logits: Tensor, symbols: Tensor, left_out: tuple[int, ...], gradients: bool) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        flat = logits.flatten(0, 2)  # (B T W, V)
        chosen = symbols.permute(1, 2, 0)[:, None].expand(-1, logits.shape[1], -1, -1).flatten(0, 2)  # (B T W, few)
        absent = torch.tensor(left_out, dtype=torch.long, device=logits.device)
        scratch = torch.empty_like(flat[:ROWS], dtype=wide)
        softmax = torch.empty_like(flat if gradients else flat[:ROWS], dtype=wide)
        found = softmax.new_empty(chosen.shape)
        for start in range(0, len(flat), ROWS):
            rows = slice(start, start + ROWS)
            scores = scratch[: len(flat[rows])].copy_(flat[rows]).index_fill_(1, absent, NEVER)
            into = softmax[rows] if gradients else softmax[: len(scores)]
            torch.softmax(scores, 1, out=into)
            normaliser = scores.amax(1, keepdim=True) - into.amax(1, keepdim=True).log_()
            torch.sub(scores.gather(1, chosen[rows]), normaliser, out=found[rows])
        if gradients:
            context.softmax, context.shape, context.dtype = softmax, logits.shape, logits.dtype
            context.save_for_backward(chosen)
        return found.view(*logits.shape[:3], -1).permute(3, 0, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (chosen,) = context.saved_tensors
        if context.softmax is None:
            raise RuntimeError("token_log_probs: a second backward pass, where the first has used up the softmax")
        softmax, context.softmax = context.softmax, None
        of_chosen = gradient.permute(1, 2, 3, 0).flatten(0, 2)  # (B T W, few)
        softmax.mul_(-of_chosen.sum(1, keepdim=True)).scatter_add_(1, chosen, of_chosen)
        return softmax.to(context.dtype).view(context.shape), None, None, None
