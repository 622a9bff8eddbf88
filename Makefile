# make demo: set up on a fresh machine and train the demo. make test: set up, lint, type-check, test. make quick: the
# tests that take no time to speak of.
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin
export SEQLOOM_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test quick lint results bench clean

demo: $(VENV)/.demo
	$(RUN)/seqloom demo --out $(or $(OUT),runs/dates)

test: lint
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 2 --dist worksteal --durations=25

quick: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -x -n 2 --dist worksteal -m "not slow"

lint: $(VENV)/.dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

# Trains for hours; each result can be stopped and continued.
results: $(VENV)/.dev
	for name in $$($(RUN)/seqloom reproduce | cut -d ' ' -f 1); do $(RUN)/seqloom reproduce $$name || exit 1; done

# Takes about two hours on an idle machine; each part writes its own results/bench-NAME.json, and the page is made of all.
bench: $(VENV)/.dev
	$(RUN)/python -m bench.peers $(PEERS)
	for threads in 1 2; do $(RUN)/python -m bench.train --threads $$threads --peers $(PEERS) || exit 1; done
	for threads in 1 2; do $(RUN)/python -m bench.decode --threads $$threads --peers $(PEERS) || exit 1; done
	$(RUN)/python -m bench.start
	$(RUN)/python -m bench.scale
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.cells
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.objectives
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.lattice
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.pointer
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.experts
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.conv_s2s
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.captions
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.lips
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.pixels
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.waves
	OMP_NUM_THREADS=1 $(RUN)/python -m bench.bert
	$(RUN)/python -m bench.page

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
