"""Tables as plain text."""

from collections.abc import Sequence

from seqloom.errors import printable


def align_columns(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """One line per row; columns are right-aligned, except those in `left`."""
    rows = [[printable(word) for word in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) if column in left else word.rjust(width)
            for column, (word, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
