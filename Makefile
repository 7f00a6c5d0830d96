# make train: from a fresh clone to a trained Doom agent. make test: every check. make docs: the documentation as a site.
# All set up .venv where it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# What is run once more on a stand-in for a GPU that does everything as late as a real one may (tests/late_gpu).
ON_LATE_GPU := tests/test_alignment.py tests/test_policies.py tests/test_supervision.py tests/test_run_lifetime.py \
	--deselect tests/test_run_lifetime.py::test_an_environment_that_always_raises_ends_the_run_with_its_traceback

.PHONY: train test lint bench completion docs clean

train: $(INSTALLED)
	$(BIN)/sf-train --env doom_basic --restart_behavior restart

test: lint $(VENV)/.docs
	$(BIN)/python -m pytest tests --numprocesses 4 --dist worksteal
	PYTHONPATH=tests/late_gpu SF_TEST_DEVICE=cuda $(BIN)/python -m pytest $(ON_LATE_GPU) --numprocesses 4 --dist worksteal

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
