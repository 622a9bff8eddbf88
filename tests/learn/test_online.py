"""Decoders that write while they read learn when to write, and the controls show what that depends on."""

from typing import Any

import pytest

from seqloom.data.generators.delayed_copy import delayed_copy, delays
from tests.learn.tiny import words

TEXT = {"type": "text", "units": "char"}
marked = [(each.source, each.target) for each in delayed_copy(2000, shortest=6, longest=8)]
copies = [(word, word) for word in words(1700, (6, 9))]


def recipe(decoder: dict[str, Any], objective: dict[str, Any], steps: int, tokens: int) -> dict[str, Any]:
    return {
        "seed": 1,
        "objective": objective,
        "search": {"type": "prefix_beam", "beam_size": 1},
        "task": {"source": TEXT, "target": TEXT, "metrics": ["exact"]},
        "encoder": {"type": "recurrent", "embedding_size": 16, "size": 32},
        "decoder": {"embedding_size": 8, **decoder},
        "train": {
            "schedule": "cosine",
            "warmup": 20,
            "validate_every": 10_000,
            "device": "cpu",
            "tokens": tokens,
            "steps": steps,
            "learning_rate": 2e-2,
        },
    }


def emissions(**objective: Any) -> dict[str, Any]:
    return recipe({"type": "emission", "size": 32}, {"type": "emission", **objective}, steps=250, tokens=256)


def test_stochastic_emissions_write_each_letter_at_its_mark(learn):
    model, test = learn(emissions(), marked[:1800]), marked[1800:]
    assert model.evaluate(test)["exact"] >= 55
    sources = [source for source, _ in test]
    late = delays(sources, [found[0].times for found in model.candidates(sources)])
    assert abs(sum(late)) / len(late) <= 1


def test_emissions_fail_when_forced_decisions_have_no_part_in_the_reward(learn):
    """The model then waits until the end of the source forces it to write."""
    assert learn(emissions(bound=False), marked[:1800]).evaluate(marked[1800:])["exact"] <= 35


def blocks(**objective: Any) -> dict[str, Any]:
    """Blocks of three letters. A first tenth of even alignments shows that letters belong to their own block."""
    attention = {"type": "additive", "size": 32}
    decoder = {"type": "neural_transducer", "size": 48, "block": 3, "symbols_per_block": 6, "attention": attention}
    return recipe(decoder, {"type": "alignment", "even": 0.1, **objective}, steps=150, tokens=192)


def lag(model: Any) -> float:
    """How many letters after its own each letter is written, on average: 1 if each is written in its block."""
    found = model.candidates([source for source, _ in copies[1500:]])
    late = [time - place - 1 for (best, *_) in found for place, time in enumerate(best.times)]
    return sum(late) / len(late)


@pytest.fixture(scope="module")
def transducer(learn):
    return learn(blocks(), copies[:1500])


def test_neural_transducer_writes_each_letter_in_its_block(transducer):
    assert transducer.evaluate(copies[1500:])["exact"] >= 60
    assert 0.8 <= lag(transducer) <= 1.3


def test_alignments_from_a_narrow_beam_postpone_letters_and_are_not_learned(learn, transducer):
    model = learn(blocks(search="beam"), copies[:1500])
    assert model.evaluate(copies[1500:])["exact"] <= 40
    assert lag(model) >= lag(transducer) + 0.25
