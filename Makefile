# make train: from a fresh clone to a trained Doom agent. make test: every check. Both set up .venv where it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: train test lint bench completion clean

train: $(INSTALLED)
	$(BIN)/sf-train --env doom_basic --restart_behavior restart

test: lint
	$(BIN)/python -m pytest tests --numprocesses auto --maxprocesses 4 --dist worksteal

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/sf-bench --env doom_battle

completion: $(INSTALLED)
	$(BIN)/python -m sf.completion --shell bash

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,battle,plot]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
