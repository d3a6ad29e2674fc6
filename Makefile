# Every target makes its own environment in .venv and installs what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow test-fast test-lowest lint format types pictures docs notebooks bench trust arena clean

demo: $(VENV)/.core
	$(BIN)/aope demo --output demo-output

# Units, the command line, hostile input, and every page of the documentation.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10 -m "not slow"

# Statistics over many data sets, figures and training, which take as long again: .ci/run runs both.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10 -m "slow"

# Units and a few seeds of each kind; no statistics over many data sets, figures, training or pages.
test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not docs"

# The same with the lowest versions that pyproject.toml declares, in an environment of its own.
test-lowest: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable ".[test]"
	.venv-lowest/bin/python -m pytest -n auto --dist worksteal -m "not slow and not docs"

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/.lint
	$(BIN)/mypy

# Draws the pictures of docs/images again, by the code on the pages.
pictures: $(VENV)/.test
	AOPE_PICTURES=write $(BIN)/python -m pytest -n auto tests/test_docs.py -k page_runs

# The website, into docs/_build/html. What is broken fails: links, anchors, references, pictures, pages in no section, docstrings.
# Made anew every time: what was broken before is not forgotten.
docs: $(VENV)/.docs
	rm -rf docs/_build
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --nitpicky --quiet docs docs/_build/html

# Runs the notebooks and stores their outputs; d3rlpy pins an old Gymnasium and has an environment of its own.
notebooks: $(VENV)/.test
	AOPE_NOTEBOOKS=write $(BIN)/python -m pytest tests/test_notebooks.py
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-d3rlpy
	$(BIN)/uv pip install --quiet --python .venv-d3rlpy/bin/python --editable ".[plots]" d3rlpy torch==2.13.0 nbclient ipykernel pytest hypothesis
	AOPE_NOTEBOOKS=write .venv-d3rlpy/bin/python -m pytest tests/test_notebooks.py -k fqe

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/statistic.py
	$(BIN)/python benchmarks/program.py
	$(BIN)/python benchmarks/memory.py

# Every task of the table of trust once.
trust: $(VENV)/.test
	$(BIN)/aope trust --quick

# Every method of the arena once on every problem.
arena: $(VENV)/.test
	$(BIN)/aope arena --quick

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

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) --editable ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-d3rlpy demo-output docs/_build
