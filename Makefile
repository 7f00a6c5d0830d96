# make train: from a fresh clone to a trained Doom agent. make test: every check but the long ones. make test-long: what
# learns, the commands of the pages, and runs on a stand-in for a GPU. make docs: the documentation as a site. make
# release: wheel and source distribution in dist/, checked. All set up .venv where it is missing.
# make bench-learning: what this project and its peers learn, task by task.
# Variables: PYTHON, which makes .venv; TRAIN_FLAGS, more flags of sf-train for make train; TASKS, of make bench-learning.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

SYNCHRONOUS := $(addprefix tests/training/test_run_lifetime.py::test_, \
	synchronous_runs_with_one_seed_give_the_same_weights_to_the_bit_and_the_same_score \
	a_synchronous_run_that_was_stopped_and_resumed_equals_one_that_was_not_to_the_bit)
# What is run once more on a stand-in for a GPU that does everything as late as a real one may (tests/late_gpu).
ON_LATE_GPU := $(addprefix tests/training/test_,alignment.py policies.py players_run.py supervision.py) $(SYNCHRONOUS) \
	$(addprefix tests/training/test_run_lifetime.py::test_,a_killed_parent_takes_every_process_with_it \
	for_a_learner_that_dies_before_its_last_checkpoint_the_parent_saves_what_it_remembered)
# What is run once more with the other kind of queues.
ON_FASTER_FIFO := tests/training/test_alignment.py $(SYNCHRONOUS) \
	tests/training/test_players_run.py::test_a_killed_run_keeps_its_league_and_leaves_nothing_behind
LATE_GPU := PYTHONPATH=tests/late_gpu SF_TEST_DEVICE=cuda
# Tests of whole runs wait for much of their time, so there is one process more than cores, and no more than 4.
NUM_PROCESSES = $(shell $(PYTHON) -c "import os; print(min(4, len(os.sched_getaffinity(0)) + 1))")
IN_PARALLEL = --numprocesses $(NUM_PROCESSES) --dist loadfile --no-loadscope-reorder
# Hundreds of processes import torch, each in half the time where Python may write down what it has compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: train test test-long lint compiled bench bench-learning docs release clean

train: $(INSTALLED)
	$(BIN)/sf-train --env doom_basic --restart_behavior restart $(TRAIN_FLAGS)

# The linters use one core. Beside them, what all processes of the tests would else compile, each for itself, is compiled.
test: $(VENV)/.docs
	$(MAKE) --jobs=2 lint compiled
	$(BIN)/python -m pytest tests -m "not long" $(IN_PARALLEL)

test-long: $(VENV)/.docs
	$(BIN)/python -m pytest tests -m long $(IN_PARALLEL)
	$(LATE_GPU) $(BIN)/python -m pytest $(ON_LATE_GPU) $(IN_PARALLEL)
	SF_TEST_QUEUES=faster_fifo $(BIN)/python -m pytest $(ON_FASTER_FIFO) $(IN_PARALLEL)

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

compiled: $(INSTALLED)
	$(BIN)/python tests/support/compile_ahead.py

bench: $(INSTALLED)
	$(BIN)/sf-bench --env doom_battle

bench-learning: $(VENV)/.bench-learning
	$(BIN)/python scripts/bench_learning.py $(if $(TASKS),--tasks $(TASKS))

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python scripts/documentation/check_site.py site
	@echo "open site/index.html"

release: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

$(VENV)/.release: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[release]'
	touch $@

$(VENV)/.bench-learning: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[bench-learning]'
	touch $@

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[docs]'
	touch $@

# pip compiles nothing: most of what is installed is never imported, and Python compiles the rest when it is.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev,battle,plot]'
	touch $@

clean:
	rm -rf $(VENV) site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
