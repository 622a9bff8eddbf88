"""Packing, drop-out and linear maps against their plain forms."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional

from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.model import Model
from seqloom.nn.ops import linear as linear_module
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear, linear, linear_of_several
from seqloom.nn.ops.packing import Packing
from seqloom.types import positions_below
from tests.building import build

RAGGED, FULL = positions_below(torch.tensor([3, 1, 4]), 4), torch.ones(3, 4, dtype=torch.bool)
MASKS = pytest.mark.parametrize("mask", [RAGGED, FULL, RAGGED[:, :1]], ids=["ragged", "full", "one"])


# -- packing


@MASKS
def test_packing_takes_the_real_positions_in_order_and_unpacking_puts_them_back(mask):
    packing, values = Packing(mask), torch.randn(*mask.shape, 6)
    torch.testing.assert_close(packing.pack(values), values[mask])
    torch.testing.assert_close(packing.unpack(values[mask]), values * mask[:, :, None])
    assert packing.offsets().tolist() == [index for row in mask for index in range(int(row.sum()))]


@MASKS
@pytest.mark.parametrize("parts", [1, 3])
def test_unpacked_heads_equal_a_view(mask, parts):
    packing, heads, size = Packing(mask), 2, 5
    values = torch.randn(*mask.shape, parts * heads * size)
    expected = (values * mask[:, :, None]).view(*mask.shape, parts, heads, size).permute(2, 0, 3, 1, 4)
    torch.testing.assert_close(packing.unpack_heads(values[mask], heads, parts), expected)
    torch.testing.assert_close(packing.pack_heads(expected[0]), values[mask][:, : heads * size])


@MASKS
def test_gradients_of_packing_and_unpacking(mask):
    packing = Packing(mask)
    padded = torch.randn(*mask.shape, 2, dtype=torch.float64, requires_grad=True)
    packed = torch.randn(int(mask.sum()), 6, dtype=torch.float64, requires_grad=True)
    heads = torch.randn(mask.shape[0], 2, mask.shape[1], 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(packing.pack, padded)
    assert torch.autograd.gradcheck(packing.unpack, packed)
    assert torch.autograd.gradcheck(lambda values: packing.unpack_heads(values, 2), packed)
    assert torch.autograd.gradcheck(packing.pack_heads, heads)


# -- drop-out


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_p_of_elements_is_dropped_and_the_mean_stays(p):
    torch.manual_seed(1)
    dropped = Dropout(p)(torch.ones(400, 501))
    share = float((dropped == 0).double().mean())
    assert abs(share - p) < 5 * (p * (1 - p) / dropped.numel()) ** 0.5  # five standard deviations
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
    rows = (dropped == 0).double().mean(1)  # with the spread of independent draws
    assert abs(float(rows.std()) / (p * (1 - p) / 501) ** 0.5 - 1) < 0.2


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_fused_forms_are_the_same_drop_out(p):
    dropout = Dropout(p)
    values, change = (torch.randn(40, 30, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def seeded(function, *given):
        torch.manual_seed(7)
        return function(*given)

    pairs = {
        lambda values, change: dropout.add(values, change): lambda values, change: values + dropout(change),
        lambda values, change: dropout.after_relu(values + 0): lambda values, change: dropout(torch.relu(values)),
    }
    for ours, plain in pairs.items():
        found, expected = seeded(ours, values, change), seeded(plain, values, change)
        torch.testing.assert_close(found, expected)
        for one, other in zip(
            *(torch.autograd.grad(out.pow(2).sum(), (values, change), allow_unused=True) for out in (found, expected))
        ):
            torch.testing.assert_close(one, other)


def test_outside_training_nothing_is_dropped():
    values = torch.randn(3, 4)
    assert Dropout(0.5).eval()(values) is values
    with pytest.raises(ValueError, match=r"dropout = 1.0 must be in \[0, 1\)"):
        Dropout(1.0)


# -- linear maps


@pytest.mark.parametrize("rows", [(1,), (2, 3), (40,)])
@pytest.mark.parametrize(("inputs", "outputs"), [(4, 9), (9, 4)])
@pytest.mark.parametrize("biased", [True, False])
def test_a_frozen_map_is_the_same_for_few_rows_and_many(rows, inputs, outputs, biased):
    layer = Linear(inputs, outputs, bias=biased)
    values = torch.randn(*rows, inputs)
    expected = functional.linear(values, layer.weight, layer.bias)
    torch.testing.assert_close(layer(values), expected)
    layer.requires_grad_(False)
    with torch.no_grad():
        for _ in range(2):  # the second time from the cache
            torch.testing.assert_close(layer(values), expected)


@pytest.mark.parametrize("rows", [2, 40])
def test_several_maps_in_one_product(rows):
    maps, values = nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 6)]), torch.randn(rows, 4)
    expected = torch.cat([each(values) for each in maps], dim=-1)
    torch.testing.assert_close(linear_of_several(values, maps), expected)
    maps.requires_grad_(False)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(linear_of_several(values, maps), expected)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_a_weight_trained_by_a_fused_optimiser_has_no_stale_copy(optimiser):
    """Fused optimisers change weights without raising their version."""
    linear_module.clear_weight_cache()  # of models that other tests have left
    layer, values = Linear(3, 8), torch.randn(1, 3)
    fused = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimiser]
    steps = fused(layer.parameters(), lr=0.5, fused=True)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(layer(values), functional.linear(values, layer.weight, layer.bias))
        layer(values).sum().backward()
        steps.step()
    assert not linear_module.weight_cache


@torch.no_grad()
def test_frozen_weights_that_are_loaded_or_converted_are_copied_again():
    layer, values = Linear(3, 8).requires_grad_(False), torch.randn(1, 3)
    layer(values)
    layer.load_state_dict(Linear(3, 8).state_dict())
    torch.testing.assert_close(layer(values), functional.linear(values, layer.weight, layer.bias))
    torch.testing.assert_close(
        layer.double()(values.double()), functional.linear(values.double(), layer.weight, layer.bias)
    )
    with torch.inference_mode():
        other = Linear(3, 8).requires_grad_(False)
        torch.testing.assert_close(other(values), functional.linear(values, other.weight, other.bias))


def test_a_model_that_is_frozen_and_trained_again_has_gradients_and_no_cached_copies():
    model, weight = Model(None, build(Recurrent, memory_size=0)).freeze(), torch.randn(8, 3)
    with torch.no_grad():
        linear(torch.randn(1, 3), weight)
    assert linear_module.weight_cache
    assert not any(weight.requires_grad for weight in model.parameters())
    model.train()
    assert all(weight.requires_grad for weight in model.parameters())
    assert not linear_module.weight_cache


def test_no_cached_copy_outlives_its_weight():
    gc.collect()
    before = len(linear_module.weight_cache)
    with torch.no_grad():
        linear(torch.randn(1, 3), torch.randn(8, 3))
    gc.collect()
    assert len(linear_module.weight_cache) == before
