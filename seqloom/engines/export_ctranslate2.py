"""Write a Transformer for CTranslate2, through its own specification of one.

Positions go along as a table, since ours alternate sine and cosine; a token's name there is its number here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.data.special_tokens import UNK
from seqloom.engines.engine import require_packages
from seqloom.errors import SeqloomError
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.transformer import Transformer as Encoder
from seqloom.nn.layers.embedding import AddPositions
from seqloom.nn.layers.experts import Experts
from seqloom.nn.layers.transformer import FeedForward, Residual, TransformerLayer
from seqloom.nn.model import Model

LONGEST = 4096  # positions in the table: CTranslate2 reads and writes no more


def export(model: Model, folder: Path, int8: bool) -> dict[str, Any]:
    """Write the model's files; returns the settings with which to load them."""
    require_packages("ctranslate2")
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    encoder, decoder = model.encoder, model.decoder
    if type(encoder) is not Encoder or type(decoder) is not Decoder or not isinstance(encoder.embedding, nn.Embedding):
        raise SeqloomError(
            "--to ctranslate2 takes a Transformer that reads tokens (encoder and decoder): use --to onnx, or the run"
        )
    if encoder.halting is not None:
        raise SeqloomError("--to ctranslate2 does not support encoder.adaptive = true: use the run itself")
    if any(isinstance(module, Experts) for module in model.modules()):
        raise SeqloomError("--to ctranslate2 does not support experts: use the run itself")
    spec = TransformerSpec(
        TransformerEncoderSpec(len(encoder.layers), heads(encoder), pre_norm=before(encoder)),
        TransformerDecoderSpec(len(decoder.layers), heads(decoder), pre_norm=before(decoder), alignment_heads=0),
    )
    spec.encoder.embeddings[0].weight = array(encoder.embedding.weight)
    spec.decoder.embeddings.weight = array(decoder.embedding.weight)
    if decoder.output is None:
        fill(spec.decoder.projection, decoder.embedding.weight, None)
    else:
        fill(spec.decoder.projection, decoder.output.weight, decoder.output.bias)
    for ours, theirs in ((encoder, spec.encoder), (decoder, spec.decoder)):
        theirs.position_encodings.encodings = positions(ours.positioned)
        if before(ours):
            fill_norm(theirs.layer_norm, ours.norm)
        for layer, entry in zip(ours.layers, theirs.layer):
            fill_layer(entry, layer)

    for register, table in (
        (spec.register_source_vocabulary, encoder.embedding),
        (spec.register_target_vocabulary, decoder.embedding),
    ):
        register([str(number) for number in range(table.num_embeddings)])
    spec.config.bos_token = spec.config.decoder_start_token = str(decoder.bos)
    spec.config.eos_token = str(decoder.eos)
    spec.config.unk_token = str(UNK)
    spec.config.layer_norm_epsilon = encoder.layers[0].self_residual.norm.eps
    spec.validate()
    spec.optimize("int8" if int8 else None)
    spec.save(str(folder))
    return {"longest": LONGEST}


def heads(part: Encoder | Decoder) -> int:
    return part.layers[0].self_attention.heads


def before(part: Encoder | Decoder) -> bool:
    """Whether a layer normalises before (pre) or after (post)."""
    return part.layers[0].self_residual.before


def positions(positioned: AddPositions) -> np.ndarray:
    return array(positioned.positions(torch.arange(LONGEST)))  # (LONGEST, size)


def fill_layer(entry: Any, layer: TransformerLayer) -> None:
    ours = layer.self_attention
    weights, biases = (
        torch.cat([getattr(ours.query, name), getattr(ours.key_value, name)]) for name in ("weight", "bias")
    )
    fill(entry.self_attention.linear[0], weights, biases)
    fill_output(entry.self_attention, ours, layer.self_residual)
    if hasattr(layer, "cross_attention"):
        cross = layer.cross_attention
        fill(entry.attention.linear[0], cross.query.weight, cross.query.bias)
        fill(entry.attention.linear[1], cross.key_value.weight, cross.key_value.bias)
        fill_output(entry.attention, cross, layer.cross_residual)
    assert isinstance(layer.feed_forward, FeedForward), "experts were refused"
    fill_feed(entry.ffn, layer.feed_forward, layer.feed_residual)


def fill_output(entry: Any, attention: MultiHead, residual: Residual) -> None:
    fill(entry.linear[-1], attention.output.weight, attention.output.bias)
    fill_norm(entry.layer_norm, residual.norm)


def fill_feed(entry: Any, feed: FeedForward, residual: Residual) -> None:
    fill(entry.linear_0, feed.inner.weight, feed.inner.bias)
    fill(entry.linear_1, feed.outer.weight, feed.outer.bias)
    fill_norm(entry.layer_norm, residual.norm)


def fill_norm(entry: Any, norm: Any) -> None:
    entry.gamma, entry.beta = array(norm.weight), array(norm.bias)


def fill(entry: Any, weight: Tensor, bias: Tensor | None) -> None:
    entry.weight = array(weight)
    if bias is not None:
        entry.bias = array(bias)


def array(tensor: Tensor) -> np.ndarray:
    """A copy in float32: CTranslate2 quantises in place."""
    found: np.ndarray = tensor.detach().float().cpu().numpy().copy()
    return found
