"""`seqloom cache`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import click

from seqloom.cli.messages import note
from seqloom.errors import SeqloomError, printable

if TYPE_CHECKING:
    from seqloom.data.entries import Entry


@click.command()
@click.option("--clear", is_flag=True, help="Remove data sets, but for those that a running command uses.")
@click.option(
    "--unused", type=click.FloatRange(min=0), metavar="DAYS", help="With --clear: only those not used for so many days."
)
def cache(clear: bool, unused: float | None) -> None:
    """List the encoded data sets, or remove them: size, last use, and the files they came from."""
    from seqloom.data.cache import Cache
    from seqloom.data.entries import as_size

    store = Cache()
    if clear:
        before = math.inf if unused is None else time.time() - 86_400 * unused
        removed = store.clear(before)
        kept = sum(entry.used < before for entry in store.entries())
        rest = f"; {kept:,} in use" if kept else ""
        note(f"Removed {counted(removed)}{rest}.")
        return
    if unused is not None:
        raise SeqloomError("--unused says which data sets to remove: it goes with --clear")
    found = store.entries()
    for entry in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        files = ", ".join(map(printable, entry.paths())) or "-"
        print(f"{as_size(entry.size):>8}  {used}  {files}")
    note(f"In {store.folder}: {counted(found)} of at most {as_size(store.limit)}.")


def counted(entries: list[Entry]) -> str:
    """How many data sets, and how large."""
    from seqloom.data.entries import as_size

    number = "1 data set" if len(entries) == 1 else f"{len(entries):,} data sets"
    return f"{number}, {as_size(sum(entry.size for entry in entries))}"
