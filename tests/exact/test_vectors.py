"""Vectors in and out: read like tokens, trained with the squared error, against torch and least squares."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear, mse_loss, one_hot

from seqloom.data.codecs.numbers import Numbers
from seqloom.errors import SeqloomError
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.heads.value import Value
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.model import Model
from seqloom.objectives.squared_error import SquaredError
from seqloom.tasks.pairs import Pairs, inputs_and_targets
from seqloom.types import Batch, Memory, Output, Padded
from tests.building import VOCABULARY, build, source


@pytest.mark.parametrize("part", [Recurrent, Transformer])
def test_one_hot_vectors_through_the_transposed_table_equal_tokens(part):
    token_encoder = build(part, layers=1)
    vectors = build(part, layers=1, vocabulary=None, features=VOCABULARY)
    weights = token_encoder.state_dict()
    table = weights.pop("embedding.weight")
    vectors.load_state_dict({**weights, "embedding.weight": table.T, "embedding.bias": torch.zeros(8).double()})
    batch = source()
    hot = Padded(one_hot(batch.values, VOCABULARY).double(), batch.lengths)
    ours, theirs = vectors(hot), token_encoder(batch)
    torch.testing.assert_close(ours.final, theirs.final)
    torch.testing.assert_close(ours.states, theirs.states)


@pytest.mark.parametrize("scaled", [False, True])
def test_vectors_of_unit_variance_enter_at_the_scale_of_tokens(scaled):
    torch.manual_seed(1)
    table, matrix = input_layer(500, None, 64, scaled), input_layer(None, 5, 64, scaled)
    vectors = torch.randn(500, 5)
    assert matrix(vectors).std().item() == pytest.approx(table.weight.std().item(), rel=0.1)


@pytest.mark.parametrize("both", [{}, {"vocabulary": 5, "features": 2}])
def test_an_encoder_reads_either_tokens_or_vectors(both):
    with pytest.raises(ValueError, match="either vocabulary or features"):
        Recurrent(**both)


@pytest.fixture
def model():
    return Model(build(Recurrent, vocabulary=None, features=2), build(Value, memory_size=8, features=3))


def batch(rows=5):
    torch.manual_seed(2)
    sources = [torch.randn(length, 2).double().numpy() for length in range(1, rows + 1)]
    return Pairs(source=Numbers(), target=Numbers()).batch(sources, list(torch.randn(rows, 1, 3).double().numpy()))


def test_the_loss_is_the_sum_of_squares_and_its_mean_is_the_mean_squared_error(model):
    given = batch()
    loss = SquaredError()(model, given, 0.0)
    answers, expected = model(given).scores, given.targets.values
    by_hand = sum(
        (answers[row, 0, index].item() - expected[row, 0, index].item()) ** 2 for row in range(5) for index in range(3)
    )
    assert loss.total.item() == pytest.approx(by_hand, rel=1e-12)
    assert loss.count.item() == 15
    torch.testing.assert_close(loss.total / loss.count, mse_loss(answers, expected))
    assert "nll" not in loss.logs
    ours = torch.autograd.grad(loss.total / loss.count, list(model.parameters()), retain_graph=True)
    theirs = torch.autograd.grad(mse_loss(model(given).scores, expected), list(model.parameters()))
    torch.testing.assert_close(ours, theirs)


def test_padding_adds_no_loss():
    class Echo(Value):
        """Outputs its inputs."""

        def forward(self, memory, inputs, state=None, attention=False):
            return Output(inputs.values, lambda hidden: hidden, {})

    targets = Padded.stack([torch.full((length, 3), 2.0) for length in (1, 3, 2)])
    source = Padded(torch.ones(3, 1, 2), torch.ones(3, dtype=torch.long))
    given = Batch(source, Padded.stack([torch.zeros(3, 3)] * 3), targets)
    loss = SquaredError()(Model(Recurrent(features=2), Echo(memory_size=256, features=3)), given, 0.0)
    assert (loss.total.item(), loss.count.item()) == (4.0 * 18, 18)


def test_the_value_with_the_smallest_loss_is_the_least_squares_solution():
    torch.manual_seed(3)
    summaries, targets = torch.randn(20, 8).double(), torch.randn(20, 1, 3).double()
    memory = Memory(summaries[:, None], torch.ones(20, dtype=torch.long), {"summary": summaries})
    head = build(Value)
    head.output = torch.nn.Linear(8, 3).double()
    with_one = torch.cat([summaries, torch.ones(20, 1).double()], dim=1)
    solution = torch.linalg.lstsq(with_one, targets[:, 0]).solution  # (9, 3)
    with torch.no_grad():
        head.output.weight.copy_(solution[:8].T)
        head.output.bias.copy_(solution[8])
    answers = head.answer(memory)
    torch.testing.assert_close(answers.values[:, 0], linear(summaries, solution[:8].T, solution[8]))
    assert answers.lengths.tolist() == [1] * 20
    head(memory, Padded(torch.zeros_like(targets), answers.lengths)).scores.sub(targets).square().sum().backward()
    for parameter in head.parameters():
        torch.testing.assert_close(parameter.grad, torch.zeros_like(parameter))


def test_vector_targets_start_with_a_zero_vector_and_have_no_eos():
    inputs, outputs = inputs_and_targets(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert inputs.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert outputs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    made = Pairs(source=Numbers(), target=Numbers()).batch([np.ones((2, 2), np.float32)], [np.ones((1, 3), np.float32)])
    assert (made.inputs.values.tolist(), made.inputs.lengths.tolist()) == ([[[0.0] * 3]], [1])
    assert made.source.values.dtype == torch.float32


def test_a_target_of_several_vectors_is_refused(model):
    given = Pairs(source=Numbers(), target=Numbers()).batch([np.ones((2, 2))], [np.ones((2, 3))])
    with pytest.raises(SeqloomError, match="one vector per source, but a target has 2"):
        model(given)


def test_a_value_needs_a_source():
    with pytest.raises(ValueError, match=r"task\.source"):
        Value(memory_size=0, features=1)
