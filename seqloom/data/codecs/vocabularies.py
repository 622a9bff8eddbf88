"""Vocabularies of text, learned with the libraries tokenizers and sentencepiece.

Sennrich, Haddow & Birch 2016 (byte pairs, here over bytes); Kudo 2018 (unigram pieces, with bytes for the rest); Wu et
al. 2016, section 4.1 (word pieces, over the words and marks of BERT's tokeniser).
"""

from __future__ import annotations

import io
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL, UNK
from seqloom.errors import SeqloomError

# In a tokenizer's vocabulary the special tokens begin with a space. No word, no single character and no byte-level
# piece does, so that no text is ever taken for a special token and no merge ever ends in one.
SPACED = [f" {token}" for token in SPECIAL]
SPACE = "\u2581"  # sentencepiece's name for a space; a real one is spelled in bytes
UNIGRAM_LINES = 1_000_000  # sentencepiece keeps its text in memory: beyond this, every n-th line is read
INSIDE = "##"  # begins a word piece that continues a word
LONGEST_WORD = 100  # characters; a longer one is unknown, as in BERT
# Variations of byte pairs, none of which is ours.
VARIATIONS = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback")


def _byte_names() -> list[str]:
    """The printable character that stands for each byte in byte-level pieces, as in GPT-2."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


BYTE_NAMES = _byte_names()
BYTE_OF = {name: byte for byte, name in enumerate(BYTE_NAMES)}


def learn(texts: Iterator[str], units: str, size: int, lowercase: bool) -> Any:
    """A Tokenizer, or for unigram pieces a SentencePieceProcessor."""
    if units == "wordpiece":
        return word_level(_word_pieces(texts, size, lowercase), lowercase)
    if units == "char":
        characters: Counter[str] = Counter()
        for text in texts:
            characters.update(text)
        return _most_frequent(characters, len(characters), pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"))
    if units == "word":
        words = Counter(word for text in texts for word in text.split())
        return _most_frequent(words, size, pre_tokenizers.WhitespaceSplit())
    if units == "line":
        return _most_frequent(Counter(texts), size, None)
    return byte_level(_merges(texts, size)) if units == "bpe" else _unigram(texts, size)


def byte_level(merges: list[tuple[str, str]]) -> Tokenizer:
    """The special tokens, the 256 bytes, then what the merges make: byte b always has id b + 4."""
    names = dict.fromkeys([*SPACED, *BYTE_NAMES, *(left + right for left, right in merges)])
    tokenizer = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def word_level(pieces: list[str], lowercase: bool) -> Tokenizer:
    """The special tokens, then these word pieces. With `lowercase` accents are left out too, as in BERT."""
    vocabulary = {piece: index for index, piece in enumerate([*SPACED, *pieces])}
    made = models.WordPiece(
        vocabulary,
        unk_token=SPACED[UNK],
        continuing_subword_prefix=INSIDE,
        max_input_chars_per_word=LONGEST_WORD,
    )
    tokenizer = Tokenizer(made)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def to_bytes(model: Any) -> bytes:
    """The content of its file."""
    return model.to_str(pretty=True).encode() if isinstance(model, Tokenizer) else model.serialized_model_proto()


def from_bytes(content: bytes, units: str) -> Any:
    """The inverse of `to_bytes`."""
    return _sentencepiece(content) if units == "unigram" else Tokenizer.from_buffer(content)


def units_of(model: Any) -> str | None:
    """The units a vocabulary was learned for; None for one that was not written by `to_bytes`.

    A stranger's could pad every text to a thousand million tokens, or normalise with a pattern that never ends.
    """
    if not isinstance(model, Tokenizer):
        ours = [model.id_to_piece(index) for index in range(min(4, model.vocab_size()))] == list(SPECIAL)
        return "unigram" if ours and model.is_byte(4) else None
    steps = (model.post_processor, model.decoder, model.padding, model.truncation)
    if any(each is not None for each in steps) or model.get_added_tokens_decoder():
        return None
    if [model.id_to_token(index) for index in range(4)] != SPACED:
        return None
    splitter = type(model.pre_tokenizer).__name__  # None for lines
    if splitter == "BertPreTokenizer":
        plain = isinstance(model.model, models.WordPiece) and isinstance(model.normalizer, normalizers.BertNormalizer)
        return "wordpiece" if plain and model.model.unk_token == SPACED[UNK] else None
    if model.normalizer is not None:
        return None
    if splitter == "ByteLevel":
        plain = isinstance(model.model, models.BPE) and not any(getattr(model.model, name) for name in VARIATIONS)
        units = "byte" if model.get_vocab_size() == len(SPECIAL) + 256 else "bpe"
        return units if plain and not model.pre_tokenizer.add_prefix_space else None
    plain = isinstance(model.model, models.WordLevel) and model.model.unk_token == SPACED[UNK]
    return {"Split": "char", "WhitespaceSplit": "word", "NoneType": "line"}.get(splitter) if plain else None


def pieces_of(model: Any, units: str) -> list[bytes]:
    """The text of each token after the special ones."""
    if not isinstance(model, Tokenizer):
        return [_unigram_bytes(model, index) for index in range(len(SPECIAL), model.vocab_size())]
    ids = model.get_vocab()
    names = sorted(ids, key=ids.__getitem__)
    if ids[names[-1]] != len(names) - 1:
        raise ValueError(f"{len(names)} tokens with numbers up to {ids[names[-1]]}")
    if units == "wordpiece":  # a space before each word, and none before the first of a text
        return [
            name.removeprefix(INSIDE).encode() if name.startswith(INSIDE) else f" {name}".encode()
            for name in names[len(SPECIAL) :]
        ]
    if units not in ("bpe", "byte"):
        return [name.encode() for name in names[len(SPECIAL) :]]
    if names[len(SPECIAL) : len(SPECIAL) + 256] != BYTE_NAMES:
        raise ValueError("the first tokens are not the 256 bytes")
    return [bytes(map(BYTE_OF.__getitem__, name)) for name in names[len(SPECIAL) :]]


def _most_frequent(counts: Counter[str], size: int, splitter: Any) -> Tokenizer:
    """Ties are broken by the text of a piece, so that two fits agree."""
    kept = sorted(counts, key=lambda piece: (-counts[piece], piece))[:size]
    vocabulary = {piece: index for index, piece in enumerate([*SPACED, *kept])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPACED[UNK]))
    if splitter is not None:
        tokenizer.pre_tokenizer = splitter
    return tokenizer


def _word_pieces(texts: Iterator[str], size: int, lowercase: bool) -> list[str]:
    """Single characters, at the beginning of a word and inside, come first, in an order of their own: among pairs that
    are equally frequent the trainer takes those with the lowest numbers, and would number them by chance.
    """
    tokenizer, words = word_level([], lowercase), Counter[str]()
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    characters: Counter[str] = Counter()
    for word, count in words.items():
        characters.update(dict.fromkeys(word, count))
    kept = sorted(characters, key=lambda one: (-characters[one], one))[: max(size // 4, 1)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(size, 2 * len(kept)),
        special_tokens=[*kept, *(f"{INSIDE}{one}" for one in kept)],
        initial_alphabet=kept,
        limit_alphabet=len(kept),
        continuing_subword_prefix=INSIDE,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_repeated(words), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Every word as often as it was counted."""
    for word, count in sorted(words.items()):
        for first in range(0, count, 1000):
            yield f"{word} " * min(count - first, 1000)


def _merges(texts: Iterator[str], size: int) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=max(size, 256), initial_alphabet=BYTE_NAMES, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def _unigram(texts: Iterator[str], size: int) -> Any:
    """Unigram pieces. The trainer needs room for every character, and more than a few lines."""
    cleaned = str.maketrans(dict.fromkeys("\n\r\u2581\u2585", " "))  # line ends, and what sentencepiece reserves
    characters: Counter[str] = Counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool:
        count = 0
        for text in texts:
            count += 1
            text = text.translate(cleaned)
            characters.update(text)
            spool.write(text + "\n")

        # At most half of the room is for single characters; the rare ones are spelled in bytes.
        room = max(size - 256, 8)
        ranked = sorted(characters, key=lambda one: (-characters[one], one))
        rare = str.maketrans(dict.fromkeys(ranked[room // 2 :], " "))

        def lines() -> Iterator[str]:
            # A short corpus is read several times: pieces expected less than once are thrown away.
            for _ in range(-(-1000 // count)):
                spool.seek(0)
                for number, line in enumerate(spool):
                    if number % -(-count // UNIGRAM_LINES) == 0:
                        yield line.removesuffix("\n").translate(rare)

        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=lines(), model_writer=model, model_type="unigram",
                vocab_size=len(SPECIAL) + 256 + room, hard_vocab_limit=False, character_coverage=1.0,
                byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                add_dummy_prefix=False, max_sentence_length=1 << 20, minloglevel=3,
                num_threads=4,  # fixed: sums over threads, and with them the pieces, depend on it
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS,
                pad_piece=SPECIAL[PAD], unk_piece=SPECIAL[UNK], bos_piece=SPECIAL[BOS], eos_piece=SPECIAL[EOS],
            )  # fmt: skip
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise SeqloomError(
                f'unigram pieces cannot be learned from this text ({reason}); use units = "bpe"'
            ) from None
    return _sentencepiece(model.getvalue())


def _sentencepiece(content: bytes) -> Any:
    import sentencepiece  # only unigram pieces need it

    return sentencepiece.SentencePieceProcessor(model_proto=content)


def _unigram_bytes(model: Any, index: int) -> bytes:
    piece = model.id_to_piece(index)
    return bytes([int(piece[3:5], 16)]) if model.is_byte(index) else piece.replace(SPACE, " ").encode()
