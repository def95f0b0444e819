# Every target first creates .venv and installs what that target needs, and nothing more.
# The file .venv/.installed-test, for example, marks that `pip install -e ".[test]"` has been run.
# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# One thread per process: two test workers on two cores would otherwise fight for them.
# Compiled modules are kept: tests start many interpreters.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
# Two workers, each with half of the files, so that what a file prepares is prepared once.
WORKERS := -n 2 --dist worksteal
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# Processes that `make paper` uses.
JOBS ?= 2
# Where the header of the site leads: the remote that this clone came from, if browsers can open it.
REPOSITORY_URL ?= $(filter https://%,$(basename $(shell git remote get-url origin 2>/dev/null)))
# What bench, paper and docs-figures need.
READY := $(INSTALLED)-experiments

.DEFAULT_GOAL := help
.PHONY: help demo test slow coverage lowest newest check format audit build lock \
	bench bench-quick paper docs docs-figures

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)-plot  ## the main job: find the robust optimum of the double-peak problem
	@$(BIN)/python examples/demo.py

test: $(INSTALLED)-test  ## all fast tests and doctests
	@$(TEST_ENV) $(BIN)/python -m pytest $(WORKERS)

slow: $(INSTALLED)-slow  ## tests that take minutes, or need Ray, Dask or Box2D
	@$(TEST_ENV) $(BIN)/python -m pytest $(WORKERS) -m "slow or needs"

coverage: $(INSTALLED)-test  ## which lines the fast tests run; the pages are in build/coverage
	@$(TEST_ENV) $(BIN)/python -m pytest $(WORKERS) --cov --cov-report=term:skip-covered --cov-report=html

lowest: $(INSTALLED)-lock  ## the fast tests with the lowest versions that pyproject.toml allows (.venv-lowest)
	@$(BIN)/uv venv -q --clear --python $(BIN)/python .venv-lowest
	@$(BIN)/uv pip install -q --python .venv-lowest --resolution lowest-direct -e ".[test]"
	@$(TEST_ENV) .venv-lowest/bin/python -m pytest $(WORKERS)

newest: $(INSTALLED)-lock  ## the fast tests with the newest versions available (.venv-newest)
	@$(BIN)/uv venv -q --clear --python $(BIN)/python .venv-newest
	@$(BIN)/uv pip install -q --python .venv-newest -e ".[test]"
	@$(TEST_ENV) .venv-newest/bin/python -m pytest $(WORKERS)

check: $(INSTALLED)-dev  ## format, lint, types and import direction, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)-dev  ## format the code and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

audit: $(INSTALLED)-audit  ## known vulnerabilities of the versions in constraints.txt (needs the internet)
	@$(BIN)/pip-audit --disable-pip --no-deps -r constraints.txt

build: $(INSTALLED)-slow  ## the wheel and the source archive, checked, in dist/
	@rm -rf dist
	@$(BIN)/python -m build
	@$(BIN)/twine check --strict dist/*

lock: $(INSTALLED)-lock  ## add what is missing to constraints.txt; `make lock UPGRADE=--upgrade` upgrades all versions
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --all-extras $(UPGRADE) \
		--no-annotate --no-header -o constraints.txt pyproject.toml
	@{ echo "# The lock file: the versions that airbo is developed and tested with, for every Python and platform."; \
		echo "# pip install -c constraints.txt -e . uses it; make lock writes it."; cat constraints.txt; } > .lock
	@mv .lock constraints.txt

bench: $(READY)  ## measure speed and memory of an ask (a quarter of an hour)
	@$(TEST_ENV) $(BIN)/python -m experiments.speed

bench-quick: $(READY)  ## the same with fewer settings and rounds (a minute)
	@$(TEST_ENV) $(BIN)/python -m experiments.speed --quick

paper: $(READY)  ## rerun the whole evaluation of the paper (hours; continues where it was stopped)
	@$(TEST_ENV) $(BIN)/python -m experiments all --jobs $(JOBS)

docs: $(INSTALLED)-docs  ## build the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 REPOSITORY_URL=$(REPOSITORY_URL) $(BIN)/properdocs build --strict

docs-figures: $(READY)  ## draw the pictures of the README and the docs, and run the tutorials
	@$(TEST_ENV) $(BIN)/python -m experiments.figures
	@$(TEST_ENV) $(BIN)/python -m experiments.figures.tutorials

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "airbo needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# One rule for all extras of pyproject.toml.
$(INSTALLED)-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing airbo[$*] into $(VENV), with the versions of constraints.txt ..."
	@$(PIP) -c constraints.txt -e ".[$*]"
	@rm -rf .mypy_cache  # mypy remembers which packages were missing
	@touch $@
