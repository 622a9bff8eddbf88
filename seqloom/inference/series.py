"""Series of vectors drawn from a language model, one step after another."""

from __future__ import annotations

from typing import Any

import torch

from seqloom.contracts import Search
from seqloom.errors import SeqloomError, nearest, show
from seqloom.inference.system import System, encode
from seqloom.nn.decoders.vectors import Vectors
from seqloom.types import Padded
from seqloom.values import check, expect

LONGEST = 1_000_000  # steps
SETTINGS = ("maximum_length", "temperature", "seed")


@torch.inference_mode()
def generate_series(
    system: System, count: int, prefix: Any, search: Search | None, settings: dict[str, Any]
) -> list[Any]:
    """So many values; `maximum_length` counts the steps of the prefix too."""
    decoder, codec = system.model.decoder, system.task.target
    length, temperature, seed = read_settings(decoder, search, settings)
    generator = None if seed is None else torch.Generator(device=system.model.device).manual_seed(seed)
    memory = system.model.encode(None, count)
    vector, state, found = decoder.first_input(count), decoder.start(memory), []
    if prefix is not None:
        given = torch.from_numpy(encode(system, codec, prefix, "prefix")).to(vector)[:length]  # (P, F)
        found = [each.expand(count, -1) for each in given]
        inputs = torch.stack([vector, *found[:-1]], dim=1)
        state = decoder(memory, Padded(inputs, torch.full((count,), len(given), device=vector.device)), state).state
        vector = found[-1]
    for _ in range(length - len(found)):
        numbers, state = decoder.step(vector, state, memory)
        vector = decoder.density.sample(numbers, generator, temperature)
        found.append(vector)
    series = torch.stack(found, dim=1).cpu()  # (count, length, F)
    if not series.isfinite().all():
        raise SeqloomError("the model gives numbers that are not finite, its training may have diverged")
    return [codec.decode(each) for each in series]


def read_settings(decoder: Vectors, search: Search | None, settings: dict[str, Any]) -> tuple[int, float, int | None]:
    """The length, the temperature and the seed; one line about anything else."""
    for key in settings:
        if key not in SETTINGS:
            raise SeqloomError(f"{key}: a series of vectors has no such setting{nearest(key, SETTINGS)}")
    if search is not None:
        raise SeqloomError(f"search: a series of vectors is drawn, not searched for; expected {', '.join(SETTINGS)}")
    length = check(int | None, settings.get("maximum_length"), "maximum_length")
    length = decoder.length_offset if length is None else length
    temperature = check(float, settings.get("temperature", 1.0), "temperature")
    seed = check(int | None, settings.get("seed"), "seed")
    try:
        expect(1, LONGEST, maximum_length=length)
        expect(1e-3, 1e3, temperature=temperature)
        expect(0, 2**63 - 1, seed=seed or 0)
    except ValueError as error:
        raise SeqloomError(str(error)) from None
    if decoder.longest is not None and length > decoder.longest:
        raise SeqloomError(
            f"maximum_length = {length}: the model has learned {show(decoder.longest)} positions; ask for fewer steps"
        )
    return length, temperature, seed
