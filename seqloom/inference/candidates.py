"""The best outputs of each source, by whatever a user asks for: search, head, ensemble, other runs beside it.

What imports torch is imported where it is needed: exported models have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.errors import SeqloomError
from seqloom.inference.constraints import no_output
from seqloom.inference.find import Prediction, find
from seqloom.inference.system import System


def best_predictions(system: System, sources: Sequence[Any], **options: Any) -> list[Prediction]:
    """The best candidate of each source, without details."""
    answers = candidates(system, sources, details=False, **options)
    for source, found in zip(sources, answers):
        if not found:
            raise no_output(source)
    return [found[0] for found in answers]


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
    **options: Any,
) -> list[list[Prediction]]:
    """The n_best outputs of each source, best first. `options` are those of `find`.

    - `wait`: write while reading, that many encoder states behind (wait-k).
    - `lm`: a language model, a system or the path of its run, that scores every token too (shallow fusion).
    - `channel`: a model trained the other way round, whose probability of the source counts (noisy channel), with
      `channel_weight`, `length_bonus` per token and `proposals` per step.
    - `rescore`: a language model or a reverse model that ranks the outputs of the beam anew.
    """
    if isinstance(sources, str):
        raise SeqloomError("predict takes a list of sources, not one string: write [source]")
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

        chosen = {"channel_weight": channel_weight, "length_bonus": length_bonus, "proposals": proposals}
        chosen |= {"lm_weight": lm_weight}
        given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        system = combine(system, wait=wait, lm=lm, channel=channel, **given)
    if system.model.is_head:
        from seqloom.inference.answers import answers  # imports torch

        return answers(system, sources, **options, rescore=rescore)
    if rescore is None:
        return find(system, sources, **options)
    from seqloom.inference.rescoring import rescored  # imports torch

    if rescore_weight is not None:
        options["weight"] = rescore_weight
    return rescored(system, sources, rescore, **options)
