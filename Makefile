# Every target makes its own environment (.venv) first; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

# One thread per process: two test workers on two cores would otherwise fight for them.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Processes that `make paper` uses.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test slow check format bench bench-quick paper paper-quick docs docs-figures

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## the main job: find the robust optimum of the double-peak problem
	@$(BIN)/python -m airbo.demo

test: $(READY)  ## all fast tests and doctests
	@$(TEST_ENV) $(BIN)/python -m pytest -n 2

slow: $(READY)  ## the tests that take minutes: whole optimization loops
	@$(TEST_ENV) $(BIN)/python -m pytest -n 2 -m slow

check: $(READY)  ## format, lint, types and import direction, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## format the code and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## measure speed, memory and accuracy, as ratios within one run (a quarter of an hour)
	@$(TEST_ENV) $(BIN)/python -m benchmarks.run

bench-quick: $(READY)  ## the same with fewer settings and rounds (a minute)
	@$(TEST_ENV) $(BIN)/python -m benchmarks.run --quick

paper: $(READY)  ## rerun the whole evaluation of the paper (hours; goes on where it was stopped)
	@$(TEST_ENV) $(BIN)/python -m experiments run all --jobs $(JOBS)
	@$(BIN)/python -m experiments plot all

paper-quick: $(READY)  ## a small version of all of it, in build/paper-quick (minutes)
	@$(TEST_ENV) $(BIN)/python -m experiments run all --quick --jobs $(JOBS) --results build/paper-quick
	@$(BIN)/python -m experiments plot all --quick --results build/paper-quick --images build/paper-quick

docs: $(READY)  ## build the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-figures: $(READY)  ## draw the pictures of the README and the docs
	@$(BIN)/python docs/figures.py
	@$(BIN)/python docs/problem_figures.py
	@$(BIN)/python docs/calibrate_example.py

$(READY): pyproject.toml constraints.txt
	@echo "Making $(VENV): installing airbo and the pinned versions of what it needs (a few minutes, once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "airbo needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[test,dev,plot,docs]"
	@touch $@
	@echo "$(VENV) is ready."
