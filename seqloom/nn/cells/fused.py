"""Whole sequences through torch's fused recurrent kernels.

On a CPU a batch with padding runs through the dense kernel: the backward pass of the packed kernel takes time quadratic
in T, because it slices its input and each slice has a gradient as large as the whole input.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.types import Padded, State, hold, over_tensors

SATURATED = 1e4  # sigmoid(-SATURATED) is 0 and sigmoid(SATURATED) is 1, to the last bit


def run_kernel(kernel: nn.RNNBase, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """Outputs (rows, T, size), undefined beyond a row's end, and the state at each row's own end."""
    values, lengths = inputs.values, inputs.lengths
    if values.device.type == "cpu" and torch.is_autocast_enabled("cpu"):  # few CPUs have bf16 kernels
        with torch.autocast("cpu", enabled=False):
            return run_kernel(kernel, Padded(values.float(), lengths), over_tensors(Tensor.float, state))
    if int(lengths.min()) == values.shape[1]:  # no padding
        return call_kernel(kernel, values, state)
    if values.device.type == "cpu":
        return run_padded(kernel, inputs, state)
    packed = pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, state = call_kernel(kernel, packed, state)
    return pad_packed_sequence(outputs, batch_first=True, total_length=values.shape[1])[0], state


def call_kernel(kernel: nn.RNNBase, values: Any, state: State) -> tuple[Any, State]:
    """Call the kernel with a state of ours, and return one."""
    if isinstance(kernel, nn.LSTM):
        outputs, (hidden, cell) = kernel(values, (state["hidden"][None], state["cell"][None]))
        return outputs, {"hidden": hidden[0], "cell": cell[0]}
    outputs, hidden = kernel(values, state["hidden"][None])
    return outputs, {"hidden": hidden[0]}


def run_padded(kernel: nn.RNNBase, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """Run all rows to the longest length; the state of a row is the output at its own end.

    An LSTM does not output its cell state at every step. One more input, 1 at padding, closes the input gate and opens
    the forget gate there, so that the cell state stays as it is.
    """
    if isinstance(kernel, nn.LSTM):
        weight, *others = kernel.parameters()  # weight (4 * size, I): input, forget, candidate, output
        column = weight.new_tensor([-SATURATED, SATURATED, 0, 0]).repeat_interleave(kernel.hidden_size)[:, None]
        weights = [torch.cat([weight, column], dim=1), *others]
        values = torch.cat([inputs.values, ~inputs.mask[:, :, None]], dim=-1)  # (rows, T, I + 1)
        start = (state["hidden"][None], state["cell"][None])
        outputs, _, cell = torch.lstm(values, start, weights, True, 1, 0.0, kernel.training, False, True)
        end = {"cell": cell[0]}
    else:
        outputs, _ = call_kernel(kernel, inputs.values, state)
        end = {}
    last = outputs[torch.arange(len(inputs.lengths)), inputs.lengths - 1]
    return outputs, hold(inputs.lengths == 0, {"hidden": last, **end}, state)
