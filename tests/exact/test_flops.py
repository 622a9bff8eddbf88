"""FLOPs against closed forms, no product that is not counted, and a sample of batches against all of them."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

import seqloom
from seqloom.analysis.cost import ready_of, step_flops, training_cost, training_flops
from seqloom.analysis.flops import FORMULAS, count_flops
from seqloom.analysis.info import info
from seqloom.analysis.small_model import make_small
from seqloom.config.build import build_objective
from seqloom.config.complete import complete
from seqloom.config.multi_task import tasks_of
from seqloom.config.recipes import packaged, read_recipe
from seqloom.data.generators.addition import addition
from seqloom.errors import SeqloomError
from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.transformer import Transformer as Encoder
from seqloom.nn.model import Model
from seqloom.nn.ops.linear import weight_cache
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.train.training import Training
from seqloom.types import Batch, Padded

PRODUCTS = re.compile(r"(?<!cu)mm|mv|dot|conv|rnn|lstm_cell$|attention|einsum|matmul|linear")


class Operations(TorchDispatchMode):
    """The names of all operations that a computation comes down to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[Any] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        self.found[function._overloadpacket] += 1
        return function(*args, **(options or {}))


def test_an_lstm_multiplies_inputs_and_states_by_the_weights_of_four_gates() -> None:
    rows, steps, inputs, size = 3, 5, 7, 8
    values = torch.randn(rows, steps, inputs, requires_grad=True)
    for kernel, gates in ((nn.LSTM, 4), (nn.GRU, 3)):  # one fused, the other step by step
        layer = kernel(inputs, size, batch_first=True)
        forward = 2 * rows * steps * gates * size * (inputs + size)
        assert count_flops(lambda layer=layer: layer(values)) == forward
        both = count_flops(lambda layer=layer: layer(values)[0].sum().backward())
        assert both == pytest.approx(3 * forward, rel=0.1)  # the first state of a GRU needs no gradient
    assert count_flops(lambda: nn.LSTM(inputs, size, batch_first=True)(values)[0].sum().backward()) == (
        3 * 2 * rows * steps * 4 * size * (inputs + size)
    )


def test_a_transformer_has_the_flops_of_its_formula() -> None:
    rows, source, target, size, hidden, layers, words = 2, 6, 5, 8, 12, 2, 20
    shared: dict[str, Any] = {"size": size, "hidden": hidden, "heads": 2, "layers": layers, "dropout": 0.0}
    encoder = Encoder(vocabulary=words, **shared)
    decoder = Decoder(vocabulary=words, memory_size=size, bos=2, eos=3, **shared)
    model = Model(encoder, decoder)
    lengths = torch.tensor([source] * rows), torch.tensor([target] * rows)
    tokens = [Padded(torch.randint(4, words, (rows, length)), many) for length, many in zip((source, target), lengths)]
    batch = Batch(source=tokens[0], inputs=tokens[1], targets=tokens[1])
    # Weights: four projections of self-attention and two linear layers; a decoder also attends to the source.
    of_source = layers * (4 * size**2 + 2 * size * hidden + 2 * size**2)  # the last: its keys and values
    of_target = layers * (4 * size**2 + 2 * size * hidden + 2 * size**2) + size * words
    scores = (
        layers * size * (source**2 + target**2 + target * source)
    )  # queries times keys; weights times values the same
    forward = 2 * rows * (source * of_source + target * of_target + 2 * scores)
    assert count_flops(lambda: model(batch).scores) == forward
    linear = 2 * rows * (source * of_source + target * of_target)
    training = Training(model, CrossEntropy()).train()
    assert step_flops(training, batch) == 3 * linear + 2 * rows * scores * (2 + 5)  # the kernel needs 5 products back


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name in packaged() for task in tasks_of(read_recipe(name))]
)
def test_no_product_of_a_recipe_is_left_out(name: str, task: str) -> None:
    small = make_small(tasks_of(complete(read_recipe(name), name))[task])
    training = Training(small.model, small.objective).train()
    with Operations() as operations:
        training(small.batch, 0.5).total.backward()
    known = {str(each) for each in (*flop_registry, *FORMULAS)}
    products = {str(each) for each in operations.found if PRODUCTS.search(str(each).removeprefix("aten."))}
    products -= {"aten._thnn_fused_lstm_cell", "aten.dropout"}
    assert products - known == set()
    assert step_flops(training, small.batch) > 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cost")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder / "cache"))
        lines = "".join(f"{each.source}\t{each.target}\n" for each in addition(400, 1))
        (folder / "sums.tsv").write_text(lines)
        settings = ["train.steps=20", "train.tokens=256", "train.device=cpu", "train.decode=4"]
        seqloom.fit(str(folder / "sums.tsv"), "addition", out=folder / "first", settings=settings, as_written=True)
        more = [*settings, f"init={folder / 'first'}"]
        seqloom.fit(str(folder / "sums.tsv"), "addition", out=folder / "second", settings=more, as_written=True)
    return folder


@pytest.mark.parametrize("objective", ["mixer", "expected_reward", "minimum_risk", "scheduled_sampling", "raml"])
def test_objectives_that_sample_are_counted_with_what_they_sample(run: Path, objective: str) -> None:
    ready = ready_of(seqloom.load(run / "first", device="cpu"))
    table = complete({**read_recipe("addition"), "objective": {"type": objective}}, "addition")
    made = build_objective(table, ready.task, ready.model.decoder)
    plain, sampled = training_cost(ready), training_cost(replace(ready, objective=made))
    assert sampled.tokens == pytest.approx(plain.tokens, rel=0.01)
    more = sampled.per_token / plain.per_token
    assert more == pytest.approx(1, rel=0.1) if objective == "raml" else more > 1.05


def test_a_sample_of_batches_says_what_all_of_them_cost(run: Path) -> None:
    ready = ready_of(seqloom.load(run / "first", device="cpu"))
    sampled, whole = training_cost(ready), training_cost(ready, sample=None)
    assert sampled.per_token == pytest.approx(whole.per_token, rel=0.03)
    assert (
        sampled.tokens == whole.tokens == sum(len(ready.data.train[row][1]) + 1 for row in range(len(ready.data.train)))
    )


def test_a_run_that_started_from_another_has_the_cost_of_both(run: Path) -> None:
    first, second = training_flops(run / "first"), training_flops(run / "second")
    assert second == pytest.approx(2 * first, rel=0.05)
    ready = ready_of(seqloom.load(run / "first", device="cpu"))
    epochs = info(run / "first").epochs
    assert epochs is not None
    assert first == training_cost(ready).of(epochs)


def test_info_of_a_run_and_of_a_recipe(run: Path) -> None:
    found = info(run / "first")
    model = seqloom.load(run / "first", device="cpu").model
    assert found.parameters == sum(found.parts.values()) == sum(weight.numel() for weight in model.parameters())
    assert (found.steps, found.weights_bytes) == (20, 4 * found.parameters)
    assert found.train_flops is not None
    assert found.train_flops > 0
    recipe = info("addition", str(run / "sums.tsv"), ["train.made_for=400", "train.tokens=256"])
    assert recipe.parameters == found.parameters
    assert recipe.train_flops_per_token == pytest.approx(found.train_flops_per_token, rel=0.1)
    assert recipe.steps is None
    assert "random" not in str(recipe)
    alone = info("addition")
    assert "8 random examples of 20 tokens" in str(alone)
    assert replace(alone, name="x").json()["train_tokens_per_second"] is None
    with pytest.raises(SeqloomError, match="give --data FILE"):
        info("gnmt-refined")  # its reward is one of words
    with pytest.raises(SeqloomError, match="--set changes a recipe"):
        info(run / "first", settings=["seed=2"])


KINDS = ["labels", "tags", "hull", "babi", "text-lstm", "speech-ctc", "pointer-generator", "adding"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_task_has_info_without_data(name: str) -> None:
    found = info(name)
    assert found.train_flops_per_token > 0
    assert found.predict_flops_per_token > 0


def test_info_leaves_no_copies_of_weights(run: Path) -> None:
    weight_cache.clear()
    seqloom.info(run / "first")
    assert not weight_cache
