"""Data-set cache, keyed by content; files that have not changed are found by path, size and times.

    KEY/manifest.json        one folder per data set, named by its content, its split and its codecs
        train/ valid/        the corpora
        source.* target.*    what the codecs learned
        FILES.json           validation examples and report of files that hold it, named by path, inode, size and times
        verified.json        large files that were found intact
        lock                 held by processes that use the entry

Files that have not changed are found by FILES and are not read again. What has no such name is read each time, and only
the corpora are kept: pipes, lists, codecs from outside the package, and a file that was written a moment ago, which may
be written again without a change of its time. Nothing is believed without its checksum: see `checksums`.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from seqloom.contracts import Codec
from seqloom.data import checksums
from seqloom.data.corpus import Corpus, publish
from seqloom.data.entries import Entry, as_size, entries, remove_leftovers
from seqloom.data.in_use import Hold, discard, remove_unused
from seqloom.data.report import Report
from seqloom.errors import SeqloomError, shown
from seqloom.storage.files import sync
from seqloom.types import Example

LIMIT = "20 GB"
UNITS = {"": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def cache_folder() -> Path:
    """Where data sets are kept: $SEQLOOM_CACHE, or the user's cache."""
    ours = os.environ.get("SEQLOOM_CACHE")
    return Path(ours) if ours else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"


def cache_limit() -> float:
    """How many bytes they may take: $SEQLOOM_CACHE_LIMIT, or 20 GB."""
    text = os.environ.get("SEQLOOM_CACHE_LIMIT") or LIMIT
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?) ?([KMGT]B)?", text.strip(), re.ASCII | re.IGNORECASE)
    if match is None:
        raise SeqloomError(f"SEQLOOM_CACHE_LIMIT = {shown(text)}: expected a size, such as 20 GB or 500 MB")
    return float(match[1]) * UNITS[(match[2] or "").upper()]


class Cache:
    """A folder of data sets. Several processes may use it at once: entries and files in them appear whole.

    Where it cannot be written, data sets are encoded each time. `notes` says so, and what was damaged.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = cache_folder() if folder is None else Path(folder)
        self.limit = cache_limit()
        self.damaged: list[str] = []  # names of files
        self.remarks: list[str] = []

    def notes(self, title: str) -> list[str]:
        """What a person should know, in sentences; the title is that of the data."""
        damaged = (f"The cache of {title} was damaged ({name}): made again." for name in dict.fromkeys(self.damaged))
        return [*damaged, *self.remarks]

    # -- reading

    def find(self, files: str, codecs: Mapping[str, Codec]) -> tuple[Corpus, Corpus, list[Example], Report] | None:
        """The data set of these files: corpora, validation examples, report. Loads what the codecs learned then."""
        for path in self.folder.glob(f"[!.]*/{files}.json"):
            key = path.parent.name
            try:
                known = checksums.read_sealed(path)
                if (known["key"], known["files"]) != (key, files):
                    raise ValueError("the note of another entry")
                valid_examples = [Example(*each) for each in known["valid"]]
                report = Report.from_json(known["report"])
            except FileNotFoundError:  # another process has removed the entry
                continue
            except (OSError, ValueError, KeyError, TypeError):
                self._reject(path, path.name)
                continue
            if (corpora := self.open(key)) is None:
                continue
            try:
                for name, codec in codecs.items():
                    codec.load(path.parent, name)
            except SeqloomError:  # intact, but not for this version of a library
                self._reject(path.parent, f"{name}.*")
                continue
            return *corpora, valid_examples, report
        return None

    def open(self, key: str) -> tuple[Corpus, Corpus] | None:
        """The corpora to train on and to validate with, if there is an entry and nothing of it is damaged."""
        folder = self.folder / key
        if not os.path.lexists(folder):
            return None
        hold = Hold(folder)
        try:
            damaged = checksums.find_damage(folder, key)
            if damaged is None:
                train, valid = Corpus.open(folder / "train"), Corpus.open(folder / "valid")
                train.hold = valid.hold = hold
                with suppress(OSError):
                    os.utime(folder / checksums.MANIFEST)  # the time of its last use
                return train, valid
        except SeqloomError:  # removed in between
            damaged = checksums.MANIFEST
        if os.path.lexists(folder):  # else another process has removed it
            self._reject(folder, damaged)
        return None

    def _reject(self, path: Path, name: str) -> None:
        """Remove what is damaged."""
        self.damaged.append(name)
        with suppress(OSError):
            discard(path)

    # -- writing

    def write(self, key: str, fill: Callable[[Path], tuple[Corpus, Corpus]]) -> tuple[Corpus, Corpus]:
        """A new entry: `fill` writes into a folder, which gets its name when it is whole.

        Where that fails, for want of room or permission, the corpora are files without a name, of this process alone.
        """
        try:
            return self._write(key, fill)
        except (OSError, SeqloomError) as error:
            problem = failed_write(error)
        self.remarks.append(
            f"The cache {self.folder} cannot be written ({problem}): the data will be encoded again in the next run."
        )
        try:
            with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
                return fill(Path(folder))  # maps stay valid
        except (OSError, SeqloomError) as error:
            raise SeqloomError(
                f"encoded data can be written neither to the cache {self.folder} ({problem}) nor to the folder for "
                f"temporary files ({failed_write(error)}): make room, or set SEQLOOM_CACHE to another folder"
            ) from None

    def _write(self, key: str, fill: Callable[[Path], tuple[Corpus, Corpus]]) -> tuple[Corpus, Corpus]:
        folder = self.folder / key
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.folder))
        try:
            hold = Hold(partial)
            train, valid = fill(partial)
            checksums.finish(partial, key)
            publish(partial, folder)
            sync(self.folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # gone already, unless something failed
        train.folder, valid.folder = folder / "train", folder / "valid"
        train.hold = valid.hold = hold
        if removed := self.shrink():
            these = "1 entry" if len(removed) == 1 else f"{len(removed)} entries"
            self.remarks.append(
                f"Removed {these} of the cache, least recently used first: its limit is {as_size(self.limit)}."
            )
        return train, valid

    def add_files(
        self, key: str, files: str, paths: Sequence[str], valid_examples: Sequence[Example], report: Report
    ) -> None:
        """Note which files hold a data set. A full disk is no error: they are read again next time."""
        if not all(isinstance(each.source, str | None) and isinstance(each.target, str) for each in valid_examples):
            return
        valid = [[each.source, each.target, each.line] for each in valid_examples]
        known = {"key": key, "files": files, "paths": list(map(os.path.abspath, paths)), "valid": valid}
        with suppress(OSError):
            checksums.write_sealed(self.folder / key / f"{files}.json", {**known, "report": vars(report)})

    # -- keeping it small

    def entries(self) -> list[Entry]:
        """All entries, last used first."""
        return entries(self.folder)

    def clear(self, before: float = math.inf) -> list[Entry]:
        """Remove entries last used before a time, by default all, that no process uses. Returns which."""
        remove_leftovers(self.folder)
        old = (entry for entry in self.entries() if entry.used < before)
        return [entry for entry in old if remove_unused(entry.folder)]

    def shrink(self) -> list[Entry]:
        """Remove entries that no process uses, least recently used first, down to the limit. Returns which."""
        found = self.entries()
        total, removed = sum(entry.size for entry in found), []
        for entry in reversed(found):
            if total > self.limit and remove_unused(entry.folder):
                total -= entry.size
                removed.append(entry)
        return removed


def failed_write(error: OSError | SeqloomError) -> str:
    """Why a file could not be written; any other error is raised again."""
    problem = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(problem, OSError):
        raise error
    return problem.strerror or str(problem)
