"""WaveNet: the samples of a sound one by one, each from those before it by dilated causal convolutions.

van den Oord, Dieleman, Zen, Simonyan, Vinyals, Graves, Kalchbrenner, Senior & Kavukcuoglu 2016. With an encoder every
layer is conditioned on the summary of the source, such as a digit or a speaker (global conditioning); with `hop`
samples per state on the state of the moment, such as features of another sound (local conditioning, section 2.5).
"""

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.layers.embedding import embed
from seqloom.nn.layers.levels import Levels
from seqloom.nn.layers.wave_net import WaveNetStack
from seqloom.types import Memory, Output, Padded, State


class WaveNet(Decoder):
    """State: {"layers": the last inputs of each convolution, "count": (rows,) how many tokens were read}."""

    endless = True

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        size: int = 32,
        skip: int = 64,
        layers: int = 20,
        kernel: int = 2,
        dilations: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
        hop: int = 0,
        hidden: int = 64,
        dropout: float = 0.0,
        length_ratio: float = 2.0,
        length_offset: int = 100,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        if hop < 0:
            raise ValueError(f"hop = {hop}: expected 0, or how many samples a state of the source stands for")
        self.hidden_size, self.hop = hidden, hop
        self.embedding = nn.Embedding(vocabulary, size)
        self.stack = WaveNetStack(
            size=size, skip=skip, layers=layers, kernel=kernel, dilations=dilations, dropout=dropout
        )
        self.condition = nn.Linear(memory_size, layers * 2 * size, bias=False) if memory_size else None
        self.last, self.output = nn.Linear(skip, hidden), Levels(hidden, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        """What the source gives to the gates, once per source.  (B, T or 1, layers * 2 * size)"""
        if self.condition is None:
            return memory
        given = memory.states if self.hop else memory.final["summary"][:, None]
        return memory.with_extra(given=self.condition(given))

    def start(self, memory: Memory) -> State:
        count = torch.zeros(memory.rows, dtype=torch.long, device=self.embedding.weight.device)
        return {"layers": self.stack.start(memory.rows), "count": count}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, width = inputs.values.shape[:2]
        if state is None:
            state = self.start_rows(memory, rows)
        values = Padded(embed(self.embedding, inputs.values), inputs.lengths)  # (rows, U, size)
        given = self.given(memory, state["count"], width)
        skips, layers = self.stack.extend(values, state["layers"], given)
        hidden = self.last(skips.relu()).relu()
        return Output(hidden, self.output, {"layers": layers, "count": state["count"] + inputs.lengths})

    def given(self, memory: Memory, count: Tensor, width: int) -> list[Tensor | None]:
        """What each layer is given for the next samples.  (rows, U or 1, 2 * size)"""
        if self.condition is None:
            return [None] * len(self.stack.layers)
        owner, columns = memory.owner(len(count)), memory.extra["given"]
        if not self.hop:
            found = columns.index_select(0, owner)
        else:
            places = (count[:, None] + torch.arange(width, device=count.device)) // self.hop
            last = (memory.lengths[owner] - 1).clamp(min=0)[:, None]  # what lies beyond the source hears its end
            found = columns[owner[:, None], torch.minimum(places, last)]
        return list(found.chunk(len(self.stack.layers), dim=-1))
