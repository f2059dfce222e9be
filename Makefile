# `make run` and `make test` each do all set-up themselves on a machine with Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test check docs dist install clean

run: $(INSTALLED)
	$(BIN)/python examples/tour.py

test: $(INSTALLED)
	$(BIN)/pytest -q -n 2 --dist worksteal

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -m "not slow"

docs: $(INSTALLED)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/docs
	@echo 'The documentation is in build/docs: open build/docs/index.html in a browser.'

# builds wheel and source archive, and tries the wheel with each interpreter: make dist PYTHONS="python3.11 python3.13"
PYTHONS ?= $(PYTHON)
dist: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt build twine
	$(BIN)/python tools/release.py $(PYTHONS:%=--python %)

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Onoma needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
