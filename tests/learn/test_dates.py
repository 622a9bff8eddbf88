"""What the demo learns, cut to seconds: dates as people write them become ISO dates."""

import pytest

from tests.learn.tiny import lstm

pytest.importorskip("babel")

from seqloom.data.generators.dates import dates


def test_dates_in_twelve_languages_become_iso_dates(learn):
    pairs = [(example.source, example.target) for example in dates(3400)]
    results = learn(lstm(250, tokens=512), pairs[:3200]).evaluate(pairs[3200:])
    assert results["exact"] >= 35
    assert results["cer"] <= 20
