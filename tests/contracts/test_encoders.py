"""What holds for every encoder."""

import pytest
import torch

from seqloom.types import Padded
from tests.building import cases, source_for


@pytest.fixture(params=cases("encoders"))
def encoder(request):
    return request.param()


def test_the_memory_is_as_wide_as_promised(encoder):
    memory = encoder(source_for(encoder))
    assert memory.states.shape == (3, 5, encoder.output_size)
    assert memory.final["summary"].shape == (3, encoder.output_size)
    assert memory.states.dtype == torch.float64


def test_padding_changes_nothing(encoder):
    batch = source_for(encoder)
    memory = encoder(batch)
    longer = encoder(Padded(torch.cat([batch.values, torch.full_like(batch.values, 5)], dim=1), batch.lengths))
    for row, length in enumerate(batch.lengths):
        torch.testing.assert_close(longer.states[row, :length], memory.states[row, :length])
    torch.testing.assert_close(longer.final, memory.final)


def test_a_batch_is_its_sentences_one_by_one(encoder):
    batch = source_for(encoder)
    memory = encoder(batch)
    for row, length in enumerate(batch.lengths):
        alone = encoder(Padded(batch.values[row : row + 1, :length], batch.lengths[row : row + 1]))
        torch.testing.assert_close(alone.states[0], memory.states[row, :length])
        torch.testing.assert_close(alone.final, memory.select(torch.tensor([row])).final)


def test_every_parameter_gets_a_gradient(encoder):
    memory = encoder(source_for(encoder))
    loss = memory.states[memory.mask].pow(2).sum() + memory.states[memory.mask].sum()
    loss.backward()
    assert [name for name, value in encoder.named_parameters() if value.grad is None or not value.grad.any()] == []
