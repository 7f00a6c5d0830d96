# make train: from a fresh clone to a trained Doom agent. make test: every check. make docs: the documentation as a site.
# All set up .venv where it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: train test lint bench completion docs clean

train: $(INSTALLED)
	$(BIN)/sf-train --env doom_basic --restart_behavior restart

test: lint $(VENV)/.docs
	$(BIN)/python -m pytest tests --numprocesses auto --maxprocesses 4 --dist worksteal

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/sf-bench --env doom_battle

completion: $(INSTALLED)
	$(BIN)/python -m sf.completion --shell bash

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html (for the search: python -m http.server --directory site)"

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,battle,plot]'
	touch $@

clean:
	rm -rf $(VENV) site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
