"""Marginal likelihood: -log p of outputs, summed over all alignments, for transducers, CTC and SSNT.

Graves et al. 2006, Graves 2012, Yu, Buys & Blunsom 2016. The decoder computes the probability of an output
(`Decoder.log_prob`); without alignments it is the product over tokens, and this is cross-entropy.
"""

from torch import Tensor

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.types import Batch, Loss


class Marginal(Objective):
    """Count: target tokens with EOS, as in cross-entropy. Logs: nll, the total; impossible, a number of examples.

    Examples that the decoder cannot write, in CTC those with more tokens than states, count only as impossible.
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
