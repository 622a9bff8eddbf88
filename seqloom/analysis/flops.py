"""Floating-point operations of a computation, counted: the matrix products, a multiplication and an addition each.

torch's counter knows products, convolutions and the attention kernels of GPUs. The kernels that a CPU takes for an LSTM
and for attention, and products with a vector, are added here. What grows with the number of states alone (sums, gates,
softmax, drop-out) is not counted, as in published figures.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count, shape_wrapper

Shape = Any  # of a tensor: torch gives the formulas shapes in place of tensors
aten = torch.ops.aten


def lstm_flops(inputs: Shape, weight: Shape, recurrent: Shape, *rest: Any, **options: Any) -> int:
    """(T, rows, I), (4 * size, I), (4 * size, size): both products, at every step and row."""
    return 2 * inputs[0] * inputs[1] * (prod(weight) + prod(recurrent))


def lstm_backward_flops(*shapes: Any, **options: Any) -> int:
    """Twice the forward pass: gradients of inputs and states, and of weights."""
    return 2 * lstm_flops(*shapes)


def attention_flops(query: Shape, keys: Shape, values: Shape, *rest: Any, **options: Any) -> int:
    return int(sdpa_flop_count(query, keys, values))


def attention_backward_flops(
    gradient: Shape, query: Shape, keys: Shape, values: Shape, *rest: Any, **options: Any
) -> int:
    """Five products: the kernel computes the weights a second time."""
    return int(sdpa_backward_flop_count(gradient, query, keys, values))


def vector_flops(matrix: Shape, vector: Shape, *rest: Any, **options: Any) -> int:
    return 2 * prod(matrix)


def added_vector_flops(start: Shape, matrix: Shape, vector: Shape, *rest: Any, **options: Any) -> int:
    return 2 * prod(matrix)


def added_product_flops(start: Shape, first: Shape, second: Shape, *rest: Any, **options: Any) -> int:
    """(..., M, K), (..., K, N)"""
    return 2 * prod(first) * int(second[-1])


def dot_flops(first: Shape, second: Shape, *rest: Any, **options: Any) -> int:
    return 2 * prod(first)


FORMULAS: dict[Any, Callable[..., int]] = {
    aten.mkldnn_rnn_layer: lstm_flops,
    aten.mkldnn_rnn_layer_backward: lstm_backward_flops,
    aten._scaled_dot_product_flash_attention_for_cpu: attention_flops,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward_flops,
    aten.addmm_: added_product_flops,
    aten.baddbmm_: added_product_flops,
    aten.mv: vector_flops,
    aten.addmv: added_vector_flops,
    aten.addmv_: added_vector_flops,
    aten.dot: dot_flops,
}


class Counter(TorchDispatchMode):
    """Adds up the FLOPs of all operations.

    torch's own counter also follows which module an operation belongs to, by hooks that fail where a forward pass turns
    gradients off half-way, as one that samples does.
    """

    formulas: ClassVar[dict[Any, Callable[..., int]]] = {
        **flop_registry,
        **{operation: shape_wrapper(formula) for operation, formula in FORMULAS.items()},
    }

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        options, formula = options or {}, self.formulas.get(function._overloadpacket)
        if formula is None:
            with self:  # what consists of others, such as a linear layer where no gradients are kept
                found = function.decompose(*args, **options)
            return function(*args, **options) if found is NotImplemented else found
        found = function(*args, **options)
        self.total += int(formula(*args, **options, out_val=found))
        return found


def count_flops(compute: Callable[[], object]) -> int:
    """How many a function computes, backward passes included."""
    counter = Counter()
    with counter:
        compute()
    return counter.total
