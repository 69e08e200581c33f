# Commands for contributors. `make` without a target lists them.

PYTHON ?= python3
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# Packages that only checks, tests and the documentation site need: Spark, PostgreSQL, a browser driver.
CHECK_STAMP := $(VENV)/.check-setup-done

# Python keeps compiled modules, even where the environment forbids it: without them, each process that a test starts
# compiles the package again. `make clean` removes them.
unexport PYTHONDONTWRITEBYTECODE

# Folders that lint checks.
SOURCES := src tests examples scripts papers $(wildcard benchmarks)
# Folders with scripts of the browser.
SCRIPTS := clients src/sfumato/server/pages tests/browser

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint docs bench reproduce soak clean
.DELETE_ON_ERROR:

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Variables: PYTHON, the interpreter of the environment (now $(PYTHON)); JOBS, the number of parallel test processes (now $(JOBS))."

setup: $(STAMP)  ## Create .venv with the pinned packages and an editable installation of Sfumato.
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
	@echo "setup: installing the versions of requirements/check.txt, for checks, tests and the documentation (Spark takes 450 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/check.txt
	@touch $@

demo: setup  ## Set up, then run the demonstration.
	$(BIN)/python examples/demo.py

test: lint  ## Lint, then run every test and doctest, in parallel.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

quick: setup $(CHECK_STAMP)  ## Run the tests that need little time and no other program, in parallel.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m quick tests

lint: setup $(CHECK_STAMP)  ## Check style, formatting and types.
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/oxfmt --check $(SCRIPTS)
	$(BIN)/oxlint --quiet --deny-warnings $(SCRIPTS)
	$(BIN)/mypy --strict

docs: setup $(CHECK_STAMP)  ## Check the documentation against the code, take screenshots, and build the site in build/site.
	$(BIN)/python -m pytest tests/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "docs: open build/site/index.html"

bench: setup  ## Run the benchmarks.
	$(BIN)/python -m benchmarks

reproduce: setup  ## Repeat the experiments of the papers, and write them to build/papers.
	$(BIN)/python -m papers --all -o build/papers

soak: setup $(CHECK_STAMP)  ## Run the tests with many more random cases; this is slow.
	$(BIN)/python -m pytest -n $(JOBS) --soak tests

clean:  ## Remove everything that the other targets create: .venv, caches and builds.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(SOURCES) -type d -name __pycache__ -prune -exec rm -rf {} +
