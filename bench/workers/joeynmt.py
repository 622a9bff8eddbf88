"""JoeyNMT: its model from its own configuration, its loss, its search."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from torch import Tensor, nn

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import BOS, EOS, LABEL_SMOOTHING, PAD, UNK, Shape
from bench.workers import loop

SPECIALS = SimpleNamespace(
    pad_token="<pad>",
    unk_token="<unk>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token=None,
    pad_id=UNK,  # PAD and UNK are exchanged in JoeyNMT
    unk_id=PAD,
    bos_id=BOS,
    eos_id=EOS,
    sep_id=None,
    lang_tags=[],
)


def build(shape: Shape, vocabulary: int) -> Any:
    torch.manual_seed(1)
    tokens = Vocabulary([f"token{number}" for number in range(4, vocabulary)], SPECIALS)
    size, dropout = shape["size"], shape["dropout"]
    embeddings = {"embedding_dim": size, "scale": shape["kind"] == "transformer"}
    common = {"embeddings": embeddings, "dropout": dropout, "num_layers": shape["layers"]}
    if shape["kind"] == "transformer":
        part = {**common, "type": "transformer", "hidden_size": size, "ff_size": shape["hidden"]}
        part |= {"num_heads": shape["heads"], "layer_norm": "pre"}
        sides = {"encoder": part, "decoder": part}
    else:
        encoder = {**common, "type": "recurrent", "rnn_type": "lstm", "hidden_size": size // 2, "bidirectional": True}
        decoder = {**common, "type": "recurrent", "rnn_type": "lstm", "hidden_size": size, "attention": "luong"}
        decoder |= {"input_feeding": shape["input_feeding"], "init_hidden": "last"}
        sides = {"encoder": encoder, "decoder": decoder}
    tied = {"tied_embeddings": True, "tied_softmax": shape["kind"] == "transformer"}
    model = build_model({**sides, **tied, "initializer": "xavier_uniform"}, tokens, tokens)
    model.loss_function = ("crossentropy", LABEL_SMOOTHING)
    return model


def swap_specials(tokens: Tensor) -> Tensor:
    """Exchange PAD and UNK."""
    return torch.where(tokens < 2, 1 - tokens, tokens)


def longest_first(batch: PaddedBatch) -> PaddedBatch:
    """The order that its recurrent encoder expects."""
    order = batch.source_lengths.argsort(descending=True)
    return PaddedBatch(*(part[order] for part in vars(batch).values()))


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model = build(job["shape"], job["vocabulary"])

    def loss_of(model: nn.Module, batch: PaddedBatch) -> Tensor:
        batch = longest_first(batch)
        real = (batch.targets != PAD)[:, None]
        total, *_ = model(
            return_type="loss",
            src=swap_specials(batch.source),
            src_mask=(batch.source != PAD)[:, None],
            src_length=batch.source_lengths,
            trg_input=swap_specials(batch.inputs),
            trg=swap_specials(batch.targets),
            trg_mask=real,
        )
        return total / batch.tokens

    return loop.train(model, loss_of, Batches(job["batches"]))


def decoding(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model = build(job["shape"], job["vocabulary"]).eval()

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        order = lengths.argsort(descending=True)
        sources, lengths = sources[order], lengths[order]
        real = (sources != PAD)[:, None]
        batch = SimpleNamespace(
            src=swap_specials(sources), src_length=lengths, src_mask=real, has_trg=False, trg_prompt_mask=None
        )
        found, *_ = search(model, batch, steps, beam_size, 1.0, min_output_length=steps, generate_unk=True)
        return [len(row) for row in found]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(train=training, decode=decoding)
