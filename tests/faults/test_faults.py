"""The short form of every attack; the long form is `python -m tests.faults`."""

from __future__ import annotations

import pytest

from tests.faults.frame import NAMES, make, rounds


@pytest.mark.parametrize("name", NAMES)
def test_nothing_gives_way(name: str) -> None:
    """Also see that attacks are made at all."""
    result = make(name, range(rounds(name, short=True)))
    assert result["made"] > 0
    assert not result["gave_way"]
