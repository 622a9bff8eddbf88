"""From what a user gives to what a trainer reads: hold out, fit the codecs, encode, report.

Every step is a pass over a stream; only the examples to validate with are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.cache import Cache
from seqloom.data.corpus import Corpus
from seqloom.data.dialogues import first_turn
from seqloom.data.keys import codec_key, files_key, key_of
from seqloom.data.layout import PLAIN, Layout
from seqloom.data.lines import Data, is_pipe, paths_of, repeatable, title_of
from seqloom.data.readers import MAX_CHARACTERS, Tally, examples, located_sides, readable
from seqloom.data.report import Report
from seqloom.data.special_tokens import EOS
from seqloom.data.split import Scan, hold_out, last_tenth, pick, scan
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.types import Example


@dataclass(frozen=True)
class Dataset:
    """Encoded examples to train on and to validate with, the latter also as they were read."""

    train: Corpus
    valid: Corpus
    valid_examples: list[Example]
    report: Report
    notes: list[str] = field(default_factory=list)  # on the cache, in sentences


def prepare(
    train: Data,
    valid: Data | None = None,
    *,
    source: Codec | None,
    target: Codec,
    joint: bool = False,
    seed: int,
    cache: Path,
    skip_bad: bool = False,
    max_characters: int = MAX_CHARACTERS,
    layout: Layout = PLAIN,
    fit: bool = True,
    max_valid: int = 2_000,
    running: bool = False,
    check: Callable[[Example], None] | None = None,
) -> Dataset:
    """Read, split, fit and encode. A source of None makes a language model's data.

    Without validation data about a tenth of the examples, at most `max_valid`, is held out: whole sources, chosen
    by a hash of seed and source, so that none is on both sides. Of a `running` text it is the last tenth, and
    EOS follows each line. What `check` finds unreadable is a bad line. Data sets are kept in the folder `cache`.
    """
    if joint and source is not target:
        raise SeqloomError("joint is set but source and target are two codecs; give the same codec for both sides")
    codecs = {"target": target} if source is None or source is target else {"source": source, "target": target}
    columns, located = 1 if source is None else 2, located_sides(source, target)
    options: dict[str, Any] = {"skip_bad": skip_bad, "max_characters": max_characters, "layout": layout}
    options |= {"running": running, "located": located}
    store = Cache(cache)

    def reader(data: Data, tally: Tally | None = None) -> Iterator[Example]:
        return examples(data, columns, tally=tally, **options)

    def first_of(example: Example) -> Any:
        return example.target if source is None else example.source

    def scan_all(data: Data, tally: Tally) -> Scan:
        refused: set[int] = set()
        rows, title = reader(data, tally), title_of(data)
        checks: dict[str, Any] = {"skip_bad": skip_bad, "max_characters": max_characters, "check": check}
        found = readable(rows, source, target, title, tally, refused=refused, **checks)
        return scan(found, refused, seed, first_turn if layout.dialogues else None, by_target=target.endless)

    # 1. Files that have not changed are in the cache.
    files, paths = None, [paths_of(train), paths_of(valid)]
    if paths[0] and (valid is None or paths[1]) and not any(map(is_pipe, paths[0] + paths[1])):
        files = files_key(
            paths[0] + paths[1],
            (
                str(getattr(example, side))
                for each in paths
                if located and each
                for example in reader(each)
                for side in located
            ),
            list(codecs.values()),
            files=list(map(len, paths)),
            sides=[source is None, source is target],
            learned=None if fit else [codec_key(codec) for codec in codecs.values()],
            seed=seed,
            max_valid=max_valid,
            checked=getattr(check, "__qualname__", ""),
            **options,
        )
        if files and (known := store.find(files, codecs if fit else {})):
            return Dataset(*known, store.notes(title_of(train)))

    with repeatable(train, store.folder) as train_data, repeatable(valid, store.folder) as valid_data:
        # 2. A first pass counts bad lines and hashes the examples.
        assert train_data is not None
        tally, valid_tally = Tally(), None if valid_data is None else Tally()
        found = scan_all(train_data, tally)
        given = None if valid_data is None else scan_all(valid_data, valid_tally or Tally())

        # 3. Split. Where validation data is given, nothing is held out.
        if valid_data is None or given is None:
            held = last_tenth(found.sizes) if running else hold_out(found.groups, max_valid)  # (N,)
            valid_examples = list(pick(found.usable(reader(train_data)), held))
        else:
            held = np.zeros(len(found.sources), dtype=bool)
            valid_examples = list(given.usable(reader(valid_data)))

        def training() -> Iterator[Example]:
            return pick(found.usable(reader(train_data)), ~held)

        # 4. Fit the codecs on what is left.
        for name, codec in codecs.items() if fit else ():
            with name_file(train_data):
                fit_codec(codec, training(), ("source", "target") if source is target else (name,))

        # 5. Encode both parts, unless the cache has them.
        key = key_of(
            [found.content, given and given.content, None if given else [seed, max_valid]],
            [columns, running, source is target, [codec_key(codec) for codec in codecs.values()]],
        )

        def encode(folder: Path) -> tuple[Corpus, Corpus]:
            end = EOS if running else None
            with name_file(train_data):
                train_corpus = Corpus.write(folder / "train", training(), source, target, end)
            with name_file(train_data if valid_data is None else valid_data):
                valid_corpus = Corpus.write(folder / "valid", valid_examples, source, target, end)
            for name, codec in codecs.items():
                codec.save(folder, name)
            return train_corpus, valid_corpus

        corpora = store.open(key) or store.write(key, encode)

    # 6. Report, and note in the cache which files this was.
    lengths = corpora[0].lengths
    # One column at a time: a ratio needs no copy of the map.
    ratio = 0.0 if source is None else float((lengths[:, 1] / np.maximum(lengths[:, 0], 1)).max())
    report = Report(
        tally=tally,
        valid_tally=valid_tally,
        train=len(corpora[0]),
        valid=len(corpora[1]),
        # Lines of a running text may well repeat.
        duplicates=0 if running else found.duplicates,
        ambiguous=0 if running else found.ambiguous,
        leaks=0 if running or given is None else found.leaks(given),
        held_out=given is None,
        length_ratio=ratio,
        longest_target=int(lengths[:, 1].max()),
        running=running,
        left_out=[*corpora[0].notes, *(f"Validation: {note}" for note in corpora[1].notes)],
    )
    if files:
        store.add_files(key, files, paths[0] + paths[1], valid_examples, report)
    return Dataset(*corpora, valid_examples, report, store.notes(title_of(train) if files else "this data"))


def fit_codec(codec: Codec, rows: Iterable[Example], sides: tuple[str, ...]) -> None:
    """Fit on some sides of the examples; an error names the line."""
    line = 0

    def values() -> Iterator[Any]:
        nonlocal line
        for example in rows:
            line = example.line
            yield from (getattr(example, side) for side in sides)

    try:
        codec.fit(values())
    except UnreadableError as bad:
        raise UnreadableError(f"line {line}: {bad}") from None


@contextmanager
def name_file(data: Data) -> Iterator[None]:
    """Add the file to an error that names a line."""
    try:
        yield
    except UnreadableError as bad:
        raise SeqloomError(f"{title_of(data)}, {bad}") from None
