"""Small instances of parts, in float64, and sources, memories and tokens that suit them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Encoder, Head
from seqloom.data.special_tokens import BOS, EOS, PAD, UNK
from seqloom.errors import SeqloomError, one_line, shown
from seqloom.types import Memory, Padded, State

VOCABULARY, FEATURES = 9, 4
SMALL: dict[str, Any] = {  # given to every constructor that has such a parameter
    "vocabulary": VOCABULARY,
    "bos": BOS,
    "eos": EOS,
    "pad": PAD,
    "blank": PAD,
    "unk": UNK,
    "written": (0, 1, 2, 3, 8, 1, 5, 4, 6),
    "source_vocabulary": VOCABULARY,
    "shape": (8, 8, 3),  # of pictures and frames
    "inputs": {"": {"shape": (8, 8, 3)}, "sound": {"features": FEATURES}},  # of a source
    "canvas": (3, 2, 1),  # of a picture as an output
    "frames": 3,
    "memory_size": 8,
    "query_size": 8,
    "input_size": 6,
    "embedding_size": 8,
    "size": 8,
    "hidden": 16,
    "layers": 2,
    "heads": 2,
    "dropout": 0.0,
}


def build(part: Callable[..., Any], **settings: Any) -> Any:
    """A part with small sizes; a module in float64, in evaluation mode, no weight of it zero or one."""
    torch.manual_seed(1)
    takes = signature(part).parameters
    small = {name: value for name, value in SMALL.items() if name in takes}
    if "features" in takes and "vocabulary" not in takes:
        small["features"] = FEATURES
    made = part(**{**small, **settings})
    if isinstance(made, torch.nn.Module):
        made.double().eval()
        for parameter in made.parameters():
            torch.nn.init.uniform_(parameter, -0.5, 0.5)
        only_vectors = isinstance(made, Encoder) and "features" in small
        reads_vectors = only_vectors or settings.get("features") or settings.get("source_features")
        vars(made).update(
            checked_memory_size=settings.get("memory_size", SMALL["memory_size"]),
            checked_with_vectors=reads_vectors,
            checked_shape={**small, **settings}.get("shape"),
            checked_inputs="inputs" in small,
        )
    return made


def check_arguments(part: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Refuse settings that a constructor does not have, and a constructor that asks for more than is known."""
    name, takes = getattr(part, "__qualname__", str(part)), signature(part).parameters
    anything = any(each.kind is Parameter.VAR_KEYWORD for each in takes.values())
    if unknown := [key for key in settings if key not in takes and not anything]:
        raise SeqloomError(f"{name} has no setting {', '.join(unknown)}; expected some of {', '.join(takes) or 'none'}")
    asked = [
        key for key, each in takes.items() if each.default is Parameter.empty and each.kind is not Parameter.VAR_KEYWORD
    ]
    if missing := [key for key in asked if key not in {*SMALL, *settings, "features"}]:
        example = f"check_part({name}, {missing[0]}=...)"
        raise SeqloomError(
            f"{name} needs {', '.join(missing)}, which has no default: set it, {example} or --set {missing[0]}=..."
        )


def build_or_refuse(part: Callable[..., Any], **settings: Any) -> Any:
    """A part, or one line about why its constructor fails."""
    check_arguments(part, settings)
    try:
        return build(part, **settings)
    except Exception as error:  # anything may happen in a constructor
        given = ", ".join(f"{name}={shown(value)}" for name, value in settings.items()) or "its defaults"
        name = getattr(part, "__qualname__", str(part))
        raise SeqloomError(f"{name} cannot be built with {given}: {type(error).__name__}: {one_line(error)}") from error


# -- what a part reads


def source(lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Padded:
    """Random tokens."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    padded = Padded(values, torch.tensor(lengths))
    return Padded(values * padded.mask, padded.lengths)


def vectors(lengths: tuple[int, ...] = (5, 3, 1)) -> Padded:
    """Random vectors."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(len(lengths), max(lengths), FEATURES, generator=generator, dtype=torch.float64)
    padded = Padded(values, torch.tensor(lengths))
    return Padded(values * padded.mask[:, :, None], padded.lengths)


def pictures(count: int, shape: tuple[int, int, int]) -> Padded:
    """Random pixels from 0 to 255. The positions of a picture are its rows, of which all have as many."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(256, (count, *shape), generator=generator, dtype=torch.uint8)
    return Padded(values, torch.full((count,), shape[0]))


def films(lengths: tuple[int, ...], shape: tuple[int, int, int]) -> Padded:
    """Random pixels from 0 to 255, so many frames of them; there is noise beyond the end."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(256, (len(lengths), max(lengths), *shape), generator=generator, dtype=torch.uint8)
    return Padded(values, torch.tensor(lengths))


def stories(lengths: tuple[int, ...] = (5, 3, 1), width: int = 4) -> Padded:
    """Tables of tokens: one row per sentence, each of one word or more."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths), width), generator=generator)
    words = torch.randint(1, width + 1, (len(lengths), max(lengths), 1), generator=generator)
    padded = Padded(values * (torch.arange(width) < words), torch.tensor(lengths))
    return Padded(padded.values * padded.mask[:, :, None], padded.lengths)


def dialogues(lengths: tuple[int, ...] = (5, 3, 1)) -> Padded:
    """Tokens in which EOS ends each turn of one to three words; `lengths` count turns."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for length in lengths:
        words = torch.randint(1, 4, (length,), generator=generator).tolist()
        turns = [torch.randint(4, VOCABULARY, (count,), generator=generator) for count in words]
        rows.append(torch.cat([each for turn in turns for each in (turn, torch.tensor([EOS]))]))
    return Padded.stack(rows, PAD)


def source_for(part: Encoder | Decoder, lengths: tuple[int, ...] = (5, 3, 1)) -> Padded:
    """Tokens, or what the part reads: vectors, stories, dialogues, pictures.

    For a decoder that copies, some tokens are unknown, one of them twice.
    """
    if isinstance(part, Encoder) and vars(part).get("checked_inputs"):
        lips = films(lengths, SMALL["inputs"][""]["shape"])
        return replace(lips, parts={"sound": vectors(tuple(reversed(lengths)))})
    if isinstance(part, Encoder) and (shape := vars(part).get("checked_shape")) is not None:
        return films(lengths, shape) if part.reads == "films" else pictures(len(lengths), shape)
    if refuses(part, nested="", divided=""):
        return stories(lengths) if refuses(part, nested="", divided="turn") else dialogues(lengths)
    if part.checked_with_vectors:
        return vectors(lengths)
    tokens = source(lengths)
    if getattr(part, "unknown", None) is not None:
        tokens.values[:1, [0, 3]], tokens.values[:1, 2:3] = VOCABULARY, VOCABULARY + 2
    return tokens


def longer(batch: Padded) -> Padded:
    """The same sources with more padding, which is not zero."""
    values = torch.cat([batch.values, torch.full_like(batch.values, 5)], dim=1)
    return Padded(values, batch.lengths, {name: longer(part) for name, part in batch.parts.items()})


def one_row(batch: Padded, row: int) -> Padded:
    """One source without its padding."""
    values = batch.values[row : row + 1, : int(batch.lengths[row])]
    return Padded(
        values, batch.lengths[row : row + 1], {name: one_row(part, row) for name, part in batch.parts.items()}
    )


def counted(part: Encoder, batch: Padded) -> list[int]:
    """How many positions each source has: tokens, rows of a picture, or the turns of a dialogue."""
    turns = refuses(part, nested="", divided="") and not refuses(part, nested="", divided="turn")
    counts: list[int] = ((batch.values == EOS).sum(1) if turns else batch.lengths).tolist()
    return counts


def refuses(part: Encoder | Decoder, **source: str) -> bool:
    """Whether an encoder refuses sources of a kind."""
    if not isinstance(part, Encoder):
        return False
    try:
        part.suit(SimpleNamespace(window=0, source=SimpleNamespace(shape=None, moving=False, parts={}, **source)))  # type: ignore[arg-type]
    except ValueError:
        return True
    return False


def memory_for(decoder: Decoder, lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Memory:
    """A prepared memory with everything a decoder may ask for; empty if it is a language model."""
    return decoder.prepare(unprepared(decoder, lengths, seed))


def unprepared(decoder: Decoder, lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Memory:
    """The same as an encoder leaves it."""
    size: int = decoder.checked_memory_size  # type: ignore[assignment]
    if not size:
        return Memory.empty(len(lengths))
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), size, generator=generator, dtype=torch.float64)
    summary = torch.randn(len(lengths), size, generator=generator, dtype=torch.float64)
    read = source_for(decoder, lengths) if decoder.reads_source else None
    sound = torch.randn(len(lengths), max(lengths), size, generator=generator, dtype=torch.float64)
    parts = {"sound": Memory(sound, torch.tensor(lengths[::-1]))}  # another input, to which some attend as well
    parts |= {} if read is None else {"source": Memory(read.values, read.lengths)}
    if isinstance(decoder, Head):  # may answer with words of a document, of which there are more than sentences
        words = source(tuple(2 * length + 1 for length in lengths))
        known = torch.randn(*words.values.shape, size, generator=generator, dtype=torch.float64)
        parts |= {"words": Memory(known, words.lengths), "tokens": Memory(words.values, words.lengths)}
    return Memory(states, torch.tensor(lengths), {"summary": summary}, parts=parts)


def shortened(memory: Memory, row: int) -> Memory:
    """One row of an unprepared memory without its padding."""
    alone, length = memory.select(torch.tensor([row])), int(memory.lengths[row])
    parts = {name: shortened(part, row) for name, part in memory.parts.items()}
    return replace(alone, states=alone.states[:, :length], parts=parts)


def valid(decoder: Decoder, memory: Memory, tokens: Tensor) -> Tensor:
    """Tokens (rows, ...) as a decoder can have written them: one that chooses from its source writes what is there.

    For a decoder of vectors, a vector in place of each token, (rows, ..., F).
    """
    if decoder.features is not None:
        table = torch.randn(VOCABULARY, decoder.features, generator=torch.Generator().manual_seed(0))
        return table.double()[tokens]
    if not decoder.reads_source:
        return tokens
    scores, _ = decoder.step(torch.full((len(tokens),), BOS), decoder.start_rows(memory, len(tokens)), memory)
    written = [[token for token in row.isfinite().nonzero()[:, 0].tolist() if token > EOS] for row in scores]
    rows = [torch.tensor(known)[(row - 4) % len(known)] for known, row in zip(written, tokens)]
    return torch.stack(rows)


def tensors(state: State) -> Iterator[Tensor]:
    """The tensors of a state, at any depth."""
    for value in state.values():
        if isinstance(value, dict):
            yield from tensors(value)
        elif isinstance(value, torch.Tensor):
            yield value
