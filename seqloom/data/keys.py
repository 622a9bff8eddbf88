"""Keys of the data-set cache: of files by path and status, of codecs by settings and what they learned."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from seqloom.contracts import Codec
from seqloom.data.checksums import stamp

FORMAT = 3
SETTLED = 2.0  # seconds since a file was last written


def key_of(*parts: Any) -> str:
    """The name of what is described by plain values."""
    described = json.dumps([FORMAT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()[:32]


def files_key(paths: Sequence[str], named: Iterable[str], codecs: Sequence[Codec], **settings: Any) -> str | None:
    """The name of files, of those `named` in them, and of how they are read; None if they could change unnoticed."""
    if not all(type(codec).__module__.startswith("seqloom.") for codec in codecs):
        return None
    content = hashlib.sha256()
    for path in chain(paths, named):
        if (identity := file_identity(path)) is None:
            return None
        content.update(repr(identity).encode())
    kinds = [[type(codec).__qualname__, codec_settings(codec)] for codec in codecs]
    return key_of(content.hexdigest(), kinds, settings)


def file_identity(path: str) -> tuple[str, list[int]] | None:
    """Path and stamp; None for a file that may still be written."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if time.time() - status.st_mtime < SETTLED:
        return None
    return os.path.abspath(path), stamp(status)


def codec_settings(codec: Codec) -> dict[str, Any]:
    """The plain arguments a codec was built with, and those of its parts."""
    plain = (str, int, float, bool, type(None))
    own = {name: value for name, value in vars(codec).items() if not name.startswith("_") and isinstance(value, plain)}
    return own | {f"parts.{name}": codec_settings(part) for name, part in codec.parts.items()}


def codec_key(codec: Codec) -> str:
    """A hash of a codec's plain settings and of what it learned, and of its parts."""
    kind = f"{type(codec).__module__}.{type(codec).__qualname__}"
    if hasattr(codec, "fingerprint"):
        return f"{kind} {codec.fingerprint()}"
    plain = {
        name: value for name, value in sorted(vars(codec).items()) if isinstance(value, (str, int, float, type(None)))
    }
    parts = [[name, codec_key(part)] for name, part in codec.parts.items()]
    learned = hashlib.sha256(f"{kind} {json.dumps([plain, parts] if parts else plain)}".encode())
    with tempfile.TemporaryDirectory() as folder:
        codec.save(Path(folder), "codec")
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                learned.update(path.name.encode() + path.read_bytes())
    return learned.hexdigest()
