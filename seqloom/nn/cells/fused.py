"""Whole sequences through torch's fused recurrent kernels.

On a CPU a ragged batch runs padded through the dense kernel. The packed kernel takes its input slice by slice, and
each slice has a gradient as large as the whole input: its backward pass takes time quadratic in T.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.types import Padded, State, hold, over_tensors

SHUT = 1e4  # sigmoid(-SHUT) is 0 and sigmoid(SHUT) is 1, to the last bit


def run_kernel(kernel: nn.RNNBase, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """Outputs (rows, T, size), which mean nothing beyond a row's end, and the state at each row's own end."""
    values, lengths = inputs.values, inputs.lengths
    if values.device.type == "cpu" and torch.is_autocast_enabled("cpu"):  # few processors have kernels for bf16
        with torch.autocast("cpu", enabled=False):
            return run_kernel(kernel, Padded(values.float(), lengths), over_tensors(Tensor.float, state))
    if int(lengths.min()) == values.shape[1]:  # nothing is padded
        return called(kernel, values, state)
    if values.device.type == "cpu":
        return run_padded(kernel, inputs, state)
    packed = pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, state = called(kernel, packed, state)
    return pad_packed_sequence(outputs, batch_first=True, total_length=values.shape[1])[0], state


def called(kernel: nn.RNNBase, values: Any, state: State) -> tuple[Any, State]:
    """The kernel, with our states for its own."""
    if isinstance(kernel, nn.LSTM):
        outputs, (hidden, cell) = kernel(values, (state["hidden"][None], state["cell"][None]))
        return outputs, {"hidden": hidden[0], "cell": cell[0]}
    outputs, hidden = kernel(values, state["hidden"][None])
    return outputs, {"hidden": hidden[0]}


def run_padded(kernel: nn.RNNBase, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """Every row runs as far as the longest; its state is the output at its own end.

    An LSTM does not put out its cells. One more input is 1 where padding is, and there shuts the input gate and opens
    the forget gate: the cells stay as they are.
    """
    if isinstance(kernel, nn.LSTM):
        weight, *others = kernel.parameters()  # weight (4 * size, I): input, forget, candidate, output
        column = weight.new_tensor([-SHUT, SHUT, 0, 0]).repeat_interleave(kernel.hidden_size)[:, None]
        weights = [torch.cat([weight, column], dim=1), *others]
        values = torch.cat([inputs.values, ~inputs.mask[:, :, None]], dim=-1)  # (rows, T, I + 1)
        start = (state["hidden"][None], state["cell"][None])
        outputs, _, cell = torch.lstm(values, start, weights, True, 1, 0.0, kernel.training, False, True)
        end = {"cell": cell[0]}
    else:
        outputs, _ = called(kernel, inputs.values, state)
        end = {}
    last = outputs[torch.arange(len(inputs.lengths)), inputs.lengths - 1]
    return outputs, hold(inputs.lengths == 0, {"hidden": last, **end}, state)
