# Everything a new machine needs is python3 (3.11 or later, with venv), make and git.
# Each target sets up what it needs first; the second time it starts at once.

PYTHON ?= python3
UV_VERSION := 0.13.7
VENV := .venv
BIN := $(VENV)/bin
SYNCED := $(VENV)/.synced
KAFKA := kafka

# uv works with the Python that made .venv, in .venv, and fetches no other.
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := $(VENV)
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-kafka kafka bench bench-long lint docs clean java
.DELETE_ON_ERROR:

help:
	@echo "make demo      overload a stream on this machine, and keep its latency bound; writes demo/report.html"
	@echo "make test      run the tests and the examples in the docstrings"
	@echo "make test-all  run the slow tests too"
	@echo "make test-kafka  run the tests that need a Kafka broker, which Maven brings"
	@echo "make kafka     fetch that broker"
	@echo "make bench     run the benchmarks of the engine and of shedding"
	@echo "make bench-long  run those that take long: on Spark, and made streams beside recorded ones"
	@echo "make lint      check style, types and the layers"
	@echo "make docs      check that the documentation's examples run and its links lead somewhere"
	@echo "make clean     remove what the other targets made, .venv included"

demo: $(SYNCED)
	@$(BIN)/penstock demo

test: $(SYNCED)
	@$(BIN)/pytest -n 2 --dist loadgroup --doctest-modules tests src

test-all: $(SYNCED)
	@$(BIN)/pytest -n 2 --dist loadgroup --doctest-modules -m "not kafka" tests src

test-kafka: $(SYNCED)
	@$(BIN)/pytest -n 2 --dist loadgroup -m "$(KAFKA)" tests

kafka: $(SYNCED)
	@$(BIN)/python -m tests.spark.kafka.broker

bench: $(SYNCED)
	@$(call benchmarks,parse kernel hooks cold_start snapshot shedding)

bench-long: $(SYNCED)
	@$(call benchmarks,spark spark_shedding data)

benchmarks = failed=; for name in $(1); do \
	  echo "== $$name"; $(BIN)/python "benchmarks/$$name.py" || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "bars missed:$$failed" >&2; exit 1; }

lint: $(SYNCED)
	@echo "ruff check";   $(BIN)/ruff check --quiet
	@echo "ruff format";  $(BIN)/ruff format --check --quiet
	@echo "mypy";         $(BIN)/mypy
	@echo "lint-imports"; $(BIN)/lint-imports --no-logo

docs: $(SYNCED)
	@$(BIN)/pytest --doctest-modules src tests/test_docs.py

clean:
	@rm -rf $(VENV) build dist .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# --- set-up -------------------------------------------------------------------------------------------------

# A company's network may have certificates of its own, which only the system knows: hence the second try.
SYNC := $(BIN)/uv sync --frozen --quiet --python $(BIN)/python

$(SYNCED): pyproject.toml uv.lock $(VENV)/.uv-$(UV_VERSION)
	@echo "set-up: installing the locked dependencies"
	@$(SYNC) 2>/dev/null || $(SYNC) --system-certs
	@$(MAKE) --no-print-directory java
	@touch $@

$(VENV)/.uv-$(UV_VERSION): | $(BIN)/python
	@echo "set-up: installing uv $(UV_VERSION)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "penstock needs Python 3.11 or later, and $(PYTHON) is `$(PYTHON) -c 'import platform; print(platform.python_version())'`." >&2; \
	  echo "If a later one is installed, name it: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: its venv module is missing." >&2; \
	  echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "set-up: making $(VENV) with `$(PYTHON) --version`"
	@$(PYTHON) -m venv $(VENV)

# Spark needs a Java: the machine's, or the one that comes with the locked dependencies.
java:
	@echo "set-up: `$(BIN)/python -m penstock.spark.java`"
