"""eole, the successor of OpenNMT-py: its model from its own configuration, its LossCompute, its Translator."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from eole.config.models import EmbeddingsConfig, TransformerModelConfig
from eole.config.run import PredictConfig
from eole.config.training import TrainingConfig
from eole.inputters.inputter import dict_to_vocabs
from eole.models.model import EncoderDecoderModel
from eole.predict import GNMTGlobalScorer, Translator
from eole.utils.loss import LossCompute
from torch import Tensor, nn

from bench.batches import Batches, PaddedBatch
from bench.pipe import Message, Turn, serve
from bench.shapes import BOS, LABEL_SMOOTHING, PAD, Shape
from bench.workers import loop


def vocabularies(size: int) -> Any:
    specials = {"pad_token": "<blank>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    tokens = [*specials.values(), *(f"token{number}" for number in range(4, size))]
    return dict_to_vocabs({"src": tokens, "tgt": tokens, "specials": specials, "decoder_start_token": "<s>"})


def configuration(shape: Shape) -> Any:
    return TransformerModelConfig(
        layers=shape["layers"],
        hidden_size=shape["size"],
        heads=shape["heads"],
        transformer_ff=shape["hidden"],
        add_qkvbias=True,
        add_final_linear_bias=True,
        add_ffnbias=True,
        share_embeddings=True,
        share_decoder_embeddings=True,
        embeddings=EmbeddingsConfig(word_vec_size=shape["size"], position_encoding_type="SinusoidalInterleaved"),
    )


def training_settings(shape: Shape) -> Any:
    return TrainingConfig(
        dropout=[shape["dropout"]],
        attention_dropout=[shape["dropout"]],
        label_smoothing=LABEL_SMOOTHING,
        compute_dtype="fp32",
        world_size=1,
        gpu_ranks=[],
    )


def training(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    vocabs = vocabularies(job["vocabulary"])
    model = EncoderDecoderModel.for_training(
        configuration(job["shape"]), vocabs, training_settings(job["shape"]), device_id=-1
    )
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=LABEL_SMOOTHING)
    compute = LossCompute(criterion, model.generator, vocabs=vocabs)
    compute.log_attention_entropy = False

    def loss_of(model: nn.Module, batch: PaddedBatch) -> Tensor:
        begin = torch.full_like(batch.targets[:, :1], BOS)
        target = torch.cat([begin, batch.targets], dim=1)
        output = model(batch.source, target, batch.source_lengths)
        sides = {"tgt": target, "srclen": batch.source_lengths, "cid": [], "cid_line_number": []}
        total, _, _ = compute(sides, output.dec_out, output.attns)
        return total / batch.tokens

    return loop.train(model, loss_of, Batches(job["batches"]))


def decoding(job: Message) -> Turn:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    vocabs, shape = vocabularies(job["vocabulary"]), configuration(job["shape"])
    settings = {"model_path": ["none"], "src": "none", "compute_dtype": torch.float32, "self_attn_backend": "pytorch"}
    common = PredictConfig.model_construct(**settings, model=shape, gpu_ranks=[], world_size=1)
    model = EncoderDecoderModel.build(shape, vocabs, common)
    model.init_weights(training_settings(job["shape"]))
    model._prepare_for_inference(common)
    scorer = GNMTGlobalScorer(0.0, 0.0, "avg", "none")

    def answer(sources: Tensor, lengths: Tensor, steps: int, beam_size: int) -> Sequence[int]:
        config = common.model_copy(
            update={
                "min_length": steps,
                "max_length": steps,
                "max_length_ratio": 0,
                "beam_size": beam_size,
                "top_k": 1 if beam_size == 1 else 0,
                "top_p": 0.0,
            }
        )
        translator = Translator(model, vocabs, config, shape, device_id=-1, global_scorer=scorer)
        found = translator.predict_batch({"src": sources, "srclen": lengths}, False)
        return [len(best[0]) for best in found["predictions"]]

    return loop.decode(job, answer)


if __name__ == "__main__":
    serve(train=training, decode=decoding)
