"""Text as tokens: characters, words, byte pairs, unigram pieces or bytes.

Sennrich, Haddow & Birch 2016 (byte pairs, here over bytes); Kudo 2018 (unigram pieces, with bytes for the rest).
Byte pairs, unigram pieces and bytes give any text back exactly. Ids 0 to 3 are the four tokens in every unit, and
no text can spell them: "<eos>" in a text is five characters like any others.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from seqloom.contracts import Codec, Feed
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL, UNK
from seqloom.errors import SeqloomError, nearest
from seqloom.storage.files import replace_file, saving

Units = Literal["char", "word", "bpe", "unigram", "byte"]
UNKNOWN = "⁇"

# In a tokenizer's vocabulary the tokens begin with a space. No word, no single character and no byte-level piece
# does, so that no text is ever taken for a token and no merge ever ends in one.
_SPECIAL = [f" {symbol}" for symbol in SPECIAL]

_MARK = "\u2581"  # sentencepiece's name for a space; a real one is spelled in bytes
_UNIGRAM_LINES = 1_000_000  # sentencepiece keeps its text in memory: beyond this, every n-th line is read


def _byte_names() -> list[str]:
    """The printable character that stands for each byte in byte-level pieces, as GPT-2 chose them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


_BYTE_NAMES = _byte_names()
_BYTE_OF = {name: byte for byte, name in enumerate(_BYTE_NAMES)}


class Text(Codec):
    """Text <-> ids. `size` is how many pieces are learned beside the four tokens.

    Characters are all kept, whatever the size; byte pairs and unigram pieces include the 256 bytes.
    """

    def __init__(self, *, units: Units = "bpe", size: int = 8000, lowercase: bool = False):
        if units not in get_args(Units):
            raise SeqloomError(f'text units are "{units}"; expected one of {", ".join(get_args(Units))}'
                               + nearest(units, get_args(Units)))  # fmt: skip
        if size < 1:
            raise SeqloomError(f"text size is {size}; expected at least 1 piece")
        self.units, self.size, self.lowercase = units, size, lowercase
        self._model: Any = None  # Tokenizer or SentencePieceProcessor
        self._pieces: list[bytes] = []  # what each id stands for
        self._table: np.ndarray | None = None  # the id of each byte or character: ten times faster than the tokenizer
        if units == "byte":
            self._adopt(_byte_level([]))

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        """How many ids there are, the four tokens included."""
        return len(self._fitted()._pieces)

    def fit(self, values: Iterable[str]) -> Self:
        if self.units == "byte":
            return self
        texts = _some((self.normal(value) for value in values), self.units)
        if self.units == "char":
            counts: Counter[str] = Counter()
            for text in texts:
                counts.update(text)
            self._adopt(_listed(counts, len(counts), pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")))
        elif self.units == "word":
            words = Counter(word for text in texts for word in text.split())
            self._adopt(_listed(words, self.size, pre_tokenizers.WhitespaceSplit()))
        elif self.units == "bpe":
            self._adopt(_byte_level(_merges(texts, self.size)))
        else:
            self._adopt(_unigram(texts, self.size))
        return self

    def encode(self, value: str, source: Any = None) -> np.ndarray:
        return self.encode_many([value])[0].astype(np.int64)  # (T,)

    def encode_many(self, values: Sequence[str]) -> list[np.ndarray]:
        """The ids of many texts in one parallel call, int32."""
        model = self._fitted()._model
        texts = [self.normal(value) for value in values]
        if self._table is not None:
            last = len(self._table) - 1
            return [self._table[np.minimum(self._codes(text), last)] for text in texts]
        if self.units == "unigram":
            lists = model.encode([text if _MARK not in text else "" for text in texts])
            lists = [self._around_marks(text) if _MARK in text else ids for text, ids in zip(texts, lists)]
        else:
            lists = [encoding.ids for encoding in model.encode_batch_fast(texts, add_special_tokens=False)]
        return [np.array(ids, dtype=np.int32) for ids in lists]

    def decode(self, values: Any, source: Any = None) -> str:
        """The text up to the first EOS. Bytes that are no UTF-8 become U+FFFD, as a model may well emit some."""
        table = self._fitted()._pieces
        pieces = []
        for index in _ids(values):
            if index == EOS:
                break
            if index not in (PAD, BOS):
                pieces.append(table[index])
        return (b" " if self.units == "word" else b"").join(pieces).decode(errors="replace")

    def pieces(self, values: Any) -> list[str]:
        """What each id shows as: a space is ␣, a byte that is only a part of a character is <C3>."""
        table = self._fitted()._pieces
        return [SPECIAL[index] if index < len(SPECIAL) else _shown(table[index]) for index in _ids(values)]

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        with saving(path):
            replace_file(path, self._content())

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SeqloomError(f"{path} cannot be read: {error.strerror}; expected a saved vocabulary") from None
        try:
            model = _sentencepiece(content) if self.units == "unigram" else Tokenizer.from_buffer(content)
        except Exception:  # the libraries raise bare exceptions and RuntimeErrors
            model = None
        known = ("byte", "bpe") if self.units == "bpe" else (self.units,)  # byte pairs of which none was learned
        if model is None or _kind(model) not in known:
            found = "another file" if model is None else "one of other units"
            raise SeqloomError(f'{path} is no vocabulary of units = "{self.units}" but {found}; give what was saved')
        self._adopt(model)
        return self

    def fingerprint(self) -> str:
        """A hash of the settings and of what was learned."""
        settings = json.dumps([self.units, self.size, self.lowercase]).encode()
        return hashlib.sha256(settings + self._content()).hexdigest()

    def feed(self) -> Feed:
        """Characters and bytes as they come, words and their pieces when the word is complete."""
        return Reading(self)

    def spellings(self, value: str) -> list[list[int]]:
        """The ids of a text within another: after a space, pieces of several characters may be others."""
        forms = [value, f" {value}"] if self.units in ("bpe", "unigram") else [value]
        return [ids.tolist() for ids in self.encode_many(forms)]

    def elements(self, value: str) -> int | None:
        if self.units not in ("word", "char"):
            return None
        normal = self.normal(value)
        return len(normal.split()) if self.units == "word" else len(normal)

    def normal(self, value: str) -> str:
        """The text as a perfect output would spell it: lower case and single spaces, if that is the codec's way."""
        if not isinstance(value, str):
            raise SeqloomError(f"a text codec was given {type(value).__name__} {value!r:.60}; expected a string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SeqloomError(f"{value[:40]!r} has half a surrogate pair; expected valid Unicode text") from None
        value = value.lower() if self.lowercase else value
        # Python and Rust differ on what is white space; words are split where Python does.
        return " ".join(value.split()) if self.units == "word" else value

    def _fitted(self) -> Self:
        if self._model is None:
            raise SeqloomError(f'text of units = "{self.units}" has no vocabulary yet; fit it or load it first')
        return self

    def _adopt(self, model: Any) -> None:
        self._model = model
        if isinstance(model, Tokenizer):
            ids = model.get_vocab()
            names = sorted(ids, key=ids.__getitem__)[len(SPECIAL) :]
            level = self.units in ("bpe", "byte")
            learned = [bytes(map(_BYTE_OF.__getitem__, name)) if level else name.encode() for name in names]
        else:
            learned = [_unigram_bytes(model, index) for index in range(len(SPECIAL), model.vocab_size())]
        symbols = [UNKNOWN.encode() if index == UNK else b"" for index in range(len(SPECIAL))]
        self._pieces = symbols + learned
        if self.units == "byte":
            self._table = np.arange(256, dtype=np.int32) + len(SPECIAL)
        elif self.units == "char":
            codes = [ord(piece.decode()) for piece in learned]
            self._table = np.full(max(codes, default=0) + 2, UNK, dtype=np.int32)  # the last for all beyond
            self._table[codes] = np.arange(len(SPECIAL), len(self._pieces))

    def _codes(self, text: str) -> np.ndarray:
        if self.units == "byte":
            return np.frombuffer(text.encode(), dtype=np.uint8)
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")

    def _around_marks(self, text: str) -> list[int]:
        mark = [self._model.piece_to_id(f"<0x{byte:02X}>") for byte in _MARK.encode()]
        first, *rest = self._model.encode(text.split(_MARK))
        return first + [index for ids in rest for index in mark + ids]

    def _content(self) -> bytes:
        model = self._fitted()._model
        return model.to_str(pretty=True).encode() if isinstance(model, Tokenizer) else model.serialized_model_proto()

    def _path(self, folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.{'sentencepiece.model' if self.units == 'unigram' else 'tokenizer.json'}"


class Reading(Feed):
    """Text as it comes. It is cut before white space only, where no piece goes on and no letter looks back."""

    def __init__(self, codec: Text):
        self.codec, self.rest = codec, ""
        alone = codec.units in ("char", "byte") and not codec.lowercase  # a small sigma looks at the rest of its word
        space = r"\s" if codec.units == "word" else r"[ \n]"  # pieces and Python differ on what else is white space
        self.certain = re.compile(".*" if alone else rf".*\S(?={space})", re.DOTALL)

    def feed(self, raw: str) -> np.ndarray:
        self.codec.normal(raw)  # complains of what is no text
        text = self.rest + raw
        found = self.certain.match(text)
        end = found.end() if found else 0
        self.rest = text[end:]
        return self.codec.encode(text[:end])

    def close(self) -> np.ndarray:
        text, self.rest = self.rest, ""
        return self.codec.encode(text)


def _ids(values: Any) -> list[int]:
    """Of an array of any kind, or of a list."""
    return values.tolist() if hasattr(values, "tolist") else [int(index) for index in values]


def _shown(piece: bytes) -> str:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        text = "".join(chr(byte) if byte < 128 else f"<{byte:02X}>" for byte in piece)
    return "".join("␣" if one == " " else one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _some(texts: Iterable[str], units: str) -> Iterator[str]:
    """The texts that are not empty, of which there must be one."""
    empty = True
    for text in texts:
        if text:
            empty = False
            yield text
    if empty:
        raise SeqloomError(
            f'text of units = "{units}" was given nothing to learn from; expected a line that is not empty'
        )


def _listed(counts: Counter[str], size: int, splitter: Any) -> Tokenizer:
    """The most frequent pieces, ties in the order of their text, so that two fits agree."""
    kept = sorted(counts, key=lambda piece: (-counts[piece], piece))[:size]
    vocabulary = {piece: index for index, piece in enumerate([*_SPECIAL, *kept])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=_SPECIAL[UNK]))
    tokenizer.pre_tokenizer = splitter
    return tokenizer


def _merges(texts: Iterator[str], size: int) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=max(size, 256), initial_alphabet=_BYTE_NAMES, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def _byte_level(merges: list[tuple[str, str]]) -> Tokenizer:
    """The tokens, the bytes in order, then what the merges make: byte b has id b + 4 whatever was learned."""
    names = dict.fromkeys([*_SPECIAL, *_BYTE_NAMES, *(left + right for left, right in merges)])
    tokenizer = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def _unigram(texts: Iterator[str], size: int) -> Any:
    """Pieces by sentencepiece, whose trainer asks for room for every character and for more than a few lines."""
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
                    if number % -(-count // _UNIGRAM_LINES) == 0:
                        yield line.removesuffix("\n").translate(rare)

        import sentencepiece

        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=lines(), model_writer=written, model_type="unigram",
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
    return _sentencepiece(written.getvalue())


def _sentencepiece(content: bytes) -> Any:
    import sentencepiece  # which other units do without

    return sentencepiece.SentencePieceProcessor(model_proto=content)


def _unigram_bytes(model: Any, index: int) -> bytes:
    piece = model.id_to_piece(index)
    return bytes([int(piece[3:5], 16)]) if model.is_byte(index) else piece.replace(_MARK, " ").encode()


def _kind(model: Any) -> str | None:
    """The units a vocabulary was made for, None for one that is not ours."""
    if not isinstance(model, Tokenizer):
        ours = [model.id_to_piece(index) for index in range(min(4, model.vocab_size()))] == list(SPECIAL)
        return "unigram" if ours and model.is_byte(4) else None
    if [model.id_to_token(index) for index in range(4)] != _SPECIAL:
        return None
    splitter = type(model.pre_tokenizer).__name__
    plain = "byte" if model.get_vocab_size() == len(SPECIAL) + 256 else "bpe"
    return {"Split": "char", "WhitespaceSplit": "word", "ByteLevel": plain}.get(splitter)
