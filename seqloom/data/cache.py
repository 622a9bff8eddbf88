"""Data-set cache, keyed by path, size and modification time.

    KEY/manifest.json        one folder per data set, named by its content, its split and its codecs
        train/ valid/        the corpora
        source.* target.*    what the codecs learned
        FILES.json           validation examples and report of files that hold it, named by path, size and time

Files that have not changed are found by FILES and are not read again. What has no such name is read each time, and only
the corpora are kept: pipes, lists, codecs from outside the package, and a file that was written a moment ago, which may
be written again without a change of its time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from seqloom.contracts import Codec
from seqloom.data.corpus import Corpus, publish
from seqloom.data.report import Report
from seqloom.errors import SeqloomError
from seqloom.types import Example

FORMAT = 2
SETTLED = 2.0  # seconds since a file was last written


def cache_folder() -> Path:
    """Where data sets are kept: $SEQLOOM_CACHE, or the user's cache."""
    ours = os.environ.get("SEQLOOM_CACHE")
    return Path(ours) if ours else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"


class Cache:
    """A folder of data sets. Several processes may use it at once: entries and files in them appear whole."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def find(self, files: str, codecs: Mapping[str, Codec]) -> tuple[Corpus, Corpus, list[Example], Report] | None:
        """The data set of these files: corpora, validation examples, report. Loads what the codecs learned then."""
        for path in self.folder.glob(f"[!.]*/{files}.json"):
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
                valid_examples = [Example(*each) for each in known["valid"]]
                report = Report.from_json(known["report"])
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if (corpora := self.open(path.parent.name)) is None:
                continue
            try:
                for name, codec in codecs.items():
                    codec.load(path.parent, name)
            except SeqloomError:
                (path.parent / "manifest.json").unlink(missing_ok=True)  # damaged: to be written again
                continue
            return *corpora, valid_examples, report
        return None

    def open(self, key: str) -> tuple[Corpus, Corpus] | None:
        """The corpora to train on and to validate with, if there is an entry and nothing of it is missing."""
        folder = self.folder / key
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            sizes = manifest["files"].items()
            if manifest["format"] != FORMAT or any((folder / name).stat().st_size != size for name, size in sizes):
                return None
            return Corpus.open(folder / "train"), Corpus.open(folder / "valid")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SeqloomError):
            return None

    def write(self, key: str, fill: Callable[[Path], tuple[Corpus, Corpus]]) -> tuple[Corpus, Corpus]:
        """A new entry: `fill` writes into a folder, which gets its name when it is whole."""
        folder = self.folder / key
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.folder))
        try:
            train, valid = fill(partial)
            files = [path for path in sorted(partial.rglob("*")) if path.is_file()]
            sizes = {path.relative_to(partial).as_posix(): path.stat().st_size for path in files}
            manifest = {"format": FORMAT, "files": sizes}
            (partial / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            publish(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # gone already, unless something failed
        train.folder, valid.folder = folder / "train", folder / "valid"
        return train, valid

    def add_files(
        self, key: str, files: str, paths: Sequence[str], valid_examples: Sequence[Example], report: Report
    ) -> None:
        """Note which files hold a data set. A full disk is no error: they are read again next time."""
        if not all(isinstance(each.source, str | None) and isinstance(each.target, str) for each in valid_examples):
            return
        valid = [[each.source, each.target, each.line] for each in valid_examples]
        known = {"paths": list(map(os.path.abspath, paths)), "valid": valid, "report": vars(report)}
        text = json.dumps(known, ensure_ascii=False, default=vars)  # a tally is its entries
        partial = self.folder / key / f".partial-{uuid.uuid4().hex}"
        with suppress(OSError):
            try:
                partial.write_text(text, encoding="utf-8")
                os.replace(partial, self.folder / key / f"{files}.json")
            finally:
                partial.unlink(missing_ok=True)


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


def file_identity(path: str) -> tuple[str, int, int] | None:
    """Path, size and modification time; None for a file that may still be written."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if time.time() - status.st_mtime < SETTLED:
        return None
    return os.path.abspath(path), status.st_size, status.st_mtime_ns


def codec_settings(codec: Codec) -> dict[str, Any]:
    """The plain arguments a codec was built with."""
    plain = (str, int, float, bool, type(None))
    return {name: value for name, value in vars(codec).items() if not name.startswith("_") and isinstance(value, plain)}


def codec_key(codec: Codec) -> str:
    """A hash of a codec's plain settings and of what it learned."""
    kind = f"{type(codec).__module__}.{type(codec).__qualname__}"
    if hasattr(codec, "fingerprint"):
        return f"{kind} {codec.fingerprint()}"
    plain = {
        name: value for name, value in sorted(vars(codec).items()) if isinstance(value, (str, int, float, type(None)))
    }
    learned = hashlib.sha256(f"{kind} {json.dumps(plain)}".encode())
    with tempfile.TemporaryDirectory() as folder:
        codec.save(Path(folder), "codec")
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                learned.update(path.name.encode() + path.read_bytes())
    return learned.hexdigest()
