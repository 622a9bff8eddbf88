"""Explanation of a model of pixels: how likely each was, and by gradients which others it depends on."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import one_hot

from seqloom.data.codecs.frames import Frames
from seqloom.data.codecs.pixels import FIRST, Pixels
from seqloom.errors import SeqloomError
from seqloom.explain.facts import model_facts
from seqloom.explain.record import ExplainedHypothesis, Explanation, PixelByPixel
from seqloom.inference.generation import generate
from seqloom.inference.system import System, check_given, encode_source
from seqloom.types import Memory, Padded

MOST_PIXELS = 20_000  # tokens of a picture or film
MOST_FIELDS, MOST_ENTRIES = 300, 600_000  # pixels whose dependence is measured; on how many others in all
MOST_LEVELS = 32  # neighbouring levels are added up where there are more
FAINTEST = 0.25  # a root, so that weak dependence is seen beside strong


def explain_pixels(system: System, source: Any, n_best: int, target: Any = None, **settings: Any) -> Explanation:
    """A picture or film, drawn where no `target` is given; `settings` are those of sampling."""
    task, codec = system.task, system.task.target
    assert isinstance(codec, Pixels)
    check_given(system, source)
    if target is None:
        target = generate(system, source=source, **settings)[0]
    elif settings:
        raise SeqloomError(f"{next(iter(settings))}: a target is given, so nothing is drawn; leave it out")
    tokens = codec.encode(target)
    if len(tokens) > MOST_PIXELS:
        raise SeqloomError(
            f"explain shows at most {MOST_PIXELS:,} values of pixels, and the target has {len(tokens):,}"
        )
    read = None if source is None else system.model.pad([encode_source(system, source)])
    with torch.no_grad():
        memory = system.model.encode(read, 1)
    height, width, channels = codec.canvas
    frames = len(tokens) // (height * width * channels)
    first = ((frames // 2 * height + height // 2) * width + width // 2) * channels
    log_probs, fields = looked_at(system, memory, tokens, first)
    chances = log_probs[:, FIRST:].exp()  # (n, levels)
    together = -(-codec.levels // MOST_LEVELS)
    chances = torch.nn.functional.pad(chances, (0, -codec.levels % together)).unflatten(1, (-1, together)).sum(2)
    own = log_probs.gather(1, torch.from_numpy(tokens)[:, None])[:, 0].tolist()
    line = task.target.line(target)
    return Explanation(
        source=[],
        source_text="" if source is None or task.source is None else task.source.line(source),
        hypotheses=[ExplainedHypothesis(line, sum(own), [], [], [])],
        pixels=PixelByPixel(
            height=height,
            width=width,
            channels=channels,
            frames=frames,
            film=isinstance(codec, Frames),
            levels=codec.levels,
            values=(tokens - FIRST).tolist(),
            log_probs=own,
            chances=chances.tolist(),
            together=together,
            first=first,
            fields=fields,
        ),
        model=model_facts(system),
    )


def looked_at(system: System, memory: Memory, tokens: Any, first: int) -> tuple[torch.Tensor, dict[int, list[int]]]:
    """The log-probabilities of each token (n, V), and of the `first` and some others how much their scores change with
    each token before.
    """
    model, batch = system.model, system.task.batch(None, [tokens]).to(system.model.device)
    count, size = len(tokens), int(system.task.target.vocabulary or 0)
    shares = one_hot(batch.inputs.values, size).to(next(model.parameters()).dtype).requires_grad_()  # (1, n, V)
    weights = torch.randn(size - FIRST, generator=torch.Generator().manual_seed(1))  # what moves any score is seen
    with torch.enable_grad():
        scores = model.decoder(memory, Padded(shares, batch.inputs.lengths)).scores[0]  # (n, V)
        own = scores[:, FIRST:] @ (weights - weights.mean()).to(scores)
        measured = max(min(count, MOST_FIELDS, MOST_ENTRIES // count), 1)
        spread = {round(step * (count - 1) / max(measured - 1, 1)) for step in range(measured)}
        places = sorted(spread | {first})
        fields = {}
        for place in places:
            (gradient,) = torch.autograd.grad(own[place], shares, retain_graph=True)
            strength = gradient[0, 1:].norm(dim=-1)  # of the token that each input is
            fields[place] = shades(strength[:place])
    return scores.detach().log_softmax(-1).cpu(), fields


def shades(strength: torch.Tensor) -> list[int]:
    """From 1 to 255, and 0 only where nothing depends.  (n,)"""
    if not len(strength) or not strength.max():
        return [0] * len(strength)
    shares = (strength / strength.max()) ** FAINTEST
    found: list[int] = torch.where(strength > 0, (1 + 254 * shares).round(), 0).int().tolist()
    return found
