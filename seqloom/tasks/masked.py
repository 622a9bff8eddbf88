"""Masked words: an encoder learns to find tokens that are hidden from it, and whether one text follows another.

Devlin, Chang, Lee & Toutanova 2019 (BERT), section 3.1: of a text [CLS] A [SEP] B [SEP] some tokens are to be found, of
which 80 % are masked, 10 % exchanged for any other, and 10 % left as they are; B follows A in half of the texts. [CLS]
is BOS here and [SEP] is EOS. What is to be found in the place of [CLS] is EOS if B follows A, else BOS. All is drawn
anew in each epoch, as a function of seed and epoch.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.contracts import Task
from seqloom.data import batching
from seqloom.data.codecs.text import Text
from seqloom.data.segments import ALONE, ELSEWHERE, FOLLOWS, cut, documents_of, segments
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL
from seqloom.types import COUNTED, Batch, Padded

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

PAIR = {FOLLOWS: EOS, ELSEWHERE: BOS}  # what is to be found in the first place
MASKED, OTHER = 0.8, 0.1  # shares of the tokens to find
VALIDATION = 2**31  # seeds what validations find


class Masked(Task):
    """`window` is how many tokens a text may have with its special ones, `share` how many of them are to be found.

    Without `pairs` a text is one segment. With `whole_words` all pieces of a word are to be found, or none.
    """

    running = reads_itself = per_token = joint = True
    bos, eos = BOS, None  # has no end

    def __init__(
        self,
        *,
        source: Text,
        window: int = 128,
        share: float = 0.15,
        pairs: bool = True,
        whole_words: bool = False,
    ):
        if not source.masks:
            raise ValueError("source has no masked token: set task.source.mask = true")
        if window < 8:
            raise ValueError(f"window = {window} must be 8 or more")
        if not 0 < share < 1:
            raise ValueError(f"share = {share}: expected more than 0 and less than 1")
        self.codec = self.source = self.target = source
        self.window, self.share, self.pairs, self.whole_words = window, share, pairs, whole_words

    def notes(self, lengths: np.ndarray) -> list[str]:
        if not self.pairs or len(documents_of(lengths[:, 1], self.window)) > 1:
            return []
        return [
            "The text is one document, so there is no next-sentence prediction: separate documents by an empty line, "
            "or set task.pairs = false."
        ]

    def plan(self, lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> batching.Plan:
        rows = self.rows(lengths, seed, epoch)
        plan = batching.plan(self.widths(rows), tokens, seed, epoch)
        return batching.Plan(rows[plan.rows], plan.offsets)

    def in_order(self, lengths: np.ndarray, tokens: int) -> batching.Plan:
        """The same texts and masks in every validation."""
        rows = self.rows(lengths, VALIDATION, 0)
        plan = batching.in_order(self.widths(rows), tokens)
        return batching.Plan(rows[plan.rows], plan.offsets)

    def rows(self, lengths: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """(n, 6)"""
        room = self.window - (3 if self.pairs else 2)
        return segments(lengths[:, 1], room, self.pairs, np.random.default_rng((seed, epoch, 1)))

    def widths(self, rows: np.ndarray) -> np.ndarray:
        """Source and target lengths, nearly: line ends within a segment are counted.  (n, 6) -> (n, 2)"""
        tokens = (rows[:, 1] - rows[:, 0] + rows[:, 3] - rows[:, 2] + 3).clip(max=self.window)
        return np.stack([tokens, np.zeros_like(tokens)], axis=1)

    def collate(self, corpus: Corpus, rows: np.ndarray) -> Batch:
        """Texts with some tokens masked, all of their tokens, and a weight for each that is to be found."""
        texts = [self.text(corpus, row) for row in rows.tolist()]
        sources, targets, found = zip(*texts)
        counted = Padded.stack(found, 0).values.astype(np.float32)
        pairs = rows[:, 4] != ALONE  # next-sentence prediction counts as much as all masked tokens
        counted[pairs, 0] = counted.sum() / max(pairs.sum(), 1)
        source, target = Padded.stack(sources, PAD), Padded.stack(targets, PAD)
        extra = {COUNTED: counted}
        return Batch(source, target, target, tuple(rows[:, 0].tolist()), extra).to("cpu")

    def text(self, corpus: Corpus, row: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is read, what should have been, and whether it is to be found.  (T,) each"""
        begin, end, other_begin, other_end, follows, number = row
        random = np.random.default_rng(number)
        read = (corpus.stream(*each) for each in ((begin, end), (other_begin, other_end)))
        first, second = (tokens[tokens != EOS].tolist() for tokens in read)  # without line ends
        first, second = cut(first, second, self.window - (3 if self.pairs else 2), random)
        tokens = self.framed(first, None if follows == ALONE else second)
        chosen = self.chosen(tokens, random)
        target = tokens.copy()
        if follows != ALONE:
            target[0] = PAIR[follows]
        return self.hidden(tokens, chosen, random), target, chosen

    def framed(self, first: Any, second: Any = None) -> np.ndarray:
        """[CLS] A [SEP], or [CLS] A [SEP] B [SEP].  (T,)"""
        parts = [[BOS], first, [EOS], *([] if second is None else [second, [EOS]])]
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])

    def chosen(self, tokens: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Which tokens are to be found: a share of all, none of them special.  bool (T,)"""
        possible, count = np.flatnonzero(tokens >= len(SPECIAL)), max(1, round(self.share * len(tokens)))
        chosen = np.zeros(len(tokens), dtype=bool)
        if not self.whole_words:
            chosen[random.permutation(possible)[:count]] = True
            return chosen
        begins = self.begins_word[tokens[possible]][1:] | (np.diff(possible) > 1)  # a segment may begin within a word
        words = np.split(possible, 1 + np.flatnonzero(begins))
        for number in random.permutation(len(words)):
            own = words[number]
            if not chosen.any() or len(own) <= count:
                chosen[own], count = True, count - len(own)
            if count <= 0:
                break
        return chosen

    def stand_in(self, codec: Any) -> None:
        self.codec, self.begins_word = codec, np.ones(codec.vocabulary, dtype=bool)

    @property
    def mask(self) -> int:
        """The masked token, the last of the vocabulary."""
        return self.codec.vocabulary - 1

    @cached_property
    def begins_word(self) -> np.ndarray:
        return self.codec.begins_word

    def hidden(self, tokens: np.ndarray, chosen: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The text with most of those tokens masked, some exchanged, some left.  (T,)"""
        fate = random.random(len(tokens))
        others = random.integers(len(SPECIAL), self.mask, size=len(tokens))
        exchanged = np.where(fate < MASKED, self.mask, np.where(fate < MASKED + OTHER, others, tokens))
        return np.where(chosen, exchanged, tokens)
