"""The parts of the package, plain and in their variants, for tests that discover parts by themselves."""

from functools import partial
from inspect import signature
from typing import Any

import pytest
import torch

from seqloom.config.discovery import parts
from seqloom.contracts import Head, Objective, Online
from seqloom.data.special_tokens import BOS, EOS, PAD, UNK
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.monotonic import Monotonic
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.attention.projected import Projected
from seqloom.nn.attention.several import Several
from seqloom.nn.cells.adaptive import Adaptive
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.cells.mut import MUT
from seqloom.nn.decoders.conv_s2s import ConvS2S
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.pyramidal import Pyramidal
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.encoders.video import Video as VideoEncoder
from seqloom.testing.models import from_program, refuse_special
from seqloom.testing.parts import checks_of
from seqloom.testing.small import (
    FEATURES,
    SMALL,
    VOCABULARY,
    build,
    memory_for,
    shortened,
    source,
    source_for,
    tensors,
    unprepared,
    valid,
)

__all__ = [
    "BOS",
    "EOS",
    "FEATURES",
    "PAD",
    "SMALL",
    "UNK",
    "VOCABULARY",
    "build",
    "cases",
    "contract_checks",
    "memory_for",
    "shortened",
    "source",
    "source_for",
    "tensors",
    "unprepared",
    "valid",
]

VECTORS = {"vocabulary": None, "features": FEATURES}
OF_VECTORS = {"source_vocabulary": None, "source_features": FEATURES}
EXPERTS = {"experts": 4, "active_experts": 2, "expert_hidden": 6}
INNER = {"embedding_size": 8, "size": 8, "layers": 2}  # of a decoder within another
SPELLED_TRANSFORMER = partial(TransformerEncoder, size=8, heads=2, hidden=16, layers=2, dropout=0.0)
READING_ON = partial(RecurrentEncoder, embedding_size=6, size=8)  # streams
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
    ("attention", "projected"): {
        "of one layer": {"layers": 1, "activation": "sigmoid", "scaled": False},
        "of two layers": {"layers": 2, "activation": "tanh", "size": 5},
    },
    ("attention", "several"): {
        "dot": {"attention": Dot},
        "multi-head": {"attention": MultiHead},
        "coverage": {"attention": partial(Additive, coverage=True)},
    },
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
    ("encoders", "conv_s2s"): {"of five": {"kernel": 5, "size": 6}, "vectors": VECTORS},
    ("encoders", "byte_net"): {
        "as long as the source": {"unfold_ratio": 1.0, "kernel": 5},
        "twice as long": {"unfold_ratio": 2.0, "unfold_offset": 3},
        "vectors": VECTORS,
    },
    ("decoders", "conv_s2s"): {
        "language model": {"memory_size": 0},
        "of two, narrow": {"kernel": 2, "size": 6, "tied": False},  # of one would forget all tokens but the last
    },
    ("decoders", "pixels"): {
        "plain": {"style": "plain"},
        "plain, language model": {"style": "plain", "memory_size": 0, "layers": 3, "size": 24},
        "language model, wide": {"memory_size": 0, "canvas": (2, 3, 1), "kernel": 5},
        "in colour": {"canvas": (3, 1, 3), "size": 12, "hidden": 24, "layers": 3, "first_kernel": 3},
        "plain, in colour": {"canvas": (3, 1, 3), "size": 24, "hidden": 24, "style": "plain", "first_kernel": 3},
        "of single pixels above the first layer": {"kernel": 1, "canvas": (4, 3, 1)},
        "row": {"style": "row", "layers": 2},
        "diagonal": {"style": "diagonal", "layers": 2},
        "row, language model": {"style": "row", "memory_size": 0, "kernel": 5, "size": 24, "layers": 3},
        "diagonal, language model": {
            "style": "diagonal",
            "layers": 2,
            "memory_size": 0,
            "canvas": (2, 3, 1),
            "size": 24,
        },
        "row, in colour": {
            "canvas": (3, 1, 3),
            "size": 12,
            "hidden": 24,
            "style": "row",
            "layers": 2,
            "first_kernel": 3,
        },
    },
    ("decoders", "video_pixels"): {
        "language model": {"memory_size": 0, "size": 24, "hidden": 24},
        "in colour": {"canvas": (2, 1, 3), "size": 12, "hidden": 24, "first_kernel": 3},
        "independent, of one pixel": {
            "style": "independent",
            "canvas": (1, 1, 1),
            "frames": 9,
            "size": 24,
            "hidden": 24,
        },
        "vector": {"memory": "vector", "layers": 0, "memory_size": 0, "style": "plain"},
    },
    ("decoders", "wave_net"): {
        "language model": {"memory_size": 0, "layers": 3},
        "of three, heard as it goes": {"kernel": 3, "hop": 2, "layers": 2, "dilations": (1, 3)},
    },
    ("decoders", "byte_net"): {
        "language model": {"memory_size": 0},
        "on the summary": {"condition": "summary", "tied": True},
        "of two": {"kernel": 2, "dilations": (1, 3), "layers": 3},
    },
    ("encoders", "multi_model"): {"of two experts": {"experts": 2, "kernel": 5, "hidden": 6}, "vectors": VECTORS},
    ("decoders", "multi_model"): {
        "language model": {"memory_size": 0},
        "of two, untied": {"kernel": 2, "tied": False, "hidden": 6},
    },
    ("encoders", "deep_att"): {
        "one column, compressed": {"columns": 1, "layers": 3, "interface_size": 5},
        "gru": {"cell": GRU, "layers": 3},
        "adaptive": {"cell": Adaptive},
        "flat": {"layers": 1},
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
        "experts": {"layers": 3, **EXPERTS},
        "experts, bidirectional": {"bidirectional": True, "residual": True, **EXPERTS},
        "experts, from the end, adaptive": {"cell": Adaptive, "reverse": True, **EXPERTS},
        "vectors": VECTORS,
    },
    ("encoders", "memory_network"): {
        "of one hop, bags of words": {"hops": 1, "positions": False},
        "without ages": {"ages": 0},
        "of few ages": {"ages": 2},
    },
    ("encoders", "image"): {
        "grey, not square, deep": {"shape": (6, 9, 1), "patch": 1, "stages": 3, "blocks": 2, "size": 32},
        "of one state": {"shape": (4, 4, 3), "patch": 4, "stages": 1, "summary": "mean"},
        "in groups": {"size": 64, "patch": 2},
    },
    ("encoders", "video"): {
        "that streams": {"encoder": READING_ON},
        "of single frames": {"window": 1, "encoder": READING_ON},
        "of nine frames, grey, transformer": {"window": 9, "shape": (8, 16, 1), "encoder": SPELLED_TRANSFORMER},
        "half as long": {"encoder": partial(Pyramidal, size=8, layers=2, bidirectional=False)},
    },
    ("encoders", "several"): {
        "of its own kinds": {
            "encoder": partial(VideoEncoder, window=2, encoder=READING_ON),
            "parts": {"sound": partial(Pyramidal, size=8, layers=2, bidirectional=False)},
        },
    },
    ("encoders", "reader"): {"lstm": {"cell": LSTM}},
    ("encoders", "spelling"): {"transformer": {"encoder": SPELLED_TRANSFORMER}},
    ("encoders", "set"): {"of no steps": {"steps": 0}, "vectors": VECTORS},
    ("encoders", "transformer"): {
        "post-norm": {"norm": "post"},
        "learned positions": {"positions": "learned"},
        "adaptive": {"adaptive": True, "layers": 5},
        "experts": {"experts": 4},
        "experts, post-norm": {"experts": 5, "active_experts": 3, "norm": "post"},
        "of BERT": {
            "norm": "post",
            "activation": "gelu",
            "positions": "learned",
            "normalised": True,
            "segments": 2,
        },
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
        "experts": {"attention": Dot, "layers": 3, **EXPERTS},
        "experts, bahdanau, further adaptive step": {
            "attention": Additive,
            "order": "bahdanau",
            "combine": "rnn",
            "cell": Adaptive,
            **EXPERTS,
        },
        "experts, language model": {"memory_size": 0, **EXPERTS},
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
        "luong several": {"attention": Several},
        "bahdanau several, coverage, input feeding": {
            "attention": partial(Several, attention=partial(Additive, coverage=True)),
            "order": "bahdanau",
            "input_feeding": True,
        },
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
        "summary first": {"bridge": "first"},
        "summary first, bahdanau, all": {
            "bridge": "first",
            "attention": partial(Additive, coverage=True),
            "order": "bahdanau",
            "input_feeding": True,
            "feed_context": True,
            "layers": 3,
        },
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
    ("decoders", "vectors"): {
        "gaussians, gru": {"density": "gaussians", "components": 3, "decoder": partial(Recurrent, **INNER, cell=GRU)},
        "language model, transformer": {"memory_size": 0, "decoder": INNER_TRANSFORMER},
        "convolutions": {"decoder": partial(ConvS2S, **INNER)},
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
    ("decoders", "deep_att"): {
        "flat": {"layers": 1},
        "deep, tied": {"layers": 4, "tied": True},
        "gru, dot": {"cell": GRU, "attention": Dot, "layers": 3},
        "mut, coverage": {"cell": MUT, "attention": partial(Additive, coverage=True)},
        "adaptive": {"cell": Adaptive},
        "monotonic": {"attention": Monotonic, "bridge": "zero"},
    },
    ("decoders", "transformer"): {
        "post-norm, untied": {"norm": "post", "tied": False},
        "experts": {"experts": 4},
        "experts, language model": {"experts": 5, "active_experts": 3, "memory_size": 0},
        "learned positions": {"positions": "learned"},
        "language model": {"memory_size": 0},
    },
}


def cases(
    folder: str, heads: bool = False, online: bool = False, chooses: tuple[str, ...] | None = None, endless: bool = True
) -> list[Any]:
    """Every part of a folder, plain and in its variants, as pytest parameters of one function: build().

    Of decoders those that read all and then step, or the heads, which do not step, or those that write as they read;
    and of these perhaps only those that choose in one of some ways from their source, or that can write an end.
    """
    found = []
    for name, part in parts(folder).items():
        if issubclass(part, Head) != heads or issubclass(part, Online) != online:
            continue
        if chooses is not None and part.chooses not in chooses:
            continue
        if not endless and part.endless:
            continue
        if folder == "decoders" and not heads and "vocabulary" not in signature(part).parameters:
            continue  # of vectors: nothing to search
        for variant, settings in {"plain": {}, **VARIANTS.get((folder, name), {})}.items():
            found.append(pytest.param(partial(build, part, **settings), id=f"{name}-{variant}"))
    return found


def contract_checks(kind: str) -> list[Any]:
    """Every contract check of every part of a kind, plain and in its variants, as pytest parameters."""
    found = []
    for name, part in parts(kind).items():
        for variant, settings in {"plain": {}, **VARIANTS.get((kind, name), {})}.items():
            found += [
                pytest.param(check, id=f"{name}-{variant}: {check.claim}") for check in checks_of(part, **settings)
            ]
    return found


def objectives_of_any_decoder() -> dict[str, Objective]:
    """Every objective over tokens that does not ask for a decoder of its own, built by its defaults."""
    found = {}
    for name, part in parts("objectives").items():
        torch.manual_seed(1)
        objective = part(**from_program(part))
        try:
            refuse_special(objective)
        except SeqloomError:
            continue
        found[name] = objective.double()
    return found
