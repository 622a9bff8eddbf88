"""Benchmarks: `python -m bench.NAME` prints tables and writes results/bench-NAME.json."""
