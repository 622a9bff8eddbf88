"""Examples of the package's own generators."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from seqloom.studies.sources.files import write_file
from seqloom.studies.study import Splits


def examples_of(
    name: str, train: int, test: int, unseen: dict[str, Any] | None = None, called: str = "", **settings: Any
) -> Any:
    """So many examples of a generator for training, and others for the test; `unseen` are settings of the test only.

    Files are named after the generator, or as they are `called`.
    """

    @cache  # several runs may ask for it
    def make(folder: Path) -> Splits:
        from seqloom.data.generators.catalogue import as_lines, make_examples

        examples = make_examples(name, train if unseen else train + test, 1, settings)
        known, others = examples[:train], examples[train:]
        if unseen:
            others = make_examples(name, test, 2, {**settings, **unseen})
        return Splits(
            write_file(folder, f"{called or name}-train.tsv", as_lines(known)),
            None,
            write_file(folder, f"{called or name}-test.tsv", as_lines(others)),
        )

    return make


@cache
def arithmetic_text(folder: Path) -> Splits:
    """Sums and differences as lines of one text, "source=target"."""
    from seqloom.data.generators.arithmetic import arithmetic

    return split_lines(folder, "arithmetic", [f"{each.source}={each.target}\n" for each in arithmetic(402_000)])


@cache
def xml_text(folder: Path) -> Splits:
    """Nested tags as lines of one text."""
    from seqloom.data.generators.xml import xml

    return split_lines(folder, "xml", [f"{each.target}\n" for each in xml(62_000)])


def split_lines(folder: Path, name: str, lines: list[str]) -> Splits:
    """The last thousand lines for the test, the thousand before for validation."""
    parts = {"train": lines[:-2000], "valid": lines[-2000:-1000], "test": lines[-1000:]}
    return Splits(*(write_file(folder, f"{name}-{split}.txt", "".join(part)) for split, part in parts.items()))


dates = examples_of("dates", 30_000, 2_000)  # test strings are in neither of the other splits
