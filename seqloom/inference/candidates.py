"""The best outputs of each source, by whatever a user asks for: search, head, ensemble, other runs beside it.

What imports torch is imported where it is needed: exported models have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.data.frames import as_list
from seqloom.errors import SeqloomError
from seqloom.inference.constraints import no_output
from seqloom.inference.find import Prediction, find
from seqloom.inference.system import System, admit_source, refuse_masked

SOURCES = "predict takes a list of sources"


def best_predictions(system: System, sources: Sequence[Any], **options: Any) -> list[Prediction]:
    """The best candidate of each source, without details."""
    sources = as_list(sources, SOURCES)
    answers = candidates(system, sources, details=False, **options)
    for source, found in zip(sources, answers):
        if not found and not is_blank(source):
            raise no_output(source)
    return [found[0] if found else empty_prediction(system) for found in answers]


def is_blank(source: Any) -> bool:
    """Whether there is nothing to predict from: an empty text or list."""
    if isinstance(source, str):
        return not source.strip()
    return (isinstance(source, (list, tuple)) or getattr(source, "ndim", 0) > 0) and len(source) == 0


def empty_prediction(system: System) -> Prediction:
    """The output for an empty source."""
    return Prediction(system.task.decode(np.empty(0, dtype=np.int64), ""), 0.0, [], [])


def candidates(
    system: System,
    sources: Sequence[Any],
    *,
    wait: int | None = None,
    lm: Any = None,
    lm_weight: float | None = None,
    channel: Any = None,
    channel_weight: float | None = None,
    length_bonus: float | None = None,
    proposals: int | None = None,
    rescore: Any = None,
    rescore_weight: float | None = None,
    truncate: bool = False,
    **options: Any,
) -> list[list[Prediction]]:
    """The n_best outputs of each source, best first; none for an empty source. `options` are those of `find`.

    - `wait`: write while reading, that many encoder states behind (wait-k).
    - `lm`: a language model, a system or the path of its run, that scores every token too (shallow fusion).
    - `channel`: a model trained the other way round, whose probability of the source counts (noisy channel), with
      `channel_weight`, `length_bonus` per token and `proposals` per step.
    - `rescore`: a language model or a reverse model that ranks the outputs of the beam anew.
    - `truncate`: cut sources that are too long (data.max_characters) instead of refusing them.
    """
    refuse_masked(system)
    given = as_list(sources, SOURCES)
    if system.task.source is None:
        raise SeqloomError("this run is a language model and reads no source: use `generate`")
    for name, value, by, other in (
        ("lm_weight", lm_weight, "lm", lm),
        ("channel_weight", channel_weight, "channel", channel),
        ("length_bonus", length_bonus, "channel", channel),
        ("rescore_weight", rescore_weight, "rescore", rescore),
    ):
        if value is not None and other is None:
            raise SeqloomError(f"{name} = {value}: needs another run to count with; give {by} too")
    if wait is not None or lm is not None or channel is not None:
        if system.exported:
            raise SeqloomError(
                "exported models do not support wait, lm or channel: use the run itself, or rescore their outputs"
            )
        from seqloom.inference.combined import combine  # imports torch

        wanted = {"channel_weight": channel_weight, "length_bonus": length_bonus, "proposals": proposals}
        wanted |= {"lm_weight": lm_weight}
        weights: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
        system = combine(system, wait=wait, lm=lm, channel=channel, **weights)
    filled = [
        admit_source(system, source, f"sources[{index}]", truncate)
        for index, source in enumerate(given)
        if not is_blank(source)
    ]
    if system.model.is_head:
        from seqloom.inference.answers import answers  # imports torch

        found = iter(answers(system, filled, **options, rescore=rescore))
    elif rescore is None:
        found = iter(find(system, filled, **options))
    else:
        from seqloom.inference.rescoring import rescored  # imports torch

        if rescore_weight is not None:
            options["weight"] = rescore_weight
        found = iter(rescored(system, filled, rescore, **options))
    return [[] if is_blank(source) else next(found) for source in given]
