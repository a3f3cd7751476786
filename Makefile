# `make demo` and `make test` are each enough by themselves on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV := .venv
SECONDS ?= 60
BIN := $(VENV)/bin
ROOMS := front lift factorize verify artifacts stream counters experiments
# Folders are listed too: deleting a file touches its folder.
SOURCES := pyproject.toml README.md LICENSE \
	$(shell find $(ROOMS) -name __pycache__ -prune -o \( -type d -o -name '*.py' -o -name '*.npz' -o -name '*.json' -o -name py.typed \) -print)

.DEFAULT_GOAL := help
.PHONY: help demo test spark-test java soak fuzz lint format site wheel sbom clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.installed-demo ## find, prove, lift and stream: a private count of a year of flights
	$(BIN)/trilift demo

test: $(VENV)/.installed-test ## the whole test suite against an installed copy
	.ci/suite $(BIN)/python

spark-test: java $(VENV)/.installed-test-spark ## the tests of Spark (needs Java 17 or newer)
	.ci/suite $(BIN)/python tests/counters/spark tests/experiments/test_spark_scaling.py --numprocesses=0

java:
	@.ci/java

soak: $(VENV)/.installed-test ## 10^8 steps in flat memory, 1000 kills, state machines: an hour; goes on where stopped
	$(BIN)/python -m trilift.experiments.trust.soak --folder soak-output
	$(BIN)/trilift reproduce trust --part kills --full --out soak-output
	TRILIFT_LONG=1 $(BIN)/python -m pytest -q tests/counters/test_machines.py

fuzz: $(VENV)/.installed-fuzz ## every reader of files under atheris, SECONDS=60 each; what is found lies in fuzz-output
	$(BIN)/python -m trilift.experiments.trust.fuzz --seconds $(SECONDS) --folder fuzz-output $(TARGETS)

lint: $(VENV)/.installed-dev ## ruff and mypy --strict (or ONLY="check format types", any of them)
	.ci/lint $(BIN)/python $(ONLY)

format: $(VENV)/.installed-dev ## let ruff rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

site: $(VENV)/.installed-docs ## the documentation as a site in site/; nothing in it loads anything from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -P -m mkdocs build --strict

wheel: $(BIN)/python ## build dist/trilift-*.whl
	.ci/wheel $(BIN)/python dist

sbom: $(VENV)/.installed-dev ## write dist/trilift.cdx.json: the SBOM (CycloneDX) of a plain install
	.ci/sbom $(BIN)/python dist/trilift.cdx.json

clean: ## remove everything that make and the tools have made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo-output soak-output fuzz-output site
	find $(ROOMS) tests -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: $(SOURCES) .ci/install .ci/wheel | $(BIN)/python
	.ci/install $(BIN)/python $*
	@touch $@
