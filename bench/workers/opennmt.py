"""OpenNMT-py: its model from its own options, its LossCompute, its Translator."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onmt.opts
import torch
from onmt.inputters.inputter import dict_to_vocabs
from onmt.model_builder import build_base_model
from onmt.translate import GNMTGlobalScorer, Translator
from onmt.utils.loss import LossCompute
from onmt.utils.parse import ArgumentParser
from torch import Tensor, nn

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import BOS, LABEL_SMOOTHING, PAD, Shape
from bench.workers import loop

TRANSFORMER = (
    "-encoder_type transformer -decoder_type transformer -enc_layers {layers} -dec_layers {layers} "
    "-hidden_size {size} -word_vec_size {size} -heads {heads} -transformer_ff {hidden} -position_encoding true "
    "-add_qkvbias true -add_ffnbias true -attention_dropout {dropout}"
)
RECURRENT = (
    "-encoder_type brnn -decoder_type rnn -rnn_type LSTM -enc_layers {layers} -dec_layers {layers} "
    "-hidden_size {size} -word_vec_size {size} -global_attention general -input_feed {feed}"
)
SHARED = "-data none -src_vocab none -save_model none -dropout {dropout} -share_embeddings -share_decoder_embeddings"


def vocabularies(size: int) -> Any:
    tokens = ["<blank>", "<unk>", "<s>", "</s>", *(f"token{number}" for number in range(4, size))]
    return dict_to_vocabs({"src": tokens, "tgt": tokens, "data_task": "seq2seq", "decoder_start_token": "<s>"})


def build(shape: Shape, vocabulary: int) -> tuple[Any, Any]:
    """The model and its vocabularies."""
    torch.manual_seed(1)
    parser = ArgumentParser()
    onmt.opts.train_opts(parser)
    words = f"{TRANSFORMER if shape['kind'] == 'transformer' else RECURRENT} {SHARED}"
    words = words.format(**shape, feed=int(shape.get("input_feeding", False)))
    options, _ = parser.parse_known_args(words.split())
    ArgumentParser.update_model_opts(options)
    vocabs = vocabularies(vocabulary)
    model = build_base_model(options, vocabs)
    for parameter in model.parameters():  # as they initialise Transformers; building does not initialise
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        else:
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    return model, vocabs


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model, vocabs = build(job["shape"], job["vocabulary"])
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=LABEL_SMOOTHING)
    compute = LossCompute(criterion, model.generator, vocab=vocabs["tgt"])

    def loss_of(model: nn.Module, batch: PaddedBatch) -> Tensor:
        begin = torch.full_like(batch.targets[:, :1], BOS)
        target = torch.cat([begin, batch.targets], dim=1)[:, :, None]
        source = batch.source[:, :, None]
        output, attentions = model(source, target, batch.source_lengths)
        sides = {"src": source, "tgt": target, "srclen": batch.source_lengths}
        total, _ = compute(sides, output, attentions)
        return total / batch.tokens

    return loop.train(model, loss_of, Batches(job["batches"]))


def decoding(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    model, vocabs = build(job["shape"], job["vocabulary"])
    model.eval()
    for module in model.modules():
        if hasattr(module, "dropout_p"):
            module.dropout_p = 0.0  # as their loading does
    scorer = GNMTGlobalScorer(0.0, 0.0, "avg", "none")

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        greedy = {"random_sampling_topk": 1} if beam_size == 1 else {}
        translator = Translator(
            model,
            vocabs,
            min_length=steps,
            max_length=steps,
            max_length_ratio=0,
            beam_size=beam_size,
            global_scorer=scorer,
            dump_beam="",
            seed=1,
            **greedy,
        )
        found = translator.translate_batch({"src": sources[:, :, None], "srclen": lengths}, False)
        return [len(best[0]) for best in found["predictions"]]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(train=training, decode=decoding)
