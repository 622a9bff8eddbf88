"""Systems made of systems: an ensemble, a language model or a noisy channel in the beam, wait-k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seqloom.contracts import Codec, Decoder
from seqloom.data.keys import codec_key
from seqloom.errors import SeqloomError
from seqloom.inference.loading import as_system
from seqloom.inference.system import System
from seqloom.nn.combine.ensemble import Average, Ensemble, ensemble_of
from seqloom.nn.combine.noisy_channel import NoisyChannel
from seqloom.nn.combine.shallow_fusion import LM_WEIGHT, ShallowFusion, same_tokens
from seqloom.nn.combine.wait_k import WaitKDecoder
from seqloom.nn.model import Model
from seqloom.tasks.text import RunningText


def combine(
    system: System,
    *,
    wait: int | None = None,
    lm: Any = None,
    lm_weight: float = LM_WEIGHT,
    channel: Any = None,
    channel_weight: float = 0.5,
    length_bonus: float = 0.0,
    proposals: int = 10,
) -> System:
    """The system with everything given around its decoder, from the inside out."""
    if wait is not None:
        system = with_decoder(system, WaitKDecoder.of(system.model, wait))
    if lm is not None:
        system = with_language_model(system, lm, lm_weight)
    if channel is not None:
        system = with_channel(system, channel, channel_weight, length_bonus, proposals)
    return system


def with_decoder(system: System, decoder: Decoder, *others: System) -> System:
    """The system with another decoder behind its encoder."""
    model = Model(system.model.encoder, decoder.to(system.model.device)).freeze()
    return replace(system, model=model, trust=system.trust or any(other.trust for other in others))


def with_language_model(system: System, lm: Any, weight: float = LM_WEIGHT) -> System:
    """Shallow fusion: a language model scores every token too. Both write the same tokens."""
    other = as_system(lm, system.model.device.type, system.trust)
    name = f"lm = {str(other.path or 'a model')!r}"
    if other.task.source is not None:
        raise SeqloomError(f"{name}: reads a source; expected a language model, a run without one")
    if system.task.source is None:
        raise SeqloomError(f"{name}: this run is a language model itself; make an ensemble of both instead")
    complaint = (
        f"{name}: its vocabulary is not that of this run; train it with the same task.target, "
        "on text that has all of its tokens, or give it to `rescore`"
    )
    tokens = token_map(other.task.target, system.task.target, complaint)
    fused = ShallowFusion(
        decoder=system.model.decoder, language_model=other.model.decoder, weight=weight, tokens=tokens
    )
    return with_decoder(system, fused, other)


def with_channel(
    system: System, channel: Any, weight: float = 0.5, length_bonus: float = 0.0, proposals: int = 10
) -> System:
    """A noisy channel: a model that reads outputs and writes sources scores them too."""
    other = as_system(channel, system.model.device.type, system.trust)
    name = f"channel = {str(other.path or 'a model')!r}"
    ours, theirs = system.task, other.task
    if system.model.encoder is None or ours.source is None or ours.source.vocabulary is None:
        raise SeqloomError(f"{name}: this run does not read tokens that could be explained; leave the channel out")
    if not system.model.encoder.one_state_per_token:
        raise SeqloomError(f"{name}: this run's encoder merges tokens; expected one state per token (stride 1)")
    if theirs.source is None:
        raise SeqloomError(f"{name}: is a language model; expected a run trained the other way round")
    complaint = f"{name}: it does not read the tokens that this run writes; train it on the same pairs, swapped"
    tokens = token_map(theirs.source, ours.target, complaint)
    complaint = f"{name}: it does not write the tokens that this run reads; train it on the same pairs, swapped"
    sources = token_map(theirs.target, ours.source, complaint)
    decoder = NoisyChannel(
        decoder=system.model.decoder,
        channel=other.model,
        weight=weight,
        length_bonus=length_bonus,
        proposals=proposals,
        tokens=tokens,
        sources=sources,
    )
    return with_decoder(system, decoder, other)


def token_map(theirs: Codec, ours: Codec, complaint: str) -> list[int] | None:
    """The other codec's id of each of our tokens; None if the ids are the same. It must have all of them."""
    if codec_key(ours) == codec_key(theirs):
        return None
    if (found := same_tokens(ours, theirs)) is None:
        raise SeqloomError(complaint)
    return found


def ensemble(members: Sequence[System], average: Average = "arithmetic") -> System:
    """Several systems as one: each token is chosen by the mean of their probabilities.

    Search and metrics are those of the first. Each may read a source in its own way; all write the same tokens.
    """
    if not members:
        raise SeqloomError("no run was given: name one, or several for an ensemble")
    if any(isinstance(each.model.decoder, Ensemble) for each in members):
        raise SeqloomError("a member of an ensemble is an ensemble already: give its runs instead")
    first, *others = members
    if not others:
        return first
    for other in others:
        check_alike(first, other)
    codecs = [each.task.source for each in members if each.task.source is not None]
    alike = len({codec_key(codec) for codec in codecs}) < 2
    if first.task.target.chooses and not alike:
        raise SeqloomError("members that choose from a source must read it alike: train with the same task.source")
    task = first.task
    if isinstance(task, RunningText):  # the shortest window, as every member can read it
        running = [each.task for each in members if isinstance(each.task, RunningText)]
        task = min(running, key=lambda each: (each.carry, each.window))
    model = ensemble_of([each.model for each in members], average).freeze()
    trust = any(each.trust for each in members)
    return System(model, task, first.recipe, trust=trust, sources=() if alike else tuple(codecs))


def check_alike(one: System, other: System) -> None:
    """Refuse members of an ensemble of which only one reads a source, or whose outputs differ in their tokens."""
    both = f"{one.path or 'a model'} and {other.path or 'a model'}"
    if (one.task.source is None) != (other.task.source is None):
        raise SeqloomError(f"{both} make no ensemble: one is a language model, the other reads a source")
    ours, theirs = ((each.task.bos, each.task.eos, codec_key(each.task.target)) for each in (one, other))
    if ours != theirs:
        raise SeqloomError(
            f"{both} make no ensemble: their vocabularies differ; "
            "train both with the same task.target, data and --valid"
        )
