"""Decoders that write while they read learn when to write; the controls show what they learn it by."""

from typing import Any

import pytest

from seqloom.data.generators.delayed_copy import delayed_copy, delays

examples = [(each.source, each.target) for each in delayed_copy(3200, shortest=6, longest=12)]
train, test = examples[:3000], examples[3000:]
TEXT = {"type": "text", "units": "char"}


def recipe(decoder: dict[str, Any], objective: dict[str, Any], steps: int) -> dict[str, Any]:
    return {
        "seed": 1,
        "objective": objective,
        "search": {"type": "prefix_beam", "beam_size": 1},
        "task": {"source": TEXT, "target": TEXT, "metrics": ["exact"]},
        "encoder": {"type": "recurrent", "embedding_size": 32, "size": 64},
        "decoder": {"embedding_size": 16, "size": 64, **decoder},
        "train": {
            "schedule": "cosine",
            "warmup": 20,
            "validate_every": 10_000,
            "device": "cpu",
            "tokens": 512,
            "steps": steps,
            "learning_rate": 1e-2,
        },
    }


def emissions(**objective: Any) -> dict[str, Any]:
    return recipe({"type": "emission"}, {"type": "emission", **objective}, 250)


def blocks(**objective: Any) -> dict[str, Any]:
    attention = {"type": "additive", "size": 32}
    decoder = {"type": "neural_transducer", "block": 3, "symbols_per_block": 2, "attention": attention}
    return recipe(decoder, {"type": "alignment", **objective}, 250)


def delay(model: Any) -> float:
    """How many letters later than they could tokens are written, on average."""
    sources = [source for source, _ in test]
    late = delays(sources, [found[0].times for found in model.candidates(sources)])
    return sum(late) / len(late)


def test_stochastic_emissions_copy_each_letter_as_soon_as_it_is_known(learn):
    model = learn(emissions(), train)
    assert model.evaluate(test)["exact"] >= 75
    assert abs(delay(model)) <= 2


def test_without_credit_for_forced_emissions_they_wait_until_forced(learn):
    assert learn(emissions(bound=False), train).evaluate(test)["exact"] <= 55


@pytest.fixture(scope="module")
def transducer(learn):
    return learn(blocks(), train)


def test_a_neural_transducer_writes_in_the_block_in_which_it_can_or_soon_after(transducer):
    assert transducer.evaluate(test)["exact"] >= 75
    assert 0 <= delay(transducer) <= 3


def test_alignments_of_a_narrow_beam_come_late_and_teach_less(learn, transducer):
    model = learn(blocks(search="beam"), train)
    assert model.evaluate(test)["exact"] <= 60
    assert delay(model) > delay(transducer)
