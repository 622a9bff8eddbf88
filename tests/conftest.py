"""Which tests are slow: they train, export, start processes, or search exhaustively. `make quick` leaves them out."""

from pathlib import Path

import pytest

SLOW = {
    *("bench", "cli", "learn", "studies"),
    *("exact/test_cells.py", "exact/test_engines.py", "exact/test_ensemble.py", "exact/test_expected_reward.py"),
    *("exact/test_fusion.py", "exact/test_gradcheck.py", "exact/test_margin.py", "exact/test_neural_transducer.py"),
    *("exact/test_prefix_beam.py", "exact/test_search.py", "inference/test_stream.py", "train/test_processes.py"),
    *("train/test_budget.py", "exact/test_bag.py", "exact/test_channel.py", "exact/test_monotonic.py"),
    *("exact/test_raml.py", "explain/test_page.py", "analysis/test_compare.py", "exact/test_emission.py"),
    *("exact/test_explain.py", "exact/test_simultaneous.py", "data/test_generators.py"),
    *("testing", "analysis/test_gradients.py", "faults", "train/test_elastic.py"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        if path in SLOW or path.partition("/")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
