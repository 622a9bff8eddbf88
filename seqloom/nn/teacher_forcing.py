"""Teacher forcing of hypotheses: their log-probabilities and attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqloom.contracts import Decoder
from seqloom.contracts.search import refuse_large_attention
from seqloom.types import Hypothesis, Memory, Padded, costs, sum_costs

Matrix = list[list[float]]
Heads = list[list[Matrix]]  # [layer][head] -> matrix


@dataclass(frozen=True)
class TeacherForced:
    """One hypothesis under teacher forcing; U counts EOS."""

    log_probs: Tensor  # (U, V)
    alignment: Matrix  # U x T, mean over layers and heads; empty without a source
    source_attention: Heads
    self_attention: Heads
    steps: list[float]  # U: steps of an adaptive decoder before each token; empty for others
    copied: list[float]  # U: the probability of copying; empty for decoders that do not copy
    experts: dict[str, list[list[int]]]  # layer -> U x k: the experts used; empty for decoders without


def teacher_force(
    decoder: Decoder, memory: Memory, entry: int, hypotheses: Sequence[Hypothesis], heads: bool = True
) -> list[TeacherForced]:
    """All hypotheses of one source, in one pass; without `heads`, attention only as its mean over layers and heads."""
    if not hypotheses:
        return []
    refuse_large_attention(int(memory.lengths[entry]), [len(one.tokens) for one in hypotheses])
    inputs = inputs_of(decoder, hypotheses).to(memory.lengths.device)
    ours = memory.select(torch.tensor([entry], device=memory.lengths.device))
    output, steps = decoder(ours, inputs, attention=True), adaptive_steps(decoder, ours, inputs)
    log_probs = torch.log_softmax(output.scores, dim=-1)
    source, own = (output.attention.get(name) for name in ("source", "self"))  # (n, layers, heads, U, T or U)
    width = int(memory.lengths[entry])
    forced = []
    for row, length in enumerate(inputs.lengths.tolist()):
        to_source = None if source is None else source[row, :, :, :length, :width]
        to_self = None if own is None else own[row, :, :, :length, :length]
        forced.append(
            TeacherForced(
                log_probs[row, :length],
                [] if to_source is None else to_source.mean((0, 1)).tolist(),
                to_source.tolist() if heads and to_source is not None else [],
                to_self.tolist() if heads and to_self is not None else [],
                [] if steps is None else steps[row, :length].tolist(),
                [] if output.copied is None else output.copied[row, :length].tolist(),
                {layer: used[row, :length].tolist() for layer, used in output.experts.items()},
            )
        )
    return forced


def inputs_of(decoder: Decoder, hypotheses: Sequence[Hypothesis]) -> Padded:
    """BOS and the tokens of each hypothesis, as inputs of the decoder.  (n, U)"""
    inputs = Padded.stack([np.array([decoder.bos, *one.tokens]) for one in hypotheses])
    # Without EOS the last token is never an input.
    return inputs if decoder.eos is not None else Padded(inputs.values[:, :-1], inputs.lengths - 1)


def adaptive_steps(decoder: Decoder, memory: Memory, inputs: Padded) -> Tensor | None:
    """How many steps an adaptive decoder takes before each token; None for others.  (n, U)"""
    state = decoder.start_rows(memory, len(inputs.lengths))
    if "steps" not in sum_costs(costs(state)):
        return None
    sums = [sum_costs(costs(state))["steps"]]
    for token in inputs.values.unbind(1):
        _, state = decoder.step(token, state, memory)
        sums.append(sum_costs(costs(state))["steps"])
    return torch.stack(sums, dim=1).diff(dim=1)
