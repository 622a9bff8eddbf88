"""End-to-end memory network: a question attends the sentences of its story, hop after hop.

Sukhbaatar, Szlam, Weston & Fergus 2015, sections 2 and 4.1. With x_i the sentences and q the question, hop k is
    p_i = softmax_i(u . m_i)      o = sum_i p_i c_i      u <- u + o      from u = B q,  m_i = A x_i,  c_i = C x_i
Adjacent hops share tables: A of a hop is C of the one before, and B is the first A. The last C can be the output layer
of a head as well (`share_embeddings`). Position encoding: in a sentence of J words and d dimensions, word j has weight
    l_kj = (1 - j/J) - (k/d) (1 - 2j/J)
in dimension k. Temporal encoding: a vector is added for the age of a sentence, counted backwards from the question.
Linear start: at first p_i = u . m_i, at half the learning rate, until the validation loss stops falling.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder, Task
from seqloom.types import Memory, Padded, State


class MemoryNetwork(Encoder):
    """Reads stories (B, T, W), the question last. The summary is u after the last hop, the states are the last c_i.

    Without `positions` all words weigh the same. `ages` is the number of age vectors, the last one for all older
    sentences; 0: none. `empty` is the probability, in training, of an empty sentence after each one: it only makes
    earlier sentences older. Hops have no softmax in the first phase of a training, which ends when validation stops
    improving, at the latest after the share `linear_start`; `linear_rate` is the factor of the learning rate in it.
    """

    modality = ()

    def __init__(
        self,
        *,
        vocabulary: int,
        pad: int,
        size: int = 20,
        hops: int = 3,
        positions: bool = True,
        ages: int = 50,
        empty: float = 0.1,
        linear_start: float = 0.0,
        linear_rate: float = 0.5,
    ):
        super().__init__()
        for name, value in (("size", size), ("hops", hops)):
            if value < 1:
                raise ValueError(f"{name} = {value} must be 1 or more")
        for name, share in (("empty", empty), ("linear_start", linear_start)):
            if not 0 <= share < 1:
                raise ValueError(f"{name} = {share} must be in [0, 1)")
        if not 0 < linear_rate <= 1:
            raise ValueError(f"linear_rate = {linear_rate} must be above 0 and at most 1")
        self.pad, self.hops, self.positions, self.output_size = pad, hops, positions, size
        self.empty, self.first_phase, self.first_rate = empty, linear_start, linear_rate
        self.tables = nn.ModuleList(nn.Embedding(vocabulary, size, padding_idx=pad) for _ in range(hops))
        self.embedding = nn.Embedding(vocabulary, size, padding_idx=pad)  # the last table, which a head may share
        self.age = nn.Embedding(ages, (hops + 1) * size) if ages else None
        for part in (*self.tables, self.embedding, self.age):
            if isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=0.1)
        with torch.no_grad():
            for part in (*self.tables, self.embedding):
                part.weight[pad] = 0.0

    def suit(self, task: Task) -> None:
        if task.source is None or task.source.nested != "sentence":
            raise ValueError('reads stories: set task.source.type = "story"')

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        vectors = self.sentences(source.values)  # (hops + 1, B, T, size)
        rows = torch.arange(len(source.lengths), device=source.lengths.device)
        query = vectors[0, rows, source.lengths - 1]  # (B, size)
        facts = source.mask.index_put((rows, source.lengths - 1), torch.zeros_like(rows, dtype=torch.bool))  # (B, T)
        if self.age is not None:
            aged = self.age(self.sentence_ages(facts)) * facts[:, :, None]  # (B, T, (hops + 1) * size)
            vectors = vectors + aged.unflatten(-1, (-1, self.output_size)).movedim(2, 0)
        hops = []
        for keys, values in pairwise(vectors):  # m_i and c_i
            weights = self.attention_weights(torch.einsum("btd,bd->bt", keys, query), facts, source.first_phase)
            query = query + torch.einsum("bt,btd->bd", weights, values)
            hops.append(weights)
        extra: State = {"hops": torch.stack(hops, 1)[:, :, None, None]} if attention else {}  # (B, hops, 1, 1, T)
        return Memory(vectors[-1], source.lengths, {"summary": query}, extra)

    def sentences(self, words: Tensor) -> Tensor:
        """The vector of each sentence, by each table.  (B, T, W) -> (hops + 1, B, T, size)"""
        table = torch.cat([*(each.weight for each in self.tables), self.embedding.weight], 1)  # type: ignore[list-item]
        weights = word_weights(words != self.pad, self.output_size, table.dtype, self.positions)  # (B, T, W, size or 1)
        embedded = nn.functional.embedding(words, table).unflatten(-1, (-1, self.output_size))
        return (embedded * weights[:, :, :, None]).sum(2).movedim(2, 0)

    def sentence_ages(self, facts: Tensor) -> Tensor:
        """How many sentences come between each one and the question, at most the largest age.  (B, T)"""
        assert self.age is not None
        passed = facts.long()
        if self.training and self.empty:
            passed = passed + facts * (torch.rand(facts.shape, device=facts.device) < self.empty)
        later = passed.flip(1).cumsum(1).flip(1) - facts.long()  # sentences after each one, and its own empty one
        return later.clamp(0, self.age.num_embeddings - 1)

    def attention_weights(self, scores: Tensor, facts: Tensor, linear: bool) -> Tensor:
        """The weight of each sentence in a hop, all 0 for a story without sentences.  (B, T)"""
        if linear:
            return scores * facts
        return scores.masked_fill(~facts, torch.finfo(scores.dtype).min).softmax(-1) * facts


def word_weights(real: Tensor, size: int, dtype: torch.dtype, positions: bool = True) -> Tensor:
    """l_kj for words j and dimensions k; 0 at padding.  (B, T, W) -> (B, T, W, size)"""
    if not positions:
        return real[:, :, :, None].to(dtype)
    position = real.cumsum(-1).to(dtype) / real.sum(-1, keepdim=True).clamp(min=1)  # j / J
    dimension = torch.arange(1, size + 1, device=real.device, dtype=dtype) / size  # k / d
    position = position[:, :, :, None]
    return ((1 - position) - dimension * (1 - 2 * position)) * real[:, :, :, None]
