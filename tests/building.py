"""Small instances of every part, in float64, for tests that discover parts by themselves."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from seqloom.config.discovery import parts
from seqloom.contracts import Decoder, Encoder, Head, Objective, Online
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.monotonic import Monotonic
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.attention.projected import Projected
from seqloom.nn.cells.adaptive import Adaptive
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.cells.mut import MUT
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.types import Memory, Padded

VOCABULARY, PAD, UNK, BOS, EOS, FEATURES = 9, 0, 1, 2, 3, 4
VECTORS = {"vocabulary": None, "features": FEATURES}
OF_VECTORS = {"source_vocabulary": None, "source_features": FEATURES}
SMALL: dict[str, Any] = {  # given to every constructor that has such a parameter
    "vocabulary": VOCABULARY,
    "bos": BOS,
    "eos": EOS,
    "pad": PAD,
    "blank": PAD,
    "unk": UNK,
    "written": (0, 1, 2, 3, 8, 1, 5, 4, 6),
    "source_vocabulary": VOCABULARY,
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
INNER = {"embedding_size": 8, "size": 8, "layers": 2}  # of a decoder within another
SPELLED_TRANSFORMER = partial(TransformerEncoder, size=8, heads=2, hidden=16, layers=2, dropout=0.0)
INNER_TRANSFORMER = partial(Transformer, size=8, heads=2, hidden=16, layers=2, dropout=0.0)

# Beyond its defaults a part may have settings that are systems of their own. A new part needs no entry here.
VARIANTS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("cells", "elman"): {"logistic": {"activation": "sigmoid"}},
    ("cells", "lstm"): {f"without {gate}": {"without": gate} for gate in ("forget", "input", "output")},
    ("cells", "mut"): {"2": {"variant": 2}, "3": {"variant": 3}, "1, as wide as its input": {"input_size": 8}},
    ("cells", "gru"): {"reset before": {"reset": "before"}},
    ("cells", "adaptive"): {
        "gru": {"cell": GRU},
        "mut": {"cell": MUT},
        "of two steps": {"most": 2, "epsilon": 0.0},
    },
    ("attention", "additive"): {"coverage": {"coverage": True}},
    ("attention", "dot"): {"scaled": {"scaled": True}},
    ("attention", "monotonic"): {"soft": {"decoding": "soft"}},
    ("encoders", "chunked"): {
        "of two": {"chunk": 2, "left": 1},
        "of two, nothing before, post-norm": {"chunk": 2, "left": 0, "norm": "post"},
        "of one": {"chunk": 1, "left": 2, "layers": 3},
        "vectors": {"chunk": 3, **VECTORS},
    },
    ("encoders", "convolution"): {
        "relu": {"activation": "relu", "layers": 3, "dilations": (1, 3)},
        "of one": {"kernel": 1},
        "vectors": VECTORS,
    },
    ("encoders", "pyramidal"): {
        "one way": {"bidirectional": False, "layers": 3},
        "one way, of three, gru": {"bidirectional": False, "reduce": 3, "cell": GRU},
        "adaptive": {"cell": Adaptive},
        "one way, adaptive": {"bidirectional": False, "cell": Adaptive},
        "flat": {"bidirectional": False, "layers": 1},
        "vectors": VECTORS,
        "vectors one way": {"bidirectional": False, **VECTORS},
    },
    ("encoders", "recurrent"): {
        "bidirectional": {"bidirectional": True},
        "bidirectional at the bottom": {"bidirectional": "bottom", "residual": True, "layers": 4},
        "from the end": {"reverse": True},
        "residual gru": {"cell": GRU, "residual": True, "layers": 3},
        "own gru": {"cell": partial(GRU, reset="before"), "bidirectional": True},
        "adaptive": {"cell": Adaptive},
        "adaptive, bidirectional": {"cell": partial(Adaptive, cell=GRU), "bidirectional": True},
        "vectors": VECTORS,
    },
    ("encoders", "memory_network"): {
        "of one hop, bags of words": {"hops": 1, "positions": False},
        "without ages": {"ages": 0},
        "of few ages": {"ages": 2},
    },
    ("encoders", "reader"): {"lstm": {"cell": LSTM}},
    ("encoders", "spelling"): {"transformer": {"encoder": SPELLED_TRANSFORMER}},
    ("encoders", "set"): {"of no steps": {"steps": 0}, "vectors": VECTORS},
    ("encoders", "transformer"): {
        "post-norm": {"norm": "post"},
        "learned positions": {"positions": "learned"},
        "adaptive": {"adaptive": True, "layers": 5},
        "adaptive, post-norm, learned positions": {
            "adaptive": True,
            "norm": "post",
            "positions": "learned",
            "layers": 3,
        },
        "vectors": VECTORS,
    },
    ("decoders", "recurrent"): {
        "adaptive": {"cell": Adaptive},
        "adaptive language model": {"cell": Adaptive, "memory_size": 0},
        "bahdanau, further adaptive step": {
            "attention": Additive,
            "order": "bahdanau",
            "combine": "rnn",
            "cell": Adaptive,
        },
        "luong dot": {"attention": Dot},
        "luong bilinear, tied": {"attention": Bilinear, "tied": True},
        "luong additive, added": {"attention": Additive, "combine": "add"},
        "luong multi-head": {"attention": MultiHead},
        "luong, further step": {"attention": Dot, "combine": "rnn"},
        "luong, input feeding": {"attention": Additive, "input_feeding": True},
        "luong, input feeding, added": {"attention": Dot, "input_feeding": True, "combine": "add"},
        "bahdanau": {"attention": Additive, "order": "bahdanau"},
        "bahdanau, further gru step": {"attention": Additive, "order": "bahdanau", "combine": "rnn", "cell": GRU},
        "bahdanau, all": {"attention": MultiHead, "order": "bahdanau", "input_feeding": True, "residual": True},
        "luong, context as state": {"attention": Additive, "combine": "state"},
        "luong, wide context as state": {"attention": Additive, "combine": "state", "memory_size": 12},
        "context at every step": {"feed_context": True},
        "context at every step and deep output": {"feed_context": True, "deep_output": True},
        "luong, deep output": {"attention": Additive, "deep_output": True, "input_feeding": True},
        "luong projected": {"attention": partial(Projected, size=5, activation="sigmoid", scaled=False)},
        "luong coverage": {"attention": partial(Additive, coverage=True)},
        "bahdanau coverage, input feeding": {
            "attention": partial(Additive, coverage=True),
            "order": "bahdanau",
            "input_feeding": True,
        },
        "luong monotonic": {"attention": Monotonic},
        "luong monotonic in expectation": {"attention": partial(Monotonic, decoding="soft")},
        "bahdanau monotonic": {"attention": Monotonic, "order": "bahdanau"},
        "bahdanau monotonic in expectation": {"attention": partial(Monotonic, decoding="soft"), "order": "bahdanau"},
        "zero bridge": {"bridge": "zero"},
        "language model": {"memory_size": 0},
    },
    ("decoders", "copy"): {
        "switch": {"mixture": "switch", "decoder": partial(Recurrent, **INNER)},
        "coverage": {"attention": partial(Additive, coverage=True), "decoder": partial(Recurrent, **INNER)},
        "transformer": {"decoder": INNER_TRANSFORMER, "attention": MultiHead},
        "transformer, switch, dot": {"decoder": INNER_TRANSFORMER, "mixture": "switch", "attention": Dot},
    },
    ("decoders", "sentinel"): {
        "of one": {"window": 1, "decoder": partial(Recurrent, **INNER)},
        "of three": {"window": 3, "decoder": partial(Recurrent, **INNER), "memory_size": 0},
        "transformer": {"window": 4, "decoder": INNER_TRANSFORMER},
    },
    ("decoders", "pointer"): {
        "vectors": OF_VECTORS,
        "dot, gru": {"attention": Dot, "cell": GRU},
        "glimpses": {"glimpses": 2, **OF_VECTORS},
        "zero bridge": {"bridge": "zero"},
    },
    ("decoders", "label"): {"attention": {"pooling": "attention"}},
    ("decoders", "tags"): {"random field": {"crf": True}},
    ("decoders", "reader"): {"max": {"pooling": "max"}},
    ("decoders", "transducer"): {
        "mlp": {"joint": "mlp"},
        "mlp, gru": {"joint": "mlp", "cell": GRU, "layers": 3},
    },
    ("decoders", "ssnt"): {"gru": {"cell": GRU, "layers": 1}},
    ("decoders", "neural_transducer"): {
        "small blocks": {"block": 2, "symbols_per_block": 2},
        "one pass": {"block": 2, "input_feeding": False},
        "the block before": {"block": 2, "previous": 1, "cell": GRU},
        "dot, two blocks before": {"block": 2, "previous": 2, "attention": Dot, "input_feeding": False},
        "multi-head": {"block": 2, "attention": MultiHead},
        "monotonic": {"block": 2, "attention": Monotonic},
    },
    ("decoders", "emission"): {"residual gru": {"cell": GRU, "residual": True, "layers": 3}},
    ("decoders", "gnmt"): {
        "monotonic": {"attention": Monotonic},
        "monotonic in expectation": {"attention": partial(Monotonic, decoding="soft")},
    },
    ("decoders", "transformer"): {
        "post-norm, untied": {"norm": "post", "tied": False},
        "learned positions": {"positions": "learned"},
        "language model": {"memory_size": 0},
    },
}


def cases(folder: str, heads: bool = False, online: bool = False, chooses: tuple[str, ...] | None = None) -> list[Any]:
    """Every part of a folder, plain and in its variants, as pytest parameters of one function: build().

    Of decoders those that read all and then step, or the heads, which do not step, or those that write as they read;
    and of these perhaps only those that choose in one of some ways from their source.
    """
    found = []
    for name, part in parts(folder).items():
        if issubclass(part, Head) != heads or issubclass(part, Online) != online:
            continue
        if chooses is not None and part.chooses not in chooses:
            continue
        for variant, settings in {"plain": {}, **VARIANTS.get((folder, name), {})}.items():
            found.append(pytest.param(partial(build, part, **settings), id=f"{name}-{variant}"))
    return found


def build(part: type, **settings: Any) -> Any:
    torch.manual_seed(1)
    takes = signature(part).parameters
    small = {name: value for name, value in SMALL.items() if name in takes}
    if "features" in takes and "vocabulary" not in takes:
        small["features"] = FEATURES
    made = part(**{**small, **settings})
    if isinstance(made, torch.nn.Module):
        made.double().eval()
        for parameter in made.parameters():  # no zeros or ones left, so that every parameter matters
            torch.nn.init.uniform_(parameter, -0.5, 0.5)
        made.memory_size_in_tests = settings.get("memory_size", SMALL["memory_size"])
        made.reads_vectors_in_tests = "features" in settings or "source_features" in settings
    return made


def source(lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Padded:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    padded = Padded(values, torch.tensor(lengths))
    return Padded(values * padded.mask, padded.lengths)


def stories(lengths: tuple[int, ...] = (5, 3, 1), width: int = 4) -> Padded:
    """Tables of tokens: a row a sentence of one word to all."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths), width), generator=generator)
    words = torch.randint(1, width + 1, (len(lengths), max(lengths), 1), generator=generator)
    padded = Padded(values * (torch.arange(width) < words), torch.tensor(lengths))
    return Padded(padded.values * padded.mask[:, :, None], padded.lengths)


def source_for(part: Encoder | Decoder, lengths: tuple[int, ...] = (5, 3, 1)) -> Padded:
    """Tokens, or vectors for a part that reads them. Of a decoder that copies, some are unknown, one of them twice."""
    symbols = source(lengths)
    if reads_stories(part):
        return stories(lengths)
    if getattr(part, "unknown", None) is not None:
        symbols.values[:1, [0, 3]], symbols.values[:1, 2:3] = VOCABULARY, VOCABULARY + 2
    if not part.reads_vectors_in_tests:
        return symbols
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(*symbols.values.shape, FEATURES, generator=generator, dtype=torch.float64)
    return Padded(values * symbols.mask[:, :, None], symbols.lengths)


def reads_stories(part: Encoder | Decoder) -> bool:
    """Whether an encoder refuses plain sequences."""
    if not isinstance(part, Encoder):
        return False
    try:
        part.suit(SimpleNamespace(source=SimpleNamespace(nested="")))  # type: ignore[arg-type]
    except ValueError:
        return True
    return False


def objectives_of_any_decoder() -> dict[str, Objective]:
    """Every objective over tokens that does not ask for a decoder of its own, built by its defaults."""
    known = {
        "vocabulary": 6,
        "hidden_size": 4,
        "features": 4,
        "decode": lambda tokens: " ".join(map(str, tokens)),
        "constraints": lambda source: [],
    }
    target = SimpleNamespace(is_vectors=False)
    task: Any = SimpleNamespace(target=target, source=target, running=False, eos=EOS, constrained=True)
    decoder: Any = SimpleNamespace(trained_by="")
    found = {}
    for name, part in parts("objectives").items():
        asked = [name for name, argument in signature(part).parameters.items() if argument.default is Parameter.empty]
        torch.manual_seed(1)
        objective = part(**{name: known[name] for name in asked})
        try:
            objective.suit(task, decoder, SimpleNamespace(rank_by="last"))
        except ValueError:
            continue
        found[name] = objective.double()
    return found


def memory_for(decoder: Decoder, lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Memory:
    """A prepared memory with everything a decoder may ask for; empty if it is a language model."""
    return decoder.prepare(unprepared(decoder, lengths, seed))


def unprepared(decoder: Decoder, lengths: tuple[int, ...] = (5, 3, 1), seed: int = 0) -> Memory:
    size = decoder.memory_size_in_tests
    if not size:
        return Memory.empty(len(lengths))
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), size, generator=generator, dtype=torch.float64)
    summary = torch.randn(len(lengths), size, generator=generator, dtype=torch.float64)
    read = source_for(decoder, lengths) if decoder.reads_source else None
    parts = {} if read is None else {"source": Memory(read.values, read.lengths)}
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


def valid(decoder: Decoder, memory: Memory, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens (rows, ...) as a decoder can have written them: one that chooses from its source writes what is there."""
    if not decoder.reads_source:
        return tokens
    scores, _ = decoder.step(torch.full((len(tokens),), BOS), decoder.start_rows(memory, len(tokens)), memory)
    written = [[symbol for symbol in row.isfinite().nonzero()[:, 0].tolist() if symbol > EOS] for row in scores]
    rows = [torch.tensor(symbols)[(row - 4) % len(symbols)] for symbols, row in zip(written, tokens)]
    return torch.stack(rows)


def tensors(state: dict[str, Any]) -> Iterator[torch.Tensor]:
    for value in state.values():
        if isinstance(value, dict):
            yield from tensors(value)
        elif isinstance(value, torch.Tensor):
            yield value
