# On a fresh machine `make lab` and `make test` each create .venv, install what they need and do their work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0
ARGS ?=
PYTEST_WORKERS ?= 2

.PHONY: setup lab test test-all check lint types bench bench-verifiers clean

setup: $(VENV)/.installed

# pip takes the CPU build of torch from the index; the exact version keeps the figures of docs/LOG.md comparable.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet -e '.[all,dev]'
	touch $@

lab: setup  ## a real language model learns from a verified reward; ARGS='--seed 1 --out runs/lab-1'
	$(BIN)/verigrad lab $(ARGS)

test: setup  ## all tests but the slow ones
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m 'not slow' $(ARGS)

test-all: setup  ## the slow ones too
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest $(ARGS)

lint: setup
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench

types: setup
	$(BIN)/pyright

check: lint types test  ## what CI runs: lint, types, tests (recipes and README commands among them)

bench: setup  ## one table: rollouts, update, objectives; each writes its JSON beside it
	$(BIN)/python bench/rollout.py
	$(BIN)/python bench/update.py

bench-verifiers: setup  ## graders side by side on labelled cases; CASES=path/to/cases.jsonl
	$(BIN)/python bench/bench_verifiers.py $(CASES)

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
