"""The special tokens that every vocabulary begins with, and which tokens of two vocabularies are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.contracts import Codec

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")
UNKNOWN = "⁇"  # UNK in an output
MASK = "[MASK]"  # a token to be found, where a text has one


def as_ids(values: Any) -> list[int]:
    """The ids of a list, or of an array of any kind."""
    return values.tolist() if hasattr(values, "tolist") else [int(index) for index in values]


def before_eos(values: Any) -> list[int]:
    """The ids before the first EOS."""
    ids = as_ids(values)
    return ids[: ids.index(EOS)] if EOS in ids else ids


def correspondence(ours: Codec, theirs: Codec) -> list[int]:
    """The other codec's id of each of our tokens; UNK where no token of it is the same text."""
    assert ours.vocabulary is not None, "only vocabularies have corresponding tokens"
    if ours is theirs or not hasattr(ours, "decode"):  # placeholders for codecs that are not fitted yet
        return list(range(ours.vocabulary))
    encoded = [theirs.encode(ours.decode([token])).tolist() for token in range(len(SPECIAL), ours.vocabulary)]
    return [*range(len(SPECIAL)), *(each[0] if len(each) == 1 else UNK for each in encoded)]
