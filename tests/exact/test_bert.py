"""BERT's encoder beside that of the library `transformers`, with equal weights."""

from __future__ import annotations

import pytest
import torch

from seqloom.data.special_tokens import EOS
from seqloom.nn.encoders.transformer import Transformer
from seqloom.types import Padded

transformers = pytest.importorskip("transformers")
SIZES = {"vocabulary": 50, "size": 16, "layers": 3, "heads": 2, "hidden": 32, "longest": 24}
SHARED = {
    "embedding.weight": "embeddings.word_embeddings.weight",
    "segments.weight": "embeddings.token_type_embeddings.weight",
    "positioned.positions.table.weight": "embeddings.position_embeddings.weight",
    "positioned.norm": "embeddings.LayerNorm",
}
LAYER = {
    "self_attention.query": "attention.self.query",
    "self_attention.output": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
}


def with_weights_of(theirs) -> Transformer:
    """Our encoder with the weights of theirs."""
    own = Transformer(
        **SIZES, dropout=0.0, norm="post", activation="gelu", positions="learned", normalised=True, segments=2
    )
    names = dict(SHARED)
    for layer in range(SIZES["layers"]):
        names |= {f"layers.{layer}.{ours}": f"encoder.layer.{layer}.{name}" for ours, name in LAYER.items()}
    weights, found = theirs.state_dict(), {}
    for ours, name in names.items():
        if name in weights:
            found[ours] = weights[name]
        else:
            found |= {f"{ours}.{kind}": weights[f"{name}.{kind}"] for kind in ("weight", "bias")}
    for layer in range(SIZES["layers"]):
        for kind in ("weight", "bias"):
            parts = [weights[f"encoder.layer.{layer}.attention.self.{each}.{kind}"] for each in ("key", "value")]
            found[f"layers.{layer}.self_attention.key_value.{kind}"] = torch.cat(parts)
    own.double().eval().load_state_dict(found)
    return own


@torch.no_grad()
def test_states_are_those_of_transformers():
    config = transformers.BertConfig(
        vocab_size=SIZES["vocabulary"],
        hidden_size=SIZES["size"],
        num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"],
        intermediate_size=SIZES["hidden"],
        max_position_embeddings=SIZES["longest"],
        layer_norm_eps=1e-5,
        attn_implementation="eager",
    )
    torch.manual_seed(1)
    theirs = transformers.BertModel(config).double().eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    tokens, lengths = torch.randint(4, 50, (3, 9)), torch.tensor([9, 6, 4])
    tokens[0, [4, 8]], tokens[1, [2, 5]], tokens[2, 3] = EOS, EOS, EOS
    mask, ends = torch.arange(9) < lengths[:, None], tokens == EOS
    second = (ends.cumsum(1) - ends.long()).clamp(max=1)
    expected = theirs(input_ids=tokens, attention_mask=mask.long(), token_type_ids=second).last_hidden_state
    found = with_weights_of(theirs)(Padded(tokens, lengths)).states
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-12, rtol=0)
