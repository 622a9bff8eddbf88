"""How fast the parts are. `python -m bench.NAME` prints a table and writes results/bench-NAME.json."""
