# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .stamps
# Every file is checked against the hashes in locks/. torch has several builds, so it is pinned by version alone; the
# same holds for what another platform needs beyond the locks.
LOCKED := $(BIN)/pip install --quiet --require-hashes --no-deps --no-build-isolation
OWN := $(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable

.PHONY: demo test test-fast lint types imports unit bench figures mutants browser sbom audit docs clean

demo: $(STAMPS)/core
	$(BIN)/cogstage demo --out demo

test: $(STAMPS)/all browser lint types imports unit

lint:
	$(BIN)/ruff check src tests benchmarks scripts examples
	$(BIN)/ruff format --check src tests benchmarks scripts examples

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports --no-cache

unit:
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# For daily work: no browser, database server, Spark, torchrun, nor anything else that takes long.
test-fast: $(STAMPS)/all
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q -m "not slow and not service"

# Measure the figures of the documentation again, those under twenty minutes; DATA names the literature folder.
figures: $(STAMPS)/all
	$(BIN)/python -m benchmarks figures $(if $(DATA),--data $(DATA))

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks --quick all

mutants: $(STAMPS)/all
	$(BIN)/python scripts/mutants.py

# The documentation site in site/, from docs/; a broken link or a page outside the navigation is an error.
docs: $(STAMPS)/core
	$(LOCKED) --requirement locks/docs.txt
	$(BIN)/python scripts/reference_pages.py
	$(BIN)/python scripts/release_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What is installed, with versions and licences, as a CycloneDX file for those who must check it.
sbom: $(STAMPS)/core
	$(LOCKED) --requirement locks/sbom.txt
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.json $(BIN)/python

# Known vulnerabilities of the locked versions. Needs the network; without it, says so and skips.
audit: $(STAMPS)/core
	$(LOCKED) --requirement locks/sbom.txt
	PATH="$(BIN):$$PATH" sh scripts/audit.sh locks/*.txt

# Chromium for the pages, PostgreSQL for the study's second store, Java for Spark: installed where that is possible,
# named among the skips at the end of the test run where it is not.
browser:
	@sh scripts/system_packages.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --requirement locks/build.txt

$(STAMPS)/core: pyproject.toml constraints.txt locks/core.txt | $(VENV)/bin/python
	$(LOCKED) --requirement locks/core.txt
	$(OWN) .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/all: pyproject.toml constraints.txt locks/core.txt locks/test.txt | $(VENV)/bin/python
	$(LOCKED) --requirement locks/core.txt --requirement locks/test.txt
	$(OWN) ".[spark,baselines,postgres,tensorboard,mcp,docs,test]"
	@mkdir -p $(STAMPS) && touch $@ $(STAMPS)/core

$(STAMPS)/bench: $(STAMPS)/all
	$(LOCKED) --requirement locks/bench.txt
	@touch $@

clean:
	rm -rf $(VENV) $(STAMPS) demo artefacts build dist site sbom.json src/*.egg-info
