"""Alignment: cross-entropy of the target with the ends of blocks at the model's best positions.

Jaitly et al. 2016, section 2.5: the block of each token is found by approximate dynamic programming, and the target
with the ends of blocks inside is then learned by teacher forcing. For the first share `even` of the training, tokens
are spread evenly over the blocks. The paper renews alignments every few hundred updates; here each update aligns its
batch, so that no alignments need be stored to resume a run or to train in several processes.
`search = "beam"` goes from left to right and keeps the best few numbers of tokens written: prefixes with few tokens
score highest, so that tokens are put off to the end. It fails, as the paper found and the tests show.
"""

from __future__ import annotations

from typing import Any, Literal

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.ops.dropout import without_dropout
from seqloom.objectives.cross_entropy import cross_entropy
from seqloom.types import Batch, Loss


class Alignment(Objective):
    """Count: tokens and EOS of targets that fit into their blocks. Logs: nll; impossible, how many targets do not."""

    def __init__(
        self,
        *,
        search: Literal["dynamic", "beam"] = "dynamic",
        beam_size: int = 1,
        even: float = 0.3,
        label_smoothing: float = 0.0,
    ):
        super().__init__()
        if beam_size < 1:
            raise ValueError(f"beam_size = {beam_size} must be 1 or more")
        if not 0 <= even <= 1 or not 0 <= label_smoothing < 1:
            raise ValueError(f"even = {even} must be in [0, 1], and label_smoothing = {label_smoothing} in [0, 1)")
        self.beam_size = beam_size if search == "beam" else 0
        self.even, self.label_smoothing = even, label_smoothing

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        super().suit(task, decoder, search)
        if not hasattr(decoder, "align"):
            raise ValueError('trains decoders of type "neural_transducer" only')

    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        decoder, memory = model.decoder, model.encode(batch.source, len(batch.targets.lengths))
        evenly = self.training and progress < self.even
        with without_dropout(decoder):
            aligned = decoder.align(memory, batch.targets, even=evenly, beam_size=self.beam_size)
        output = decoder(memory, aligned.inputs)
        weights = aligned.possible[:, None].expand_as(aligned.targets.values)
        smoothing = self.label_smoothing if self.training else 0.0
        total, nll, _ = cross_entropy(output, aligned.targets, smoothing, weights)
        count = (batch.targets.lengths * aligned.possible).sum()
        return Loss(total, count, {"nll": nll, "impossible": (~aligned.possible).sum()})
