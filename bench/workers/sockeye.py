"""Sockeye: its model from its own configuration. Its search has no minimum length, so it only trains here."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from sockeye import initial_setup  # noqa: F401  # must be imported first
from sockeye.encoder import EmbeddingConfig
from sockeye.model import ModelConfig, SockeyeModel
from sockeye.transformer import TransformerConfig
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import LABEL_SMOOTHING, PAD, Shape
from bench.workers import loop


def build(shape: Shape, vocabulary: int) -> Any:
    torch.manual_seed(1)
    size, dropout = shape["size"], shape["dropout"]
    side = TransformerConfig(
        model_size=size,
        attention_heads=shape["heads"],
        feed_forward_num_hidden=shape["hidden"],
        act_type="relu",
        num_layers=shape["layers"],
        dropout_attention=dropout,
        dropout_act=dropout,
        dropout_prepost=dropout,
        positional_embedding_type="fixed",
        preprocess_sequence="n",
        postprocess_sequence="dr",
        max_seq_len_source=512,
        max_seq_len_target=512,
        depth_key_value=size,
    )
    table = EmbeddingConfig(vocab_size=vocabulary, num_embed=size, dropout=0.0)
    config = ModelConfig(
        config_data=SimpleNamespace(),
        vocab_source_size=vocabulary,
        vocab_target_size=vocabulary,
        config_embed_source=table,
        config_embed_target=table,
        config_encoder=side,
        config_decoder=side,
    )
    model = SockeyeModel(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    nn.init.zeros_(model.output_layer.bias)  # building does not initialise
    return model


def loss_of(model: nn.Module, batch: PaddedBatch) -> Tensor:
    lengths = torch.stack([batch.source_lengths] * 2, dim=1)  # the second column is the length of a prefix
    lengths[:, 1] = 0
    output = model(batch.source[:, :, None], lengths, batch.inputs[:, :, None], batch.target_lengths)
    return cross_entropy(
        output["logits"].flatten(0, 1), batch.targets.flatten(), ignore_index=PAD, label_smoothing=LABEL_SMOOTHING
    )


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    return loop.train(build(job["shape"], job["vocabulary"]), loss_of, Batches(job["batches"]))


if __name__ == "__main__":
    serve(train=training)
