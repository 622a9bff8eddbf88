"""The forward-backward algorithm on a lattice of frames and labels: the sum over all alignments of a transducer.

At (t, u) a model is at frame t and has written u labels. It advances to the next frame with log-probability
advance[t, u], or writes the next label with emit[t, u]; from the last frame, all labels written, it ends with `final`:
    alpha(t, u) = alpha(t - 1, u) advance(t - 1, u) + alpha(t, u - 1) emit(t, u - 1)        Graves 2012, eq. 16
    P = alpha(T - 1, U) final
In Graves 2012 the final step is one more blank, in Yu, Buys & Blunsom 2016 it is EOS at the last frame.

An anti-diagonal t + u depends on the one before it alone: there are T + U steps, each for all rows and all u. They are
computed in float64, because alpha of a long source is a large number. Memory: six arrays of B (T + U) (U + 1) numbers.
A softmax over V tokens at each (t, u) (`token_log_probs`) takes one array of B T (U + 1) V beside the logits, which
becomes their gradient; where logits are inputs[t] + outputs[u], `factored_token_log_probs` needs no such array.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.types import positions_below

ROWS = 2048  # lattice nodes whose logits are normalised at a time, so that they stay in the CPU cache
NEVER = float("-inf")


def all_paths(advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
    """The log-probability summed over all paths.  (B, T, U + 1), (B, T, U), (B,), and lengths (B,), (B,) -> (B,)

    Values beyond the lengths are ignored and have gradient 0. A row without a path has -inf and gradient 0. A row
    without frames has a path only if it has no labels, and its log-probability is 0.
    """
    total: Tensor = AllPaths.apply(advance, emit, final, frames, labels)
    return total


def best_path(advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
    """The frame at which the most probable path writes each label; -1 beyond a row's labels.  (B, U)"""
    with torch.no_grad():
        lattice = Lattice(advance, emit, final, frames, labels)
        best = lattice.forward_scores(torch.maximum)  # (T + U + 1, B, U + 1)
        count, rows, width = best.shape
        written = torch.full((rows, 1), width - 1, device=best.device)
        frame_of = torch.full((rows, width), -1, device=best.device)
        for diagonal in range(count - 2, -1, -1):
            before = (written - 1).clamp_min(0)
            advanced = (best[diagonal] + lattice.advance[diagonal]).gather(1, written)
            emitted = (best[diagonal] + lattice.emit[diagonal]).gather(1, before)
            is_label = (written > 0) & ((emitted > advanced) | (written > diagonal))
            written = torch.where(is_label, before, written)
            frame_of.scatter_(1, torch.where(is_label, before, width - 1), diagonal - before)
        return frame_of[:, : width - 1].masked_fill(~positions_below(labels, width - 1), -1)


def token_log_probs(logits: Tensor, tokens: Tensor, left_out: Sequence[int] = ()) -> Tensor:
    """Log-probabilities of a few tokens for each u, at all t.  (B, T, W, V), (few, B, W) -> (few, B, T, W)

    Tokens left out of the softmax have -inf. The graph can be run backward only once.
    """
    log_probs: Tensor = TokenLogProbs.apply(logits, tokens, tuple(left_out), torch.is_grad_enabled())
    return log_probs


def factored_token_log_probs(inputs: Tensor, outputs: Tensor, tokens: Tensor, left_out: Sequence[int] = ()) -> Tensor:
    """The same for logits inputs[t] + outputs[u]: sum_v e^i[v] e^o[v] is a matrix product.  (B, T, V), (B, W, V)

    In float64 the exponential of a logit underflows only 700 below the largest.
    """
    wide = torch.promote_types(inputs.dtype, torch.float32)
    inputs, outputs = inputs.to(wide), outputs.to(wide)
    if left_out:
        inputs = inputs.index_fill(2, torch.tensor(left_out, device=inputs.device), NEVER)
    tops = inputs.detach().amax(2, keepdim=True), outputs.detach().amax(2, keepdim=True)  # (B, T, 1), (B, W, 1)
    exponentials = [(logits - top).to(accumulation_dtype(inputs)).exp() for logits, top in zip((inputs, outputs), tops)]
    sums = exponentials[0] @ exponentials[1].mT  # (B, T, W)
    normaliser = sums.clamp_min(torch.finfo(sums.dtype).tiny).log().to(wide) + tops[0] + tops[1].mT
    rows, width = inputs.shape[1], outputs.shape[1]
    return torch.stack(
        [
            inputs.gather(2, each[:, None].expand(-1, rows, width))
            + outputs.gather(2, each[:, :, None]).mT
            - normaliser
            for each in tokens
        ]
    )


def accumulation_dtype(like: Tensor) -> torch.dtype:
    """The widest float of the device, for sums over many paths or tokens."""
    return torch.float32 if like.device.type == "mps" else torch.float64


class Lattice:
    """Transitions stored by anti-diagonals: entry [t + u, row, u] of an array belongs to (t, u).

    After its own last node a row continues with transitions of probability 1, first over frames and then over labels,
    so that all rows end in the corner (T, U). Impossible transitions are -inf.
    """

    def __init__(self, advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor):
        self.rows, self.length, self.width = advance.shape
        time = torch.arange(self.length, device=frames.device)[:, None]
        count = torch.arange(self.width, device=frames.device)
        last, all_labels = frames[:, None, None] - 1, labels[:, None, None]
        self.may_advance = (time < last) & (count <= all_labels)  # (B, T, U + 1)
        self.may_emit = (time <= last) & (count[:-1] < all_labels)  # (B, T, U)
        ends = final[:, None, None].masked_fill(time != last, 0)
        ends = ends.masked_fill((time < last) | (count != all_labels), NEVER)
        self.advance = self.to_diagonals(torch.where(self.may_advance, advance, ends))
        certain = emit.new_zeros(self.rows, 1, self.width - 1).masked_fill(count[:-1] < all_labels, NEVER)
        self.emit = self.to_diagonals(torch.cat([emit.masked_fill(~self.may_emit, NEVER), certain], dim=1))

    def to_diagonals(self, values: Tensor) -> Tensor:
        """(B, T or T + 1, U or U + 1) -> (T + U + 1, B, U + 1)"""
        shape = (self.length + self.width, self.rows, self.width)
        diagonals = values.new_full(shape, NEVER, dtype=accumulation_dtype(values))
        self.row_view(diagonals, values).copy_(values)
        return diagonals

    def row_view(self, diagonals: Tensor, like: Tensor) -> Tensor:
        """Diagonals viewed as (B, T or T + 1, U or U + 1), the shape of `like`."""
        stride = self.rows * self.width  # from one diagonal to the next
        return diagonals.as_strided(like.shape, (self.width, stride, stride + 1))

    def forward_scores(self, join: Callable[..., Tensor]) -> Tensor:
        """alpha: paths from the start to each node, joined by logaddexp or maximum.  (T + U + 1, B, U + 1)"""
        alpha = torch.full_like(self.advance, NEVER)
        alpha[0, :, 0] = 0
        advanced, emitted = torch.empty_like(alpha[0]), torch.full_like(alpha[0], NEVER)
        into = emitted[:, 1:]  # u = 0 is not reached by writing a label
        left, emits = alpha[:, :, :-1], self.emit[:, :, :-1]
        for here, beside, advance, emit, there in zip(alpha, left, self.advance, emits, alpha[1:]):
            torch.add(here, advance, out=advanced)
            torch.add(beside, emit, out=into)
            join(advanced, emitted, out=there)
        return alpha

    def backward_scores(self, join: Callable[..., Tensor]) -> Tensor:
        """beta: paths from each node to the end, joined likewise.  (T + U + 1, B, U + 1)"""
        beta = torch.full_like(self.advance, NEVER)
        beta[-1, :, -1] = 0
        advanced, emitted = torch.empty_like(beta[0]), torch.full_like(beta[0], NEVER)
        into = emitted[:, :-1]  # no label is written after the last
        right, emits = beta[1:, :, 1:], self.emit[:-1, :, :-1]
        steps = list(zip(beta[1:], right, self.advance[:-1], emits, beta[:-1]))
        for there, beside, advance, emit, here in reversed(steps):
            torch.add(there, advance, out=advanced)
            torch.add(beside, emit, out=into)
            join(advanced, emitted, out=here)
        return beta


class AllPaths(torch.autograd.Function):
    """The gradient of a transition is its posterior probability: alpha, the transition and beta, divided by P."""

    @staticmethod
    def forward(context: Any, advance: Tensor, emit: Tensor, final: Tensor, frames: Tensor, labels: Tensor) -> Tensor:
        lattice = Lattice(advance, emit, final, frames, labels)
        alpha = lattice.forward_scores(torch.logaddexp)
        context.lattice, context.alpha = lattice, alpha
        context.save_for_backward(advance, emit, final, frames)
        return alpha[-1, :, -1].to(advance.dtype)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        advance, emit, final, frames = context.saved_tensors
        lattice, alpha = context.lattice, context.alpha
        beta = lattice.backward_scores(torch.logaddexp)
        total = alpha[-1, :, -1]
        possible = total != NEVER
        gradient = gradient * possible
        share = gradient[:, None, None]
        before = alpha[:-1] - total.masked_fill(~possible, 0)[:, None]  # (T + U, B, U + 1)
        advanced = (before + lattice.advance[:-1]).add_(beta[1:]).exp_()
        emitted = before.add_(lattice.emit[:-1])
        emitted[:, :, :-1] += beta[1:, :, 1:]
        emitted.exp_()
        of_advance = lattice.row_view(advanced, advance).to(advance.dtype).masked_fill(~lattice.may_advance, 0)
        of_emit = lattice.row_view(emitted, emit).to(emit.dtype).masked_fill(~lattice.may_emit, 0)
        return of_advance * share, of_emit * share, gradient.to(final.dtype) * (frames > 0), None, None


class TokenLogProbs(torch.autograd.Function):
    """The softmax of all nodes is kept, and overwritten by the gradient."""

    @staticmethod
    def forward(context: Any, logits: Tensor, tokens: Tensor, left_out: tuple[int, ...], gradients: bool) -> Tensor:
        wide = torch.promote_types(logits.dtype, torch.float32)
        flat = logits.flatten(0, 2)  # (B T W, V)
        index = tokens.permute(1, 2, 0)[:, None].expand(-1, logits.shape[1], -1, -1).flatten(0, 2)  # (B T W, few)
        absent = torch.tensor(left_out, dtype=torch.long, device=logits.device)
        scratch = torch.empty_like(flat[:ROWS], dtype=wide)
        softmax = torch.empty_like(flat if gradients else flat[:ROWS], dtype=wide)
        log_probs = softmax.new_empty(index.shape)
        for start in range(0, len(flat), ROWS):
            rows = slice(start, start + ROWS)
            scores = scratch[: len(flat[rows])].copy_(flat[rows]).index_fill_(1, absent, NEVER)
            into = softmax[rows] if gradients else softmax[: len(scores)]
            torch.softmax(scores, 1, out=into)
            normaliser = scores.amax(1, keepdim=True) - into.amax(1, keepdim=True).log_()
            torch.sub(scores.gather(1, index[rows]), normaliser, out=log_probs[rows])
        if gradients:
            context.softmax, context.shape, context.dtype = softmax, logits.shape, logits.dtype
            context.save_for_backward(index)
        return log_probs.view(*logits.shape[:3], -1).permute(3, 0, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = context.saved_tensors
        if context.softmax is None:
            raise RuntimeError("token_log_probs: backward ran twice, and the first overwrote the softmax: call it once")
        softmax, context.softmax = context.softmax, None
        of_tokens = gradient.permute(1, 2, 3, 0).flatten(0, 2)  # (B T W, few)
        softmax.mul_(-of_tokens.sum(1, keepdim=True)).scatter_add_(1, index, of_tokens)
        return softmax.to(context.dtype).view(context.shape), None, None, None
