"""What outputs must obey: the task's own constraints, and what a user bans, requires or begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.contracts import Constraint
from seqloom.data.special_tokens import BOS, EOS, PAD, UNK
from seqloom.errors import SeqloomError, shown
from seqloom.inference.system import System, encode
from seqloom.search.constraints.banned import Banned
from seqloom.search.constraints.required import Required
from seqloom.types import Padded


def build_constraints(
    system: System,
    sources: Padded | None,
    banned: Sequence[Any] = (),
    required: Sequence[Any] = (),
    allow_unknown: bool = False,
) -> list[Constraint]:
    """All constraints on the outputs for these sources. PAD and BOS are never written, UNK only where it is allowed."""
    never = [tokens for each in banned for tokens in spellings(system, each, "banned text")]
    always = [spellings(system, each, "required text") for each in required]
    special = [PAD, BOS] if system.task.writes_unknown or allow_unknown else [PAD, UNK, BOS]
    special += [EOS] if system.task.target.endless else []
    found: list[Constraint] = [Banned([*([token] for token in special), *never])]
    found += [Required(always, EOS)] if always else []
    return [*found, *system.task.constraints(sources)]


def spellings(system: System, value: Any, what: str) -> list[list[int]]:
    """Every way in which a phrase may appear in an output, as tokens."""
    target = system.task.target
    tokens = encode(system, target, value, what, known=True).tolist()
    spell = getattr(target, "spellings", None)
    return spell(value) if spell else [tokens]


def encode_prefix(system: System, value: Any) -> np.ndarray | None:
    """What every output begins with, as tokens."""
    if value is None or (isinstance(value, str) and not value):
        return None
    return encode(system, system.task, value, "prefix", known=True)


def check_places(
    system: System, prefix: np.ndarray | None, required: Sequence[Any], encoded: Sequence[Sequence[np.ndarray]]
) -> None:
    """Refuse a prefix or required places that some source does not have."""
    asked = [*([] if prefix is None else [prefix]), *(system.task.encode(each) for each in required)]
    highest = max(int(each.max()) for each in asked) - (system.task.target.vocabulary or 0)
    shortest = min((len(own) for own, *_ in encoded), default=highest + 1)
    if highest >= shortest:
        raise SeqloomError(
            f"prefix, required: place {highest} is beyond a source of {shortest}; ask for places that each source has"
        )


def no_output(source: Any) -> SeqloomError:
    """The error for a source whose every output breaks a constraint."""
    return SeqloomError(f"no output for {shown(source)} meets the constraints within the length limit")
