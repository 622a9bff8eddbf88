"""Copying: a decoder that writes words of its vocabulary, or copies words of the source.

It wraps any inner decoder. With s its hidden vector, a the attention weights of the query s, and c their context,
    p_vocabulary = softmax(P(s + W c))        g = sigmoid(w . [s; c] + b)
mixture="soft"     p(word) = g p_vocabulary(word) + (1 - g) sum of a_j over the positions j of the word
                   See, Liu & Manning 2017, eq. 8 and 9: pointer-generator networks; Gu et al. 2016
mixture="switch"   p(word) = g p_vocabulary(word)        p(copy) = (1 - g) sum of a_j over the positions of its word
                   Gulcehre et al. 2016, section 3: pointing the unknown words; targets show which of the two was used
A word that is not in the vocabulary has the token vocabulary + its first position in the source, so that with a source
of T words there are vocabulary + T tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Attention, Decoder
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.inner import OuterDecoder, inner_decoder
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.ops.pointing import add_pointer_probs
from seqloom.types import Memory, Output, Padded, State

GENERATOR = partial(Recurrent, attention=Additive)
KEY = "copy"  # the entry of memory.extra that this decoder prepares


class Copy(OuterDecoder):
    """State: {"decoder": the inner decoder's, "attention": the attention's}. Scores are log-probabilities.

    `written` maps each token of the source to the same word's token in the target, unk where there is none.
    """

    chooses, reads_source, scores = "copies", True, "log_probs"
    written: Tensor

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        unk: int,
        written: Sequence[int],
        source_vocabulary: int | None = None,
        decoder: Callable[..., Decoder] = GENERATOR,
        attention: Callable[..., Attention] = Additive,
        mixture: Literal["soft", "switch"] = "soft",
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset), memory_size=memory_size)
        if source_vocabulary is None:
            raise ValueError("copy needs a source of tokens: add [encoder] and task.source")
        self.decoder = inner_decoder(decoder, vocabulary=vocabulary, memory_size=memory_size, bos=bos, eos=eos)
        self.unk, self.vocabulary, self.mixture = unk, vocabulary, mixture
        self.hidden_size, self.unknown = self.decoder.hidden_size, (source_vocabulary, unk)
        self.attention = attention(query_size=self.hidden_size, memory_size=memory_size)
        if self.attention.monotonic:
            raise ValueError("attention must not be monotonic: where it attends to nothing, there is nothing to copy")
        self.context = nn.Linear(self.attention.output_size, self.hidden_size, bias=False)
        self.gate = nn.Linear(self.hidden_size + self.attention.output_size, 1)
        self.register_buffer("written", torch.tensor(written, dtype=torch.long), persistent=False)

    def prepare(self, memory: Memory) -> Memory:
        """The token that copying each position writes, and which positions write the same one."""
        source = memory.parts["source"].states  # (B, T)
        plain = replace(memory, parts={})
        same = source[:, :, None] == source[:, None]  # (B, T, T)
        tokens = self.vocabulary + same.long().argmax(-1)  # (B, T): vocabulary + first position of the word
        if self.mixture == "soft":
            known = self.written[source.clamp(max=len(self.written) - 1)]
            missing = (source >= len(self.written)) | (known == self.unk)
            tokens = torch.where(missing, tokens, known)
            same = tokens[:, :, None] == tokens[:, None]  # two words of the source may be one word of the target
        earlier = same.long().tril(-1).sum(-1) > 0
        ours = {
            "tokens": tokens,
            "same": (same & memory.mask[:, :, None]).to(memory.states.dtype),
            "chosen": memory.mask & ~earlier,
            "attention": self.attention.prepare(replace(plain, extra={})).extra,
        }
        return self.decoder.prepare(plain).with_extra(**{KEY: ours})

    def start(self, memory: Memory) -> State:
        return {"decoder": self.decoder.start(inner_memory(memory)), "attention": self.attention.start(memory)}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        read = Padded(self.copies_as_unknown(inputs.values), inputs.lengths)
        output: Output = self.decoder(inner_memory(memory), read, state["decoder"], attention)
        ours = replace(memory, extra=memory.extra[KEY]["attention"])
        context, attended, weights = self.attention(output.hidden, ours, state["attention"], True, inputs.lengths)
        assert weights is not None
        hidden = output.hidden + self.context(context)
        gate = self.gate(torch.cat([output.hidden, context], dim=-1))  # (rows, U, 1)
        scores = self.mixture_log_probs(output.project(hidden), gate, weights.mean(1), memory)
        maps = {**output.attention, "source": weights[:, None]} if attention else {}  # (rows, 1, heads, U, T)
        after = {"decoder": output.state, "attention": attended}
        copied = torch.sigmoid(-gate)[..., 0] if attention else None
        return Output(hidden, lambda hidden: hidden, after, maps, ready=scores, copied=copied)

    def mixture_log_probs(self, logits: Tensor, gate: Tensor, weights: Tensor, memory: Memory) -> Tensor:
        """(rows, U, V), (rows, U, 1), (rows, U, T) -> log-probabilities (rows, U, V + T)"""
        ours, (rows, width, length) = memory.extra[KEY], weights.shape
        log_probs = functional.logsigmoid(gate) + logits.log_softmax(-1)
        log_probs = functional.pad(log_probs, (0, length), value=float("-inf"))
        folded = weights.reshape(memory.rows, -1, length)  # (B, n * U, T): n rows per source
        shares = (folded @ ours["same"].to(weights.dtype)).view(rows, width, length)
        each = memory.owner(rows)
        tokens, chosen = (ours[name][each][:, None].expand(-1, width, -1) for name in ("tokens", "chosen"))
        return add_pointer_probs(log_probs, torch.sigmoid(-gate) * shares, tokens, chosen)

    def copies_as_unknown(self, tokens: Tensor) -> Tensor:
        """Tokens as the inner decoder reads them: copies become unk.  (rows, U), or mixtures (rows, U, V)"""
        if not tokens.is_floating_point():
            return torch.where(tokens < self.vocabulary, tokens, self.unk)
        ours, copied = tokens[..., : self.vocabulary], tokens[..., self.vocabulary :].sum(-1, keepdim=True)
        unknown = functional.one_hot(torch.tensor(self.unk, device=tokens.device), self.vocabulary)
        return ours + copied * unknown

    def first_needed(self, state: State) -> int:
        return self.decoder.first_needed(state["decoder"])


def inner_memory(memory: Memory) -> Memory:
    """The memory as the inner decoder prepared it."""
    return replace(memory, extra={name: entry for name, entry in memory.extra.items() if name != KEY})
