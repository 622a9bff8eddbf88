"""Examples that Python holds: pairs, data frames, series, data sets, dictionaries of columns, iterators.

Tables are recognised by their methods, so pandas and `datasets` need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.data.as_text import SIDES
from seqloom.data.columns import Columns, Row, attempt, from_pair, from_values
from seqloom.data.dialogues import dialogue_rows
from seqloom.data.layout import Layout
from seqloom.data.records import Records
from seqloom.errors import SeqloomError, shown

EXPECTED = "expected a file, two aligned files, (source, target) tuples, a data frame or a dictionary of columns"
OPTION = "columns="  # of `fit` and `evaluate`


@dataclass(frozen=True)
class Table:
    """Columns with names, each of which can be read several times."""

    names: list[str]
    columns: Sequence[Iterable[Any]]


def is_table(data: Any) -> bool:
    """Whether it has rows and named columns, rather than being a list of examples."""
    if _is_series(data):
        return False
    return hasattr(data, "iloc") or hasattr(data, "column_names") or isinstance(data, Mapping) or _is_series_pair(data)


def python_rows(data: Any, sides: int, layout: Layout, max_characters: int, title: str) -> Iterator[Row]:
    """The examples of any data that is not in files, or what is wrong with them."""
    if is_table(data):
        return enumerate(_table_rows(data, sides, layout, max_characters, title), start=1)
    try:
        items = iter(data)
    except TypeError:
        raise SeqloomError(f"the data is {shown(data)}; {EXPECTED}") from None
    if layout.dialogues:
        layout.check(sides)
        return dialogue_rows(items, max_characters)
    records = Records(layout, sides, max_characters, title, OPTION)

    def parse(item: Any) -> Columns:
        return records.columns(item) if isinstance(item, Mapping) else from_pair(item, sides, max_characters)

    return ((number, attempt(parse, item)) for number, item in enumerate(items, start=1))


def as_list(values: Any, what: str) -> list[Any]:
    """The values of one column, in any form: a list, an iterator, a series of any index, an array."""
    if isinstance(values, (str, bytes)):
        raise SeqloomError(f"{what}, not one string: write [source]")
    if is_table(values) and not _is_series_pair(values):  # which are two sources of numbers here
        raise SeqloomError(f'{what}, not a table: give one of its columns, such as data["text"]')
    try:
        return list(values)
    except TypeError:
        raise SeqloomError(f"{what}, not {shown(values)}") from None


def _table_rows(data: Any, sides: int, layout: Layout, max_characters: int, title: str) -> Iterator[Any]:
    layout.check(sides)
    if hasattr(data, "column_names"):
        rows = _data_set_rows(data, sides, layout, title)
    else:
        table, layout = _table(data, title), Layout() if _is_series_pair(data) else layout
        rows = zip(*(table.columns[place] for place in layout.positions(table.names, sides, title, OPTION)))
    return (attempt(lambda values: from_values(values, max_characters), row) for row in rows)


def _data_set_rows(data: Any, sides: int, layout: Layout, title: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a data set of the library `datasets`, or of anything with `column_names` that gives dictionaries."""
    if not isinstance(data.column_names, (list, tuple)):
        if isinstance(data, Mapping):  # several splits
            splits = list(map(str, data))
            raise SeqloomError(f'the data holds splits ({", ".join(splits)}); give one of them, as data["{splits[0]}"]')
        raise SeqloomError("the data set does not know its columns; give it a list of dictionaries instead")
    names = list(data.column_names)
    chosen = [names[place] for place in layout.positions(names, sides, title, OPTION)]
    rows = data.to_pylist() if hasattr(data, "to_pylist") else data  # of pyarrow
    return (tuple(row[name] for name in chosen) for row in rows)


def _table(data: Any, title: str) -> Table:
    if hasattr(data, "iloc"):
        return Table([str(name) for name in data.columns], [data.iloc[:, place] for place in range(data.shape[1])])
    if _is_series_pair(data):
        table = Table(list(SIDES), list(data))
    else:
        table = Table(list(map(str, data)), list(data.values()))
    lengths = {}
    for name, column in zip(table.names, table.columns):
        if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__"):
            raise SeqloomError(
                f'{title}: "{name}" is {shown(column)}, expected a dictionary of columns such as '
                '{"source": [...], "target": [...]}; for pairs give data.items()'
            )
        lengths[name] = len(column)  # type: ignore[arg-type]
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name}: {count:,}" for name, count in lengths.items())
        raise SeqloomError(f"{title} has columns of different lengths ({counts}); expected one value per row in each")
    return table


def _is_series(data: Any) -> bool:
    """One column: a series of pandas, an array of NumPy."""
    return hasattr(data, "tolist") and len(getattr(data, "shape", ())) == 1


def _is_series_pair(data: Any) -> bool:
    """Two columns; a tuple of lists is two pairs."""
    return isinstance(data, (tuple, list)) and len(data) == 2 and all(map(_is_series, data))
