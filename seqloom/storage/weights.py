"""Weights by name: of a module, in safetensors files, and their average.

Tied parameters are stored once, under the first of their names, and are found under any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from seqloom.errors import SeqloomError, one_line
from seqloom.storage.files import MEGABYTE, check_regular, replace_file, saving

Weights = dict[str, Tensor]
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)  # each can stand for another
HEADER = 16 * MEGABYTE  # bytes of names and shapes: enough for a hundred thousand tensors
COPY = "copy it again or use another checkpoint"


@contextmanager
def skip_initialisation() -> Iterator[None]:
    """Skip random initialisation, which takes longer than reading the weights that replace it."""
    names = ("uniform_", "normal_", "kaiming_uniform_", "xavier_uniform_")
    originals = {name: getattr(nn.init, name) for name in names}
    try:
        for name in names:
            setattr(nn.init, name, lambda tensor, *_, **__: tensor)
        yield
    finally:
        for name, function in originals.items():
            setattr(nn.init, name, function)


def aliases(module: nn.Module) -> dict[str, list[str]]:
    """All names of each tensor of a module, by the first of them."""
    first: dict[int, str] = {}
    names: dict[str, list[str]] = {}
    for name, value in module.state_dict(keep_vars=True).items():
        names.setdefault(first.setdefault(id(value), name), []).append(name)
    return names


def weights_of(module: nn.Module) -> Weights:
    """The parameters and persistent buffers of a module, tied ones once. Not copies."""
    state = module.state_dict()
    return {name: state[name] for name in aliases(module)}


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a safetensors file. We write it ourselves, to report a full disk in one line."""
    # The format forbids shared storage, which the fused weights of a cuDNN network have.
    stored = {name: value.detach().to("cpu").contiguous() for name, value in tensors.items()}
    seen: set[int] = set()
    for name, value in stored.items():
        if value.untyped_storage().data_ptr() in seen:
            stored[name] = value.clone()
        seen.add(value.untyped_storage().data_ptr())
    return safetensors.torch.save(stored)


def check_file(path: Path) -> None:
    """Refuse what is no safetensors file by its kind and the length of its header, before a library reads it."""
    if not path.exists() and not path.is_symlink():
        raise SeqloomError(f"{path}: no such weights file; the training of this run is not finished, or has failed")
    check_regular(path, COPY)
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > HEADER:
        raise SeqloomError(f"{path}: not a complete safetensors file (a header of {length:,} bytes); {COPY}")


def read(path: Path) -> Weights:
    """The tensors of a safetensors file."""
    check_file(path)
    try:
        return safetensors.torch.load_file(path)
    except Exception as problem:  # of the library, or of torch for a type of numbers that it does not have
        raise SeqloomError(f"{path}: not a complete safetensors file ({one_line(problem)}); {COPY}") from None


def save_file(tensors: Mapping[str, Tensor], path: Path | str) -> None:
    """Write a safetensors file, which appears complete or not at all."""
    with saving(Path(path)):
        replace_file(Path(path), to_bytes(tensors))


def load_file(module: nn.Module, path: Path | str) -> None:
    """Load a safetensors file into a module; every name and shape must fit."""
    load(module, read(Path(path)), path)


def load(module: nn.Module, weights: Mapping[str, Tensor], origin: Path | str) -> None:
    """Load weights into a module. Every name and shape must fit, else nothing is changed."""
    state = module.state_dict()
    with torch.no_grad():
        for name, value in fit_weights(module, weights, origin).items():
            state[name].copy_(value)


def fit_weights(module: nn.Module, weights: Mapping[str, Tensor], origin: Path | str) -> Weights:
    """The weights under the names and in the number types of a module; its own values are not looked at."""
    state = module.state_dict()
    found: dict[str, str] = {}  # name in the module -> name in the file
    for name, others in aliases(module).items():
        present = [other for other in others if other in weights]
        if present:
            found[name] = present[0]
    missing = [name for name in aliases(module) if name not in found]
    unknown = [name for name in weights if name not in state]
    for problem, names in (("lacks", missing), ("has the unknown", unknown)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise SeqloomError(
                f'{origin}: {problem} tensor "{names[0]}"{more}: these are the weights of another model; '
                "use the recipe they were trained with"
            )
    wrong = [name for name in found if state[name].shape != weights[found[name]].shape]
    tables = {f"{name}.weight" for name, part in module.named_modules() if isinstance(part, nn.Embedding)}
    wrong.sort(key=lambda name: name not in tables)  # another vocabulary explains all other misfits
    if wrong:
        name = wrong[0]
        ours, theirs = tuple(state[name].shape), tuple(weights[found[name]].shape)
        if name in tables and ours[1:] == theirs[1:]:
            raise SeqloomError(
                f'the vocabulary has {ours[0]} tokens, the weights {theirs[0]}: tensor "{name}" of {origin} '
                "belongs to another vocabulary; use the tokenizer files it was trained with"
            )
        raise SeqloomError(
            f'{origin}: tensor "{name}" has shape {theirs}, the model expects {ours}; '
            "use the recipe it was trained with"
        )
    for name, stored in found.items():
        wanted, given = state[name].dtype, weights[stored].dtype
        if wanted != given and not {wanted, given} <= {*FLOATS}:
            raise SeqloomError(
                f'{origin}: tensor "{stored}" holds {kind(given)} values, the model expects {kind(wanted)}; '
                "use the recipe it was trained with"
            )
    return {name: weights[stored].to(state[name].dtype) for name, stored in found.items()}


def kind(number: torch.dtype) -> str:
    """float32, int64."""
    return str(number).removeprefix("torch.")


def outline(weights: Weights) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """Shapes and types of numbers, by name."""
    return {name: (value.shape, value.dtype) for name, value in weights.items()}


def average(paths: Sequence[Path | str]) -> Weights:
    """The mean of several weights files, or of the model.safetensors in several checkpoint folders."""
    if not paths:
        raise SeqloomError("nothing to average: name at least one checkpoint")
    files = [Path(path) / "model.safetensors" if Path(path).is_dir() else Path(path) for path in paths]
    first = read(files[0])
    sums = {name: value.double() for name, value in first.items() if value.is_floating_point()}
    for file in files[1:]:
        weights = read(file)
        if outline(weights) != outline(first):
            raise SeqloomError(f"{file} and {files[0]} are not checkpoints of one model: their tensors differ")
        for name, total in sums.items():
            total += weights[name].double()
    return {
        name: (sums[name] / len(files)).to(value.dtype) if name in sums else value  # counters are not averaged
        for name, value in first.items()
    }
