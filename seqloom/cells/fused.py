"""Whole sequences through torch's fused recurrent kernels."""

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.types import Padded


def run_kernel(kernel: nn.RNNBase, inputs: Padded, state: Any) -> tuple[Tensor, Any]:
    """Outputs (rows, T, size), zero beyond a row's end, and the state at each row's own end."""
    width = inputs.values.shape[1]
    lengths = inputs.lengths.cpu()
    if int(lengths.min()) == width:  # nothing padded: the dense kernel is faster than the packed one
        return kernel(inputs.values, state)
    packed = pack_padded_sequence(inputs.values, lengths, batch_first=True, enforce_sorted=False)
    outputs, state = kernel(packed, state)
    return pad_packed_sequence(outputs, batch_first=True, total_length=width)[0], state
