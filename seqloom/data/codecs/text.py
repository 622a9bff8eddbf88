"""Text as tokens: characters, words, whole lines, byte pairs, unigram pieces, word pieces or bytes.

Byte pairs, unigram pieces and bytes give any text back exactly. Ids 0 to 3 are the special tokens in all units, and
no text can contain them: "<eos>" in a text is five characters like any others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from seqloom.contracts import Codec, Feed
from seqloom.data.codecs import vocabularies
from seqloom.data.special_tokens import BOS, MASK, PAD, SPECIAL, UNK, UNKNOWN, as_ids, before_eos
from seqloom.errors import SeqloomError, UnreadableError, nearest, one_line
from seqloom.storage.files import LARGE, read_bytes, replace_file, saving

Units = Literal["char", "word", "line", "bpe", "unigram", "wordpiece", "byte"]


class Text(Codec):
    """Text <-> ids. `size` is how many pieces are learned besides the special tokens.

    Characters are all kept, whatever the size; byte pairs and unigram pieces include the 256 bytes.
    Word pieces are those of BERT: marks are words of their own, white space is single spaces, and with `lowercase`
    accents are left out. A line is one token: a label of one word or several. With `mask` the last id
    is that of a token in whose place another is to be found; no text has it.
    """

    def __init__(self, *, units: Units = "bpe", size: int = 8000, lowercase: bool = False, mask: bool = False):
        if units not in get_args(Units):
            raise SeqloomError(f'text units are "{units}"; expected one of {", ".join(get_args(Units))}'
                               + nearest(units, get_args(Units)))  # fmt: skip
        if size < 1:
            raise SeqloomError(f"text size is {size}; expected at least 1 piece")
        self.units, self.size, self.lowercase, self.masks = units, size, lowercase, mask
        self._model: Any = None  # Tokenizer or SentencePieceProcessor
        self._pieces: list[bytes] = []  # the text of each id
        self._table: np.ndarray | None = None  # the id of each byte or character: ten times faster than the tokenizer
        if units == "byte":
            self._adopt(vocabularies.byte_level([]))

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        """How many ids there are, the special tokens included."""
        return len(self._fitted()._pieces)

    @property
    def begins_word(self) -> np.ndarray:
        """Which ids begin a word or are no part of one: all but pieces that continue a word.  bool (V,)"""
        if self.units not in ("wordpiece", "bpe", "unigram"):
            return np.ones(self.vocabulary, dtype=bool)
        return np.array([not piece or piece[:1].isspace() for piece in self._fitted()._pieces])

    def fit(self, values: Iterable[str]) -> Self:
        if self.units != "byte":
            texts = _not_empty((self.normal(value) for value in values), self.units)
            self._adopt(vocabularies.learn(texts, self.units, self.size, self.lowercase))
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
            lists = model.encode([text if vocabularies.SPACE not in text else "" for text in texts])
            lists = [self._around_marks(text) if vocabularies.SPACE in text else ids for text, ids in zip(texts, lists)]
        else:
            lists = [encoding.ids for encoding in model.encode_batch_fast(texts, add_special_tokens=False)]
        return [np.array(ids, dtype=np.int32) for ids in lists]

    def decode(self, values: Any, source: Any = None) -> str:
        """The text up to the first EOS. Bytes that are not UTF-8, which a model may well emit, become U+FFFD."""
        table = self._fitted()._pieces
        pieces = [table[index] for index in before_eos(values) if index not in (PAD, BOS)]
        text = (b" " if self.units == "word" else b"").join(pieces).decode(errors="replace")
        return text.removeprefix(" ") if self.units == "wordpiece" else text

    def pieces(self, values: Any) -> list[str]:
        """Each id for display: a space is ␣, a byte that is only a part of a character is <C3>.

        A word piece that continues a word begins with ##, as in BERT.
        """
        table = self._fitted()._pieces
        shown = [SPECIAL[index] if index < len(SPECIAL) else _printable(table[index]) for index in as_ids(values)]
        if self.units != "wordpiece":
            return shown
        inside = vocabularies.INSIDE
        return [
            each.removeprefix("␣") if index < len(SPECIAL) or table[index].startswith(b" ") else f"{inside}{each}"
            for index, each in zip(as_ids(values), shown)
        ]

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        with saving(path):
            replace_file(path, vocabularies.to_bytes(self._fitted()._model))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        content = read_bytes(path, LARGE, "expected a saved vocabulary")
        try:
            model = vocabularies.from_bytes(content, self.units)
            known = ("byte", "bpe") if self.units == "bpe" else (self.units,)  # a "bpe" may have learned no pairs
            if vocabularies.units_of(model) in known:
                self._adopt(model)
                return self
            found = "one of other units, or not written by Seqloom"
        except Exception as error:  # the libraries raise bare exceptions and RuntimeErrors
            found = f"another file ({one_line(error)[:120]})"
        raise SeqloomError(f'{path} is not a vocabulary of units = "{self.units}" but {found}; give what was saved')

    def fingerprint(self) -> str:
        """A hash of the settings and of what was learned."""
        import hashlib  # loads OpenSSL, which prediction does not need

        settings = json.dumps([self.units, self.size, self.lowercase, *[True] * self.masks]).encode()
        return hashlib.sha256(settings + vocabularies.to_bytes(self._fitted()._model)).hexdigest()

    def feed(self) -> Feed:
        """Characters and bytes as they come; words and their pieces when the word is complete."""
        return super().feed() if self.units == "line" else TextFeed(self)

    def spellings(self, value: str) -> list[list[int]]:
        """The ids of a text inside another: its first piece may differ after a space."""
        forms = [value, f" {value}"] if self.units in ("bpe", "unigram") else [value]
        return [ids.tolist() for ids in self.encode_many(forms)]

    def content(self, value: str) -> str:
        return value if isinstance(value, str) else self.normal(value)  # which says what it expects

    def elements(self, value: str) -> int | None:
        if self.units not in ("word", "char", "line"):
            return None
        normal = self.normal(value)
        if self.units == "line":
            return int(bool(normal))
        return len(normal.split()) if self.units == "word" else len(normal)

    def normal(self, value: str) -> str:
        """The text as a perfect output would be: lower case with `lowercase`, single spaces between words."""
        if not isinstance(value, str):
            raise UnreadableError(f"a text codec was given {type(value).__name__} {value!r:.60}; expected a string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SeqloomError(f"{value[:40]!r} has half a surrogate pair; expected valid Unicode text") from None
        value = value.lower() if self.lowercase else value
        # Python and Rust differ on what is white space; words are split where Python does.
        return " ".join(value.split()) if self.units in ("word", "line", "wordpiece") else value

    def _fitted(self) -> Self:
        if self._model is None:
            raise SeqloomError(f'text of units = "{self.units}" has no vocabulary yet; fit it or load it first')
        return self

    def _adopt(self, model: Any) -> None:
        learned = vocabularies.pieces_of(model, self.units)
        self._model = model
        unknown = f" {UNKNOWN}" if self.units == "wordpiece" else UNKNOWN
        self._pieces = [unknown.encode() if index == UNK else b"" for index in range(len(SPECIAL))] + learned
        self._pieces += [f"{' ' * (self.units == 'wordpiece')}{MASK}".encode()] * self.masks
        if self.units == "byte":
            self._table = np.arange(256, dtype=np.int32) + len(SPECIAL)
        elif self.units == "char":
            codes = [ord(piece.decode()) for piece in learned]
            self._table = np.full(max(codes, default=0) + 2, UNK, dtype=np.int32)  # the last for all beyond
            self._table[codes] = np.arange(len(SPECIAL), len(SPECIAL) + len(codes))

    def _codes(self, text: str) -> np.ndarray:
        if self.units == "byte":
            return np.frombuffer(text.encode(), dtype=np.uint8)
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")

    def _around_marks(self, text: str) -> list[int]:
        mark = [self._model.piece_to_id(f"<0x{byte:02X}>") for byte in vocabularies.SPACE.encode()]
        first, *rest = self._model.encode(text.split(vocabularies.SPACE))
        return first + [index for ids in rest for index in mark + ids]

    def _path(self, folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.{'sentencepiece.model' if self.units == 'unigram' else 'tokenizer.json'}"


class TextFeed(Feed):
    """Streamed text. It is cut only before white space, where no piece continues and no letter depends on the next."""

    def __init__(self, codec: Text):
        self.codec, self.rest = codec, ""
        alone = codec.units in ("char", "byte") and not codec.lowercase  # a small sigma depends on the rest of its word
        space = r"\s" if codec.units == "word" else r"[ \n]"  # pieces and Python differ on what else is white space
        self.certain = re.compile(".*" if alone else rf".*\S(?={space})", re.DOTALL)

    def feed(self, raw: str) -> np.ndarray:
        self.codec.normal(raw)  # raises an error if it is not text
        text = self.rest + raw
        found = self.certain.match(text)
        end = found.end() if found else 0
        self.rest = text[end:]
        return self.codec.encode(text[:end])

    def close(self) -> np.ndarray:
        text, self.rest = self.rest, ""
        return self.codec.encode(text)


def _printable(piece: bytes) -> str:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        text = "".join(chr(byte) if byte < 128 else f"<{byte:02X}>" for byte in piece)
    return "".join("␣" if one == " " else one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _not_empty(texts: Iterable[str], units: str) -> Iterator[str]:
    """The texts that are not empty; at least one is required."""
    empty = True
    for text in texts:
        if text:
            empty = False
            yield text
    if empty:
        raise SeqloomError(
            f'text of units = "{units}" was given nothing to learn from; expected a line that is not empty'
        )
