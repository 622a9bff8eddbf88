"""Checksums of the data-set cache: what is read is what was written.

`manifest.json` of an entry has its key and a checksum per file; all JSON of the cache is sealed with a checksum of its
own. Hashing takes about a second per gigabyte, so `verified.json` remembers large files that were found intact: they
are hashed again when their inode, size or times differ, and once a week. docs/decisions/035-cache-checksums.md
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from seqloom.data.in_use import LOCK
from seqloom.storage import files

MANIFEST, VERIFIED = "manifest.json", "verified.json"
SMALL = 1 << 20  # bytes; up to this size a file is hashed whenever it is opened
DUE = 7 * 86_400.0  # seconds after which a large file is hashed again
SEAL = b'{"blake2b": "%s", "content": %s}\n'
HASH = partial(hashlib.blake2b, digest_size=16)
HEAD = len(SEAL % (HASH().hexdigest().encode(), b"")) - 2  # bytes of a seal before its content


def stamp(status: os.stat_result) -> list[int]:
    """Inode, size and times. Writing or replacing a file changes at least one, also where its time is set back."""
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, HASH).hexdigest()


# -- JSON with a checksum


def seal(value: Any) -> bytes:
    """A value as JSON, with a checksum."""
    body = json.dumps(value, default=vars).encode()
    return SEAL % (HASH(body).hexdigest().encode(), body)


def read_sealed(path: Path) -> Any:
    """The value of a file that `seal` made; anything else is a ValueError or an OSError."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise ValueError(f"{path} is not a regular file")
    content = path.read_bytes()
    body = content[HEAD:-2]
    if content != SEAL % (HASH(body).hexdigest().encode(), body):
        raise ValueError(f"{path} is damaged")
    return json.loads(body)


def write_sealed(path: Path, value: Any) -> None:
    """Write a file of an entry, which appears whole, also where several processes write it at once."""
    draft = path.with_name(f".partial-{os.urandom(8).hex()}")
    try:
        files.write(draft, seal(value))
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


# -- entries


def finish(folder: Path, key: str) -> None:
    """Write the manifest of a new entry, and force all of it to the disk."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    for path in paths:
        files.sync(path)
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    write_sealed(folder / MANIFEST, {"key": key, "files": {name: checksum(path) for name, path in names.items()}})
    statuses = {name: path.stat() for name, path in names.items()}
    large = {name: [time.time(), stamp(each)] for name, each in statuses.items() if each.st_size > SMALL}
    if large:
        write_sealed(folder / VERIFIED, large)
    for each in {folder, *(path.parent for path in paths)}:
        files.sync(each)


def find_damage(folder: Path, key: str) -> str | None:
    """The name of a file of an entry that is not as it was written, if there is one."""
    try:
        manifest = read_sealed(folder / MANIFEST)
    except (OSError, ValueError):
        return MANIFEST
    if manifest["key"] != key:  # the folder of another entry
        return MANIFEST
    verified: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        verified = read_sealed(folder / VERIFIED)
    before, now = dict(verified), time.time()
    for name, expected in manifest["files"].items():
        path = folder / name
        try:
            status = os.lstat(path)
            when, known = verified.get(name, (0.0, []))
            if known == stamp(status) and 0 <= now - when < DUE:
                continue
            if not stat.S_ISREG(status.st_mode) or checksum(path) != expected:
                return name
        except OSError:
            return name
        if status.st_size > SMALL:
            verified[name] = [now, stamp(status)]
    if verified != before:
        with suppress(OSError):  # a cache that others fill
            write_sealed(folder / VERIFIED, verified)
    return None
