"""The check of gradients: right ones pass, wrong ones are named."""

from functools import partial

import pytest
import torch
from torch import nn

from seqloom.analysis.gradcheck import TOLERANCE, gradcheck, report, summary
from seqloom.analysis.small_model import make_small
from seqloom.config.complete import complete
from seqloom.config.multi_task import tasks_of
from seqloom.config.recipes import override, packaged, read_recipe
from seqloom.contracts import Objective
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.dot import Dot
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.cells.mut import MUT
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.transformer import Transformer as TransformerDecoder
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Loss, Padded

VOCABULARY, SIZE = 7, 2
CELLS = {
    "elman": Elman,
    "logistic elman": partial(Elman, activation="sigmoid"),
    "lstm": LSTM,
    "lstm without forget": partial(LSTM, without="forget"),
    "gru": GRU,
    "gru of the paper": partial(GRU, reset="before"),
    "mut1": MUT,
    "mut2": partial(MUT, variant=2),
    "mut3": partial(MUT, variant=3),
}
DECODERS = {
    "luong": {"attention": Dot},
    "none": {},
    "bahdanau, fed": {"attention": partial(Additive, size=SIZE), "order": "bahdanau", "input_feeding": True},
}


def batch() -> Batch:
    torch.manual_seed(0)
    rows = [torch.randint(4, VOCABULARY, (length,)) for length in (3, 1)]
    begin, end = torch.tensor([2]), torch.tensor([3])
    return Batch(
        Padded.stack(rows),
        Padded.stack([torch.cat([begin, row]) for row in rows]),
        Padded.stack([torch.cat([row, end]) for row in rows]),
    )


def recurrent(cell, **settings) -> Model:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=1, size=SIZE, cell=cell)
    sizes = {"vocabulary": VOCABULARY, "memory_size": SIZE, "embedding_size": 1, "size": SIZE, "bos": 2, "eos": 3}
    return Model(encoder, RecurrentDecoder(**sizes, cell=cell, **settings))


@pytest.mark.parametrize(
    ("cell", "decoder"), [*((cell, "luong") for cell in CELLS), *(("lstm", other) for other in list(DECODERS)[1:])]
)
def test_cells_and_decoders_pass(cell, decoder):
    model = recurrent(CELLS[cell], **DECODERS[decoder])
    found = gradcheck(model, CrossEntropy(label_smoothing=0.1), batch())
    assert {each.name: each.scalars for each in found} == {
        name: parameter.numel() for name, parameter in model.named_parameters()
    }
    assert [str(each) for each in found if not each.passed] == []
    assert 0 < max(each.error for each in found) <= TOLERANCE


def test_a_transformer_passes():
    torch.manual_seed(0)
    sizes = {"vocabulary": VOCABULARY, "size": 4, "heads": 2, "hidden": 3, "layers": 1}
    decoder = TransformerDecoder(**sizes, memory_size=4, bos=2, eos=3)
    found = gradcheck(Model(TransformerEncoder(**sizes), decoder), CrossEntropy(), batch())
    assert all(each.passed for each in found)


def test_the_model_that_is_checked_stays_as_it_was():
    model = recurrent(LSTM).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradcheck(model, CrossEntropy(), batch())
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


# -- wrong gradients are caught


class Scaled(torch.autograd.Function):
    """The identity, with a gradient one per mille too large."""

    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * 1.001


class WrongLinear(nn.Linear):
    def forward(self, inputs):
        return nn.functional.linear(inputs, Scaled.apply(self.weight), self.bias)


class Detached(nn.Linear):
    def forward(self, inputs):
        return nn.functional.linear(inputs, self.weight, self.bias.detach())


def test_a_slightly_wrong_backward_is_caught_and_named():
    model = recurrent(GRU)
    model.decoder.output = WrongLinear(SIZE, VOCABULARY)
    found = gradcheck(model, CrossEntropy(), batch())
    assert [each.name for each in found if not each.passed] == ["decoder.output.weight"]
    wrong = next(each for each in found if not each.passed)
    assert wrong.by_autograd == pytest.approx(1.001 * wrong.by_differences, rel=1e-5)
    assert "1 of the parameters has a wrong gradient, worst decoder.output.weight[" in summary(found)


def test_a_gradient_that_is_cut_off_is_caught():
    model = recurrent(GRU)
    model.decoder.output = Detached(SIZE, VOCABULARY)
    failed = [each for each in gradcheck(model, CrossEntropy(), batch()) if not each.passed]
    assert [(each.name, each.by_autograd) for each in failed] == [("decoder.output.bias", 0.0)]


def test_a_loss_that_is_no_number_fails_everywhere():
    class Broken(Objective):
        def forward(self, model, batch, progress):
            return Loss(model(batch).scores.sum() * float("nan"), torch.tensor(1.0))

    assert not any(each.passed for each in gradcheck(recurrent(GRU), Broken(), batch()))


def test_what_an_objective_learns_is_checked_too():
    class Weighted(Objective):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(0.5))

        def forward(self, model, batch, progress):
            loss = CrossEntropy()(model, batch, progress)
            return Loss(Scaled.apply(self.weight) * loss.total, loss.count)

    failed = [each for each in gradcheck(recurrent(GRU), Weighted(), batch()) if not each.passed]
    assert [(each.name, each.place) for each in failed] == [("objective.weight", ())]


def test_an_objective_that_draws_draws_alike_each_time():
    class Noisy(Objective):
        def forward(self, model, batch, progress):
            scores = model(batch).scores
            return Loss((scores * torch.randn(scores.shape)).sum(), torch.tensor(1.0))

    model, data = recurrent(GRU), batch()
    state = torch.get_rng_state()
    assert all(each.passed for each in gradcheck(model, Noisy(), data))
    assert torch.equal(torch.get_rng_state(), state)


# -- recipes made small


def completed(name, *settings):
    return complete(override(read_recipe(name), list(settings)), name)


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name in packaged() for task in tasks_of(read_recipe(name))]
)
def test_every_packaged_recipe_becomes_small_and_keeps_its_parts(name, task):
    recipe = tasks_of(completed(name))[task]
    made = make_small(recipe)
    assert sum(parameter.numel() for parameter in made.model.parameters()) < 8_000
    assert made.changes
    changed = {change.split(" = ")[0].rpartition(".")[2] for change in made.changes}
    estimated = {"objective"} if recipe["objective"]["type"] in ("mixer", "expected_reward") else set()
    widths = {
        "size",
        "embedding_size",
        "interface_size",
        "spelling_size",
        "buckets",
        "hidden",
        "skip",
        "width",
        "heads",
        "longest",
    }
    assert changed <= widths | {"block", "window", "components"} | {"ages", "most", "answers_after"} | estimated
    if recipe["task"]["type"] == "pairs" and recipe["decoder"]["type"] != "value":
        assert len(set(made.batch.targets.lengths.tolist())) > 1


def test_widths_that_differ_stay_different_and_widths_that_fit_still_fit():
    settings = ["encoder.cell.type=mut", "decoder.cell.type=mut", "decoder.size=256", 'decoder.bridge="copy"']
    made = make_small(completed("dates", *settings))  # both directions side by side are as wide as the decoder
    names = [name for name, _ in made.model.named_parameters()]
    assert "encoder.forwards.0.match.weight" in names  # there only where input and state are not of one width
    assert made.model.decoder.stack.cells[0].size == 2 * made.model.encoder.forwards[0].size


def test_a_recipe_that_is_small_is_taken_as_it_is():
    settings = [f"{part}.{key}=6" for part in ("encoder", "decoder") for key in ("size", "embedding_size")]
    assert make_small(completed("dates", *settings, "decoder.attention.size=5")).changes == []


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(SeqloomError, match="copy"):
        make_small(completed("dates", 'decoder.bridge="copy"'))


def test_the_report_has_one_line_per_parameter_and_a_summary():
    made, lines = make_small(completed("adding")), []  # vectors, not tokens
    assert report(made, lines.append)
    assert lines[0].split() == ["parameter", "scalars", "worst", "error"]
    assert [line.split()[0] for line in lines[1:-1]] == [name for name, _ in made.model.named_parameters()]
    assert all(line.endswith("pass") for line in lines[1:-1])
    count = sum(parameter.numel() for parameter in made.model.parameters())
    assert f"{count:,} scalars: all gradients are right" in lines[-1]

    made.model.decoder.output = WrongLinear(4, 2)
    lines.clear()
    assert not report(made, lines.append)
    assert [line.split()[0] for line in lines if line.endswith("FAIL")] == ["decoder.output.weight"]
    assert "decoder.output.weight[" in lines[-1]
