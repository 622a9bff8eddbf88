"""What was found in files, for the next run on the same ones: where their corpora are, what to validate with, codecs.

A file is the same as long as its path, its size and the time it was written are; then it is not read again. So it is
with the files that its lines name, such as recordings. One that was written a moment ago may be written once more
within the same tick of the clock, and a pipe, a list or a codec of one's own tells nothing of itself: what was found
there is not remembered.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.contracts import Codec
from seqloom.data.corpus import publish
from seqloom.data.readers import Tally
from seqloom.errors import SeqloomError
from seqloom.types import Example

FORMAT = 1
MOMENT = 2.0  # seconds that a file must have been at rest


@dataclass(frozen=True)
class Remembered:
    """The folder of one memory, which may not be there yet."""

    folder: Path

    @classmethod
    def of(cls, cache: Path, paths: Sequence[str], codecs: Sequence[Codec], **settings: Any) -> Remembered | None:
        """For these files, read with these settings by codecs as they were built; None where nothing can be kept."""
        if not paths or not all(type(codec).__module__.startswith("seqloom.") for codec in codecs):
            return None
        files = list(map(at_rest, paths))
        if None in files:
            return None
        kinds = [[type(codec).__qualname__, settings_of(codec)] for codec in codecs]
        said = json.dumps([FORMAT, files, kinds, settings], sort_keys=True, default=str)
        return cls(cache / "remembered" / hashlib.sha256(said.encode()).hexdigest()[:32])

    def recall(self) -> tuple[str, list[Example], dict[str, Any]] | None:
        """The key of the corpora, the examples to validate with, and the report; None if nothing is known."""
        try:
            known = json.loads((self.folder / "known.json").read_text(encoding="utf-8"))
            examples = [Example(*each) for each in known["valid"]]
            report = {**known["report"], "tally": tally_of(known["report"]["tally"])}
            report["valid_tally"] = tally_of(report["valid_tally"])
            return known["key"], examples, report
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, examples: list[Example], report: Any, codecs: dict[str, Codec]) -> None:
        """Write it down, whole or not at all; a disk that is full is no reason to fail."""
        values = [value for example in examples for value in (example.source, example.target)]
        if not all(value is None or isinstance(value, str) for value in values):
            return
        valid = [[example.source, example.target, example.line] for example in examples]
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.folder.parent))
        except OSError:
            return
        try:
            for name, codec in codecs.items():
                codec.save(partial, name)
            known = {"key": key, "valid": valid, "report": vars(report)}
            text = json.dumps(known, ensure_ascii=False, default=vars)  # a tally is its entries
            (partial / "known.json").write_text(text, encoding="utf-8")
            publish(partial, self.folder)
        except (OSError, SeqloomError):
            pass
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def at_rest(path: str) -> tuple[str, int, int] | None:
    """What a file is known by; None while it may be written."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    if time.time() - about.st_mtime < MOMENT:
        return None
    return os.path.abspath(path), about.st_size, about.st_mtime_ns


def settings_of(codec: Codec) -> dict[str, Any]:
    """What a codec was built with."""
    plain = (str, int, float, bool, type(None))
    return {name: value for name, value in vars(codec).items() if not name.startswith("_") and isinstance(value, plain)}


def tally_of(entries: dict[str, Any] | None) -> Tally | None:
    return None if entries is None else Tally(**{**entries, "reasons": Counter(entries["reasons"])})
