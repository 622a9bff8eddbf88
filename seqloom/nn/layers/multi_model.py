"""The convolutional block of MultiModel. Kaiser et al. 2017, section 2.1.

x + SepConv(ReLU(LN(x))), where SepConv is a depthwise-separable, dilated convolution. The paper normalises after the
convolution and stacks four such steps in a block; here the normalisation comes first, as in our other layers, and a
layer has one step.
"""

from torch import Tensor, nn

from seqloom.nn.layers.convolution import SeparableConvolution
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Padded


class ConvolutionBlock(nn.Module):
    """Causal ones keep the last inputs of their convolution as a state."""

    def __init__(self, *, size: int, kernel: int, dilation: int, causal: bool, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.convolution = SeparableConvolution(size=size, kernel=kernel, dilation=dilation, causal=causal)
        self.dropout = Dropout(dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """A whole sequence, zeros where the mask (B, T, 1) is false.  (B, T, size) -> (B, T, size)"""
        return self.dropout.add(values, self.convolution(self.norm(values).relu() * mask))

    def extend(self, inputs: Padded, before: Tensor) -> tuple[Tensor, Tensor]:
        """More of a sequence, and the state for the next part of it.  (rows, U, size) -> (rows, U, size)"""
        change, after = self.convolution.extend(Padded(self.norm(inputs.values).relu(), inputs.lengths), before)
        return self.dropout.add(inputs.values, change), after
