"""The four tokens every vocabulary begins with, and which tokens of two vocabularies are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqloom.contracts import Codec

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")


def correspondence(ours: Codec, theirs: Codec) -> list[int]:
    """The other codec's number of each of our tokens; UNK where it has none that stands for the same text."""
    assert ours.vocabulary is not None, "tokens correspond, vectors do not"
    if ours is theirs or not hasattr(ours, "decode"):  # codecs that stand in for others before these are fitted
        return list(range(ours.vocabulary))
    spelled = [theirs.encode(ours.decode([symbol])).tolist() for symbol in range(len(SPECIAL), ours.vocabulary)]
    return [*range(len(SPECIAL)), *(each[0] if len(each) == 1 else UNK for each in spelled)]
