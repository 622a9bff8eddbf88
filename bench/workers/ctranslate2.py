"""CTranslate2: its specification filled with random weights, its Translator, in fp32 or with weights in eight bits."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from torch import Tensor

from bench.pipe import Message, Turn, serve
from bench.shapes import Shape
from bench.workers import loop


def fill_spec(shape: Shape, vocabulary: int) -> Any:
    """A pre-norm Transformer with random weights."""
    size, hidden = shape["size"], shape["hidden"]
    generator = np.random.default_rng(1)
    spec = TransformerSpec.from_config(
        (shape["layers"], shape["layers"]), shape["heads"], pre_norm=True, activation=ctranslate2.specs.Activation.RELU
    )

    def weight(*sizes: int) -> np.ndarray:
        return generator.normal(0, size**-0.5, sizes).astype(np.float32)

    def linear(part: Any, inputs: int, outputs: int) -> None:
        part.weight, part.bias = weight(outputs, inputs), np.zeros(outputs, dtype=np.float32)

    def norm(part: Any) -> None:
        part.gamma, part.beta = np.ones(size, dtype=np.float32), np.zeros(size, dtype=np.float32)

    def attention(part: Any, own: bool) -> None:
        widths = (3 * size, size) if own else (size, 2 * size, size)
        for inner, width in zip(part.linear, widths):
            linear(inner, size, width)
        norm(part.layer_norm)

    table = weight(vocabulary, size)
    for side in (spec.encoder, spec.decoder):
        norm(side.layer_norm)
        for layer in side.layer:
            attention(layer.self_attention, own=True)
            if side is spec.decoder:
                attention(layer.attention, own=False)
            linear(layer.ffn.linear_0, size, hidden)
            linear(layer.ffn.linear_1, hidden, size)
            norm(layer.ffn.layer_norm)
    for embeddings in (*spec.encoder.embeddings, spec.decoder.embeddings):
        embeddings.weight, embeddings.multiply_by_sqrt_depth = table, True
    spec.decoder.projection.weight = table
    spec.decoder.projection.bias = np.zeros(vocabulary, dtype=np.float32)
    words = names(vocabulary)
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    return spec


def names(vocabulary: int) -> list[str]:
    return ["<blank>", "<unk>", "<s>", "</s>", *(f"token{number}" for number in range(4, vocabulary))]


def decoding(job: Message) -> Turn:
    spec = fill_spec(job["shape"], job["vocabulary"])
    words = names(job["vocabulary"])
    with tempfile.TemporaryDirectory(dir=job["scratch"]) as folder:
        spec.validate()
        spec.optimize(quantization=job["precision"] if job["precision"] != "float32" else None)
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, device="cpu", compute_type=job["precision"], inter_threads=1, intra_threads=job["threads"]
        )

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        rows = [[words[token] for token in row[:length]] for row, length in zip(sources.tolist(), lengths.tolist())]
        found = translator.translate_batch(
            rows, beam_size=beam_size, min_decoding_length=steps, max_decoding_length=steps
        )
        return [len(each.hypotheses[0]) for each in found]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(decode=decoding)
