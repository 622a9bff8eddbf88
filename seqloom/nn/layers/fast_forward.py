"""Fast-forward connections: a linear path through all layers of a recurrent stack.

Zhou et al. 2016, section 3.1. f is what a cell projects from its input, all gates before their activation:
    f^1_t = W^1 x_t      f^k_t = W^k [Half(f^{k-1}_t); h^{k-1}_t]      h^k_t = cell(f^k_t, h^k_{t-1})
Half is the first half of the components. From f to f there is neither activation nor recurrence, so gradients reach the
bottom of a deep stack; drop-out applies to h alone.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.contracts import Cell
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.reversal import reverse_padded
from seqloom.types import Padded, State


def fast_forward(projected: Tensor, outputs: Tensor) -> Tensor:
    """[Half(f); h]: what a layer passes on.  (..., G), (..., size) -> (..., G // 2 + size)"""
    return torch.cat([projected[..., : projected.shape[-1] // 2], outputs], dim=-1)


def fast_forward_size(cell: Cell) -> int:
    """The width of what a layer passes on."""
    nothing = next(cell.parameters()).new_zeros(0, cell.input_size)
    return cell.project(nothing).shape[-1] // 2 + cell.size


def run_fast_forward(
    cells: Sequence[Cell], inputs: Padded, states: Sequence[State], dropout: Dropout, alternate: bool = False
) -> tuple[Tensor, Tensor, list[State]]:
    """Run a stack: outputs of the top layer (rows, T, size), its inputs (rows, T, I), the final state of each layer.

    With `alternate`, a layer reads in the opposite direction of the one below; the results are in the order of the top
    layer. Layers but the top one are projected twice: fused kernels do not return what they project.
    """
    values, lengths = inputs.values, inputs.lengths
    outputs, after = values, []
    for layer, (cell, state) in enumerate(zip(cells, states)):
        if layer:
            values = fast_forward(cells[layer - 1].project(values), dropout(outputs))
            if alternate:
                values = reverse_padded(Padded(values, lengths))
        outputs, final = cell.run(Padded(values, lengths), state)
        after.append(final)
    return outputs, values, after
