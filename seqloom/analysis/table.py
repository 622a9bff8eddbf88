"""Rows of words as lines of equal columns."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """A line for each row; columns stand to the right, except those named in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) if column in left else word.rjust(width)
            for column, (word, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
