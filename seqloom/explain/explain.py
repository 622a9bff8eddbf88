"""`explain`: picks the explanation that fits the model."""

from __future__ import annotations

from typing import Any

from seqloom.data.codecs.pixels import Pixels
from seqloom.errors import SeqloomError
from seqloom.explain.beam import explain_beam
from seqloom.explain.head import explain_head
from seqloom.explain.online import explain_online
from seqloom.explain.pixels import explain_pixels
from seqloom.explain.record import Explanation
from seqloom.inference.system import System, admit_source, encode, refuse_masked
from seqloom.nn.combine.ensemble import Ensemble

LONGEST_EXPLAINED = 2_000  # positions: an explanation shows the attention of each to each


def explain(
    system: System, source: Any = None, *, n_best: int = 5, truncate: bool = False, **options: Any
) -> Explanation:
    """Why the model answers as it does. Options are those of the search, `truth` for points in the plane, and `target`
    for pixels: the picture or film to explain.

    With `truncate`, a source that is too long is cut instead of refused.
    """
    refuse_masked(system)
    decoder = system.model.decoder
    if isinstance(decoder, Ensemble):
        raise SeqloomError("explain shows one run: explain the runs of an ensemble one by one")
    if decoder.features is not None:
        raise SeqloomError("explain shows tokens, and this run writes vectors: use `generate`, `score` or `evaluate`")
    if source is not None and system.task.source is not None:
        source = admit_source(system, source, "the source", truncate, LONGEST_EXPLAINED if truncate else None)
        positions = len(encode(system, system.task.source, source, "source"))  # refuses an empty source
        if positions > LONGEST_EXPLAINED:
            raise SeqloomError(
                f"the source has {positions:,} positions, and an explanation shows at most {LONGEST_EXPLAINED:,}: "
                "shorten it, or cut it with --truncate (in Python truncate=True)"
            )
    if isinstance(system.task.target, Pixels):
        return explain_pixels(system, source, n_best=n_best, **options)
    if options.pop("target", None) is not None:
        raise SeqloomError("target: only of models of pixels a given output is explained: leave it out")
    explain_model = explain_head if system.model.is_head else explain_online if decoder.blanks else explain_beam
    return explain_model(system, source, n_best=n_best, **options)
