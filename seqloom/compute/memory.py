"""How much memory this process may have. There is no torch here."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit() -> int:
    """In bytes: that of the machine, or less in a container."""
    names = getattr(os, "sysconf_names", {})
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 2**63
    return min([whole, *filter(None, map(container_limit, CGROUPS))])


def container_limit(path: Path) -> int | None:
    """The limit in a file of the kernel; None where there is none."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
