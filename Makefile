# Every target makes its own environment in .venv and installs what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint format bench clean

demo: $(VENV)/.core
	$(BIN)/aope demo --output demo-output

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/statistic.py
	$(BIN)/python benchmarks/program.py
	$(BIN)/python benchmarks/memory.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) --editable ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/.core
	$(PIP) --editable ".[lint]"
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) --editable ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) demo-output
