# make demo: set up on a fresh machine and train the demo. make test: set up, lint, type-check, test.
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin
export SEQLOOM_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test quick lint results clean

demo: $(VENV)/.demo
	$(RUN)/seqloom demo --out $(or $(OUT),runs/dates)

test: lint
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 2 --dist worksteal

quick: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -x tests/contracts tests/exact

lint: $(VENV)/.dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

# Trains for hours; each result can be stopped and continued.
results: $(VENV)/.dev
	for name in $$($(RUN)/seqloom reproduce | cut -d ' ' -f 1); do $(RUN)/seqloom reproduce $$name || exit 1; done

# The constraints pin torch: without them a fresh environment draws in gigabytes that a laptop does not need.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN)/pip install -q -c constraints.txt -e ".[demo]"
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
