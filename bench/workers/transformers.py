"""Hugging Face transformers: MarianMTModel, its own forward pass and `generate`."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import BOS, EOS, LABEL_SMOOTHING, PAD, Shape
from bench.workers import loop


def build(shape: Shape, vocabulary: int) -> nn.Module:
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=shape["size"],
        encoder_layers=shape["layers"],
        decoder_layers=shape["layers"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        encoder_ffn_dim=shape["hidden"],
        decoder_ffn_dim=shape["hidden"],
        dropout=shape["dropout"],
        attention_dropout=shape["dropout"],
        activation_dropout=shape["dropout"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        use_cache=False,
    )
    return MarianMTModel(config)


def loss_of(model: nn.Module, batch: PaddedBatch) -> Tensor:
    """torch's loss on their logits: their own label smoothing takes more passes."""
    output = model(input_ids=batch.source, attention_mask=(batch.source != PAD).long(), decoder_input_ids=batch.inputs)
    return cross_entropy(
        output.logits.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD, label_smoothing=LABEL_SMOOTHING
    )


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    return loop.train(build(job["shape"], job["vocabulary"]), loss_of, Batches(job["batches"]))


def decoding(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model = build(job["shape"], job["vocabulary"]).eval()

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        config = GenerationConfig(
            num_beams=beam_size,
            min_new_tokens=steps,
            max_new_tokens=steps,
            do_sample=False,
            use_cache=True,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
        )
        found = model.generate(  # type: ignore[operator]
            input_ids=sources, attention_mask=(sources != PAD).long(), generation_config=config
        )
        return [len(row) - 1 for row in found]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(train=training, decode=decoding)
