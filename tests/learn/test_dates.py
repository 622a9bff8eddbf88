"""People's dates, a few thousand of them: what the demo learns, cut to seconds."""

import pytest

from tests.learn.tiny import lstm

pytest.importorskip("babel")

from seqloom.data.generators.dates import dates


def test_dates_in_twelve_languages_become_iso_dates(learn):
    pairs = [(example.source, example.target) for example in dates(3400)]
    model = learn(lstm(200, size=64, tokens=2048), pairs[:3200])
    results = model.evaluate(pairs[3200:])
    assert results["exact"] >= 40
    assert results["cer"] <= 25
