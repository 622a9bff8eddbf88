"""Music by rule is learned: a model that sees the past costs far less per step than frequencies alone."""

import copy

import numpy as np
import pytest

from seqloom.config.recipes import read_recipe
from seqloom.data.codecs.piano_roll import PianoRoll
from seqloom.data.generators.chords import chords

pytestmark = pytest.mark.slow


def recipe():
    made = copy.deepcopy(read_recipe("music"))
    made["decoder"]["decoder"] |= {"size": 64, "embedding_size": 32, "dropout": 0.0}
    made["train"] |= {"steps": 1000, "tokens": 512, "learning_rate": 1e-2, "validate_every": 10_000, "device": "cpu"}
    return made


def frequencies_alone(train, test) -> float:
    """Nats per step, each key independent of everything."""
    rolls = np.concatenate([PianoRoll().encode(piece) for piece in train])
    share = (rolls.sum(0) + 1) / (len(rolls) + 2)  # (88,)
    steps = np.concatenate([PianoRoll().encode(piece) for piece in test])
    return float(-(steps * np.log(share) + (1 - steps) * np.log(1 - share)).sum(1).mean())


def test_a_language_model_of_chords_knows_what_comes_next(learn):
    pieces = [example.target for example in chords(240)]
    model = learn(recipe(), pieces[:200])
    floor = frequencies_alone(pieces[:200], pieces[200:])
    found = model.evaluate(pieces[200:])["nats_per_step"]
    written = model.generate(20, maximum_length=32, seed=1)
    assert found < 0.75 * floor
    assert -np.mean(model.score(written)) / 32 < 0.75 * floor  # what it writes is likely
