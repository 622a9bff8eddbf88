"""Outputs of a beam ranked anew by another model: a language model, or one trained the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seqloom.errors import SeqloomError
from seqloom.inference.find import Prediction, find
from seqloom.inference.loading import as_system
from seqloom.inference.scoring import score
from seqloom.inference.system import System, build_search
from seqloom.nn.combine.noisy_channel import UNEXPLAINED
from seqloom.nn.combine.shallow_fusion import LM_WEIGHT


def rescored(
    system: System, sources: Sequence[Any], by: Any, weight: float = LM_WEIGHT, **options: Any
) -> list[list[Prediction]]:
    """The candidates by score + weight * log p_LM(text) (Chan et al. 2016, eq. 14), each text scored by itself.

    A model that reads outputs adds weight * log p(source | text): a noisy channel (Yee, Dauphin & Auli 2019, sec. 3).
    """
    names = ("attention", "details", "prefix", "banned", "required", "replace_unknown", "search")
    settings = {name: value for name, value in options.items() if name not in names}
    rest = {name: value for name, value in options.items() if name in names}
    search = rest.pop("search", None) or build_search(system, **settings)
    wanted = getattr(search, "n_best", 1)
    if options.get("search") is None:  # all that the beam holds
        search = build_search(system, **{**settings, "n_best": getattr(search, "beam_size", wanted)})
    found = find(system, sources, search=search, **rest)
    other = as_system(by, "cpu" if system.exported else system.model.device.type, system.trust)
    return [each[:wanted] for each in rerank(found, other, weight, sources)]


def rerank(
    found: Sequence[Sequence[Prediction]], other: System, weight: float, sources: Sequence[Any] = ()
) -> list[list[Prediction]]:
    """Predictions of each source by their own score and the log-probabilities of another system."""
    if not 0 <= weight <= 1000:
        raise SeqloomError(f"rescore_weight = {weight}: expected a number from 0 to 1,000")
    if any(not isinstance(one.text, str) for each in found for one in each):
        raise SeqloomError("rescore: the outputs of this run are not texts that another run could read; leave it out")
    log_probs = of_texts(found, other) if other.task.source is None else of_sources(found, other, sources)
    new = [
        [replace(one, score=one.score + weight * value) for one, value in zip(each, values)]
        for each, values in zip(found, log_probs)
    ]
    return [sorted(each, key=lambda one: -one.score) for each in new]


def of_texts(found: Sequence[Sequence[Prediction]], lm: System) -> list[list[float]]:
    """A language model's log-probability of each output."""
    texts = list(dict.fromkeys(one.text for each in found for one in each))
    # A model of running text would continue from line to line, and these lines are not one text.
    values = [score(lm, [text])[0] for text in texts] if lm.task.running else score(lm, texts)
    known = dict(zip(texts, values))
    return [[known[one.text] for one in each] for each in found]


def of_sources(found: Sequence[Sequence[Prediction]], channel: System, sources: Sequence[Any]) -> list[list[float]]:
    """The log-probability of each output's source, by a model that reads outputs. An empty output explains nothing."""
    assert channel.task.source is not None
    readable = [[bool(len(channel.task.source.encode(one.text))) for one in each] for each in found]
    pairs = [
        (one.text, source)
        for each, flags, source in zip(found, readable, sources)
        for one, flag in zip(each, flags)
        if flag
    ]
    values = iter(score(channel, pairs))
    return [[next(values) if flag else UNEXPLAINED for flag in flags] for flags in readable]
