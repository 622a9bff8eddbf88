"""Minus the log-probability of outputs, all their alignments together: how transducers, CTC and SSNT are trained.

Graves et al. 2006, Graves 2012, Yu, Buys & Blunsom 2016. The decoder says what an output's probability is
(`Decoder.log_prob`); where there is nothing to align it is the product over its tokens, and this is cross-entropy.
"""

from torch import Tensor

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.types import Batch, Loss


class Marginal(Objective):
    """Count: target tokens, EOS among them, as in cross-entropy. Logs: nll, the total; impossible, examples.

    An example that the decoder cannot write, as CTC more tokens than states, is in no sum but that of the impossible.
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        memory = model.encode(batch.source, len(batch.targets.lengths))
        log_prob: Tensor = model.decoder.log_prob(memory, batch.inputs, batch.targets)  # (B,)
        impossible = log_prob == float("-inf")
        total = -log_prob.masked_fill(impossible, 0).sum()
        count = batch.targets.lengths.masked_fill(impossible, 0).sum()
        return Loss(total, count, {"nll": total.detach(), "impossible": impossible.sum()})
