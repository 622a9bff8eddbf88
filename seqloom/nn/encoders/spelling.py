"""Words by their spelling: a word's vector is that of the word and those of its n-grams, read by any other encoder.

With w the word and G the n-grams of its letters between two marks, of 1 to 5 letters,
    x = [E(w); sum of H(hash(g)) over g in G / sqrt(|G|)]
Bojanowski, Grave, Joulin & Mikolov 2017, section 3.2, where n-grams share a table of hash buckets, too; a vector of the
word beside one of its letters as in Lample et al. 2016, section 4. Words that were never seen still have their n-grams.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder, Task
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded

BIDIRECTIONAL = partial(Recurrent, bidirectional=True)
LONGEST = 5  # letters of an n-gram
PRIME = 16_777_619  # of the hash (FNV)


class Spelling(Encoder):
    """Reads words with their spelling (B, T, W), as the codec `words` makes them.

    `buckets` is how many vectors all n-grams share. `unknown` is the probability, in training, of reading a word as an
    unknown one: then its n-grams must do.
    """

    modality = ()

    def __init__(
        self,
        *,
        vocabulary: int,
        unk: int,
        encoder: Callable[..., Encoder] = BIDIRECTIONAL,
        embedding_size: int = 128,
        spelling_size: int = 64,
        buckets: int = 20_000,
        unknown: float = 0.1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.unk, self.buckets = unk, buckets
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.ngrams = nn.Embedding(buckets, spelling_size)
        self.unknown, self.dropout = Dropout(unknown), Dropout(dropout)
        self.encoder = encoder(vocabulary=None, features=embedding_size + spelling_size)
        self.output_size, self.stride = self.encoder.output_size, self.encoder.stride

    def suit(self, task: Task) -> None:
        if task.source is None or task.source.nested != "word":
            raise ValueError('reads words with their spelling: set task.source.type = "words"')

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        memory: Memory = self.encoder(self.embed(source), attention)
        return memory

    def embed(self, source: Padded) -> Padded:
        """The vectors of words.  (B, T, W) -> (B, T, embedding_size + spelling_size)"""
        words, letters = source.values[:, :, 0], source.values[:, :, 1:]
        if self.unknown.active:
            read = self.unknown(torch.ones_like(words, dtype=torch.float32)) > 0
            words = torch.where(read, words, self.unk)
        vectors = torch.cat([self.embedding(words), self.spell(letters)], dim=-1)
        return Padded(self.dropout(vectors), source.lengths, progress=source.progress, first_phase=source.first_phase)

    def spell(self, letters: Tensor) -> Tensor:
        """The sum of each word's n-grams, scaled to the variance of one of them.  (B, T, L) -> (B, T, size)"""
        rows = letters.flatten(0, 1)  # (N, L)
        hashes = torch.cat(ngram_hashes(rows), dim=1)  # (N, G): -1 where there is none
        real = hashes >= 0
        counts = real.sum(1)
        vectors = nn.functional.embedding_bag(
            hashes[real] % self.buckets, self.ngrams.weight, counts.cumsum(0) - counts, mode="sum"
        )
        return (vectors / counts.clamp(min=1).sqrt().to(vectors.dtype)[:, None]).unflatten(0, letters.shape[:2])


def ngram_hashes(letters: Tensor) -> list[Tensor]:
    """The hashes of all n-grams of each row, n = 1 to LONGEST, -1 where one would reach padding.  (N, L) -> (N, .) each

    Begins with n, so that n-grams of different lengths differ.
    """
    width, found = letters.shape[1], []
    for length in range(1, min(LONGEST, width) + 1):
        windows = letters.unfold(1, length, 1)  # (N, L - n + 1, n)
        hashed = torch.full_like(windows[..., 0], length)
        for letter in windows.unbind(-1):
            hashed = ((hashed * PRIME) ^ letter) & 0xFFFFFFFF
        found.append(hashed.masked_fill(windows[..., -1] == 0, -1))
    return found
