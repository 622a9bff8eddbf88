"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seqloom.data.layout import Layout
from seqloom.errors import SeqloomError, one_line

ROWS = 1024  # decoded at once


def parquet_rows(name: str, sides: int, layout: Layout) -> Iterator[tuple[Any, ...]]:
    """The chosen columns of each row."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        message = f'{name}: Parquet is read by pyarrow, which is missing; install it: pip install "seqloom[tables]"'
        raise SeqloomError(message) from None
    try:
        with ParquetFile(name) as file:
            names = file.schema_arrow.names
            places = layout.positions(names, sides, name)
            chosen = [names[place] for place in places]
            only = chosen if all(names.count(each) == 1 for each in chosen) else None  # reads no other columns
            for batch in file.iter_batches(ROWS, columns=only):
                where = [batch.schema.names.index(each) for each in chosen] if only else places
                yield from zip(*(batch.column(place).to_pylist() for place in where))
    except FileNotFoundError:
        raise SeqloomError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SeqloomError(f"{name} is a folder; expected a file of examples") from None
    except (ArrowException, OSError, ValueError, OverflowError) as error:  # the last two of texts and dates
        raise SeqloomError(f"{name} cannot be read as Parquet ({one_line(error)[:80]}); write it again") from None
