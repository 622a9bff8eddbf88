"""Tables by heart, cut to seconds. That experts learn more than a dense layer takes minutes: `reproduce experts`."""

import copy
import json

import pytest

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.piecewise import piecewise
from seqloom.engines import export_ctranslate2, export_onnx
from seqloom.errors import SeqloomError


def pairs(count, seed):
    return [(each.source, each.target) for each in piecewise(count, seed, keys=8, size=12, tags=8, length=8)]


train, test = pairs(3000, 1), pairs(200, 2)


def recipe():
    made = copy.deepcopy(read_recipe("piecewise"))
    made["encoder"] |= {"size": 32, "hidden": 32, "experts": 8}
    made["train"] |= {
        "steps": 250,
        "tokens": 1024,
        "learning_rate": 1e-2,
        "warmup": 20,
        "device": "cpu",
        "log_every": 50,
    }
    made["train"] |= {"validate_every": 10_000}
    return made


@pytest.fixture(scope="module")
def mixture(learn):
    return learn(recipe(), train)


def test_experts_learn_tables(mixture):
    assert mixture.evaluate(test)["tag_accuracy"] > 48  # two tokens of ten have no tag, and guessing finds 30 %


def test_the_log_has_the_balance_and_the_costs_keep_it(mixture):
    lines = [json.loads(line) for line in (mixture.path / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["kind"] == "train"][-1]
    assert 0.9 < last["balance"] <= 1.0001
    assert 0 <= last["importance"] < 0.2
    assert 0 <= last["load"] < 0.2


def test_an_explanation_says_which_experts_each_token_used(mixture):
    source = test[0][0]
    explanation = mixture.explain(source)
    used = explanation.experts["layers.0"]
    assert len(used) == len(explanation.source) == len(source.split())
    assert all(len(set(each)) == 2 and set(each) <= set(range(8)) for each in used)
    assert explanation.hypotheses[0].experts == {}  # the head has none
    assert type(explanation).from_json(explanation.to_json()) == explanation


@pytest.fixture(scope="module", params=["transformer", "recurrent"])
def translator(request, learn):
    """Encoder and decoder with experts, barely trained."""
    part = {
        "transformer": {"type": "transformer", "size": 16, "layers": 2, "heads": 2, "hidden": 16},
        "recurrent": {"type": "recurrent", "embedding_size": 16, "size": 16, "layers": 2, "expert_hidden": 16},
    }[request.param] | {"experts": 4, "active_experts": 2, "dropout": 0.1}
    made = {
        "seed": 1,
        "task": {"source": {"type": "text", "units": "char"}, "target": {"type": "text", "units": "char"}},
        "objective": {"type": "cross_entropy", "costs": {"importance": 0.1, "load": 0.1}},
        "encoder": part,
        "decoder": part,
        "train": {"steps": 5, "tokens": 256, "device": "cpu"},
    }
    return learn(made, [("abc", "cba"), ("abd", "dba"), ("bad", "dab")] * 20)


def test_every_layer_shows_the_experts_of_source_and_output(translator):
    explanation = translator.explain("abca")
    layers = {"layers.0", "layers.1"} if "transformer" in str(type(translator.model.encoder)) else {"layers.1"}
    assert set(explanation.experts) == layers
    assert [len(used) for used in explanation.experts.values()] == [4] * len(layers)
    for one in explanation.hypotheses:
        assert set(one.experts) == layers
        assert all(len(used) == len(one.tokens) for used in one.experts.values())
    assert explanation.hypotheses[0].text == translator.predict(["abca"])[0]


def test_exports_refuse_experts_in_one_line(translator, tmp_path):
    kind = export_ctranslate2 if "transformer" in str(type(translator.model.encoder)) else export_onnx
    with pytest.raises(SeqloomError, match="does not support experts: use the run itself") as caught:
        kind.export(translator.model, tmp_path, False)
    assert "\n" not in str(caught.value)
