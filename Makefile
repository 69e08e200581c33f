# Everything a contributor runs. `make` alone lists the targets.

PYTHON ?= python3
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# What only checks, tests and the documentation site need: Spark, PostgreSQL, a browser's driver.
CHECK_STAMP := $(VENV)/.check-setup-done

# What lint reads.
SOURCES := src tests examples scripts $(wildcard benchmarks)

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint docs bench soak clean
.DELETE_ON_ERROR:

help:  ## List the targets (this text).
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Variables: PYTHON (now: $(PYTHON)) makes the environment; JOBS (now: $(JOBS)) test processes run at once."

setup: $(STAMP)  ## Make .venv with the pinned packages and Sfumato itself, editable.
	@echo "setup: ready; the environment is in $(VENV)"

$(STAMP): pyproject.toml requirements/lock.txt scripts/make-venv
	@scripts/make-venv "$(PYTHON)" "$(VENV)"
	@echo "setup: installing the versions of requirements/lock.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/lock.txt
	@echo "setup: installing Sfumato, editable"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m pip check
	@touch $@

$(CHECK_STAMP): $(STAMP) requirements/check.txt
	@echo "setup: installing requirements/check.txt, which only checks, tests and the documentation need (Spark is large: 450 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/check.txt
	@touch $@

demo: setup  ## Set up, then run the demonstration.
	$(BIN)/python examples/demo.py

test: lint  ## Lint, then run every test and doctest, in parallel.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

quick: setup $(CHECK_STAMP)  ## Run the tests that need no other program and little time, in parallel.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m quick tests

lint: setup $(CHECK_STAMP)  ## Check style, formatting and types.
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy --strict

docs: setup $(CHECK_STAMP)  ## Check the documentation against the code, take screenshots, and build the site in build/site.
	$(BIN)/python -m pytest tests/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "docs: open build/site/index.html"

bench: setup  ## Run the benchmarks.
	$(BIN)/python -m benchmarks

soak: setup $(CHECK_STAMP)  ## Run the tests with many more random cases; this takes long.
	$(BIN)/python -m pytest -n $(JOBS) --soak tests

clean:  ## Remove everything the other targets made: .venv, caches and builds.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(SOURCES) -type d -name __pycache__ -prune -exec rm -rf {} +
