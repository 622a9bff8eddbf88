"""How far back gradients reach: closed forms for linear cells, and the known order of the others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seqloom.analysis.gradients import GradientFlow, flow_figure, flow_table, gradient_norms, gradients, slope
from seqloom.analysis.plot import COLOURS, save
from seqloom.contracts import Cell
from seqloom.errors import SeqloomError
from seqloom.nn.cells.lstm import LSTM
from seqloom.types import State

ROWS, LENGTH, SIZE = 3, 12, 4


class Linear(Cell):
    """h = x + U h': the gradient lag steps back is (U^T)^lag w, whatever the inputs."""

    def __init__(self, recurrent: Tensor):
        super().__init__(input_size=len(recurrent), size=len(recurrent))
        self.recurrent = torch.nn.Parameter(recurrent)

    def project(self, inputs: Tensor) -> Tensor:
        return inputs

    def start(self, rows: int) -> State:
        return {"hidden": self.recurrent.new_zeros(rows, self.size)}

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        hidden = projected + state["hidden"] @ self.recurrent.T
        return hidden, {"hidden": hidden}


@pytest.fixture
def inputs() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(ROWS, LENGTH, SIZE, dtype=torch.float64)


def test_a_linear_cell_has_the_powers_of_its_matrix(inputs: Tensor) -> None:
    recurrent = torch.randn(SIZE, SIZE, dtype=torch.float64) / 2
    direction = torch.randn(SIZE, dtype=torch.float64)
    found = gradient_norms(Linear(recurrent), inputs, direction)["hidden"]
    expected = [
        float((torch.linalg.matrix_power(recurrent.T, lag) @ direction).norm().log10()) for lag in range(LENGTH + 1)
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.7])
def test_a_scaled_rotation_has_the_logarithm_of_its_scale_for_a_slope(inputs: Tensor, factor: float) -> None:
    rotation = torch.linalg.qr(torch.randn(SIZE, SIZE, dtype=torch.float64))[0]
    found = gradient_norms(Linear(factor * rotation), inputs, torch.ones(SIZE, dtype=torch.float64))["hidden"].tolist()
    assert slope(found) == pytest.approx(math.log10(factor), abs=1e-9)


def test_the_gradient_of_an_lstms_cell_state_is_the_product_of_its_forget_gates(inputs: Tensor) -> None:
    torch.manual_seed(1)
    cell = LSTM(input_size=SIZE, size=SIZE).double()
    with torch.no_grad():
        cell.kernel.weight_hh_l0.zero_()
        cell.kernel.bias_hh_l0.zero_()
    direction = torch.randn(SIZE, dtype=torch.float64)
    found = gradient_norms(cell, inputs, direction)
    with torch.no_grad():
        gates = cell.project(inputs)  # (rows, T, 4 * size)
        forget, leave = (gates[..., part * SIZE : (part + 1) * SIZE].sigmoid() for part in (1, 3))
        state = cell.start(ROWS)
        for projected in gates.unbind(1):
            state = cell(projected, state)[1]
        last = direction * leave[:, -1] * (1 - state["cell"].tanh() ** 2)  # dL/dc_T
        for lag in range(LENGTH + 1):
            expected = last * forget[:, LENGTH - lag :].prod(1)
            torch.testing.assert_close(found["cell"][lag], expected.norm(dim=1).log10().mean())
    assert found["hidden"][0] == pytest.approx(float(direction.norm().log10()))
    assert found["hidden"][1:].tolist() == [-math.inf] * LENGTH  # h goes nowhere


def test_measuring_a_cell_leaves_it_as_it_was(inputs: Tensor) -> None:
    cell = LSTM(input_size=SIZE, size=SIZE)
    gradient_norms(cell, inputs, torch.ones(SIZE))
    assert all(each.dtype == torch.float32 and each.requires_grad and each.grad is None for each in cell.parameters())


def test_the_slope_leaves_out_infinite_norms_and_the_loss_itself() -> None:
    assert slope([7.0, -1.0, -3.0, -5.0, -math.inf]) == pytest.approx(-2)
    assert slope([0.0, -1.0, -math.inf, -math.inf]) == -math.inf


# -- recipes and runs


def test_logistic_elman_forgets_faster_than_tanh_and_tanh_faster_than_an_lstm_with_forget_bias() -> None:
    elman = "encoder.cell.type=elman"
    settings = ([elman, "encoder.cell.activation=sigmoid"], [elman], ["encoder.cell.forget_bias=1.0"])
    logistic, tanh, lstm = (gradients(["dates"], each)[0] for each in settings)
    assert logistic.slope < tanh.slope - 0.2 < lstm.slope - 0.4
    assert lstm.slope > -0.1
    assert all(len(each.norms["hidden"]) == 101 for each in (logistic, tanh, lstm))
    assert "activation sigmoid" in logistic.about
    assert lstm.norms.keys() == {"hidden", "cell"}


@pytest.mark.parametrize("name", ["char-lm", "adding", "text-lstm"])  # a decoder's cell, vectors, a running text
def test_every_recurrent_recipe_has_a_cell_to_measure(name: str) -> None:
    (found,) = gradients([name], length=5, draws=2)
    assert found.name == name
    assert "random lstm" in found.about
    assert found.norms["hidden"][0] == pytest.approx(0)  # the direction has length 1
    assert all(map(math.isfinite, found.norms["hidden"]))


def test_the_decoders_cell_is_measured_where_the_encoder_has_none() -> None:
    settings = ["encoder.type=transformer", "encoder.size=8", "encoder.heads=2", "encoder.hidden=8"]
    settings += ["decoder.cell.type=gru", "decoder.size=16"]
    (found,) = gradients(["dates"], settings, length=3, draws=2)
    assert "random gru of 16" in found.about


def test_a_model_without_a_cell_is_refused() -> None:
    with pytest.raises(SeqloomError, match="g2p-transformer has no recurrent cell"):
        gradients(["g2p-transformer"])


def test_the_table_has_a_row_for_each_state_and_large_lags_only_where_they_are() -> None:
    first = GradientFlow("one", "random elman of 4", {"hidden": [0.0, -1.0, -2.0, -3.0]})
    second = GradientFlow(
        "two", "random lstm of 4", {"hidden": [0.0, -1.0, -math.inf, -math.inf], "cell": [0.0, 0.0, 0.0, 0.0]}
    )
    lines = flow_table([first, second]).splitlines()
    assert lines[0].split() == ["steps", "back", "1", "2", "slope"]
    assert lines[1].split()[-3:] == ["1.0e-01", "1.0e-02", "-1.0000"]
    assert lines[2].split()[-3:] == ["1.0e-01", "0.0e+00", "-inf"]
    assert lines[3].split() == ["cell", "state", "1.0e+00", "1.0e+00", "0.0000"]


def test_the_picture_has_a_line_for_each(tmp_path: Path) -> None:
    flows = [GradientFlow(name, "elman", {"hidden": [0.0, -1.0, -math.inf]}) for name in ("one", "_two", "$three_{x$")]
    drawn = flow_figure(flows)
    (panel,) = drawn.axes
    assert panel.get_yscale() == "log"
    assert [list(line.get_ydata()) for line in panel.lines] == [[1.0, pytest.approx(0.1)]] * 3
    assert [line.get_color() for line in panel.lines] == list(COLOURS[:3])
    for kind, beginning in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        save(drawn, tmp_path / f"picture.{kind}")
        assert (tmp_path / f"picture.{kind}").read_bytes().startswith(beginning)
    written = (tmp_path / "picture.svg").read_text()
    assert all(name in written for name in ("one:", "_two:", "three_{x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.png", "picture.svg"]
