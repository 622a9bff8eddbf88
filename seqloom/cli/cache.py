"""`seqloom cache`."""

from __future__ import annotations

import time

import click

from seqloom.cli.messages import note


@click.command()
@click.option("--clear", is_flag=True, help="Remove entries, but for those that a running command uses.")
@click.option(
    "--unused", type=click.FloatRange(min=0), metavar="DAYS", help="With --clear: only those not used for this long."
)
def cache(clear: bool, unused: float | None) -> None:
    """List the encoded data sets, or remove them: size, last use, files they came from."""
    from seqloom.data.cache import Cache
    from seqloom.data.entries import as_size
    from seqloom.errors import SeqloomError
    from seqloom.train.display import printable

    if unused is not None and not clear:
        raise SeqloomError("--unused: says which entries to remove, so it goes with --clear")
    store = Cache()
    if clear:
        before = None if unused is None else time.time() - 86_400 * unused
        removed = store.clear(before)
        note(f"Removed {len(removed):,} of {store.folder}: {as_size(sum(entry.size for entry in removed))}.")
    found = store.entries()
    for entry in [] if clear else found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        files = ", ".join(map(printable, entry.paths())) or "(not from files)"
        print(f"{as_size(entry.size):>8}  {used}  {files}")
    total = as_size(sum(entry.size for entry in found))
    note(f"{len(found):,} data sets are in {store.folder}: {total} of at most {as_size(store.limit)}.")
