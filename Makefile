# Everything a fresh machine with Python 3.11 and Java 17 needs: `make test`, `make demo`.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Debian keeps servers in sbin, which is not on every user's PATH.
export PATH := $(PATH):/usr/sbin:/usr/local/sbin

.PHONY: help test compiled test-all demo docs lint format setup mariadb java s3 azure browser clean
.DEFAULT_GOAL := help

help: ## say what each target does
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

# Tests of one file share lakes and what Spark has read. Files come in the order that tests/conftest.py gives them.
# One process more than two cores have: each waits for its Spark, its servers and its disk now and then.
PROCESSES ?= 3
PYTEST := $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder

test: setup mariadb java s3 lint compiled ## set up, lint, type-check and run the tests that every change has to pass
	$(PYTEST)

test-all: setup mariadb java s3 azure browser lint compiled ## the same with every test in full: all catalogs through Spark, slow tests, many more tries
	$(PYTEST) --full

# Every Spark worker imports the package, also where PYTHONDONTWRITEBYTECODE keeps Python from keeping what it compiled.
compiled: setup
	@$(BIN)/python -m compileall -q src

demo: setup java ## set up and run examples/demo.py
	$(BIN)/python examples/demo.py

docs: setup ## build the site of documents into site/; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP) ## make the virtual environment

# The lock is complete, so nothing has to be resolved, and several pips at once get it in a third of the time.
$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penstock needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	xargs -n 10 -P 4 $(BIN)/python -m pip install --quiet --no-deps --no-compile < requirements.lock
	$(BIN)/python -m compileall -q -j 2 -x /tests/ $(VENV)/lib >/dev/null || true
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[dev]' --constraint requirements.lock
	touch $@

mariadb: ## install MariaDB's server program (not its service) when there is none
	@command -v mariadbd >/dev/null || { \
		command -v apt-get >/dev/null || { echo "the tests need MariaDB: install its server so that mariadbd is on PATH" >&2; exit 1; }; \
		root=; [ "$$(id -u)" = 0 ] || { command -v sudo >/dev/null && root=sudo; }; \
		$$root apt-get update && \
		$$root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends mariadb-server-core mariadb-client-core; }

s3: setup java ## build the S3 server of the tests, where there is Go, and fetch what Spark reads S3 with: once
	@PYTHONPATH=tests $(BIN)/python -m support.s3_server

azure: setup java ## fetch the Azure server of the tests, where there is npm, and what Spark reads Azure with: once
	@PYTHONPATH=tests $(BIN)/python -m support.azure_server

browser: setup ## install Chromium, for the tests of the explorer's pages, when there is none
	@PYTHONPATH=tests $(BIN)/python -m support.browser || { \
		command -v apt-get >/dev/null || { echo "no Chromium: the tests in a browser are skipped" >&2; exit 0; }; \
		root=; [ "$$(id -u)" = 0 ] || { command -v sudo >/dev/null && root=sudo; }; \
		$$root apt-get update && \
		$$root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; }

java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { echo "Spark needs Java 17: install it, or set JAVA_HOME" >&2; exit 1; }

clean: ## remove everything that make made
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find src tests examples benchmarks -name __pycache__ -type d -exec rm -rf {} + 2>/dev/null || true
