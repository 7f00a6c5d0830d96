import os
import sys

import pytest

_SET_BY_TORCH = "TORCHINDUCTOR_CACHE_DIR"


@pytest.fixture(autouse=True)
def _commands_start_warm():
    """Torch sets a variable of its own in some tests, with which those after them would start commands cold."""
    before = os.environ.get(_SET_BY_TORCH)
    yield
    if before is None:
        os.environ.pop(_SET_BY_TORCH, None)


@pytest.fixture
def status_of(monkeypatch):
    """A function: runs the main function of a command in this process with these words, and returns its status."""

    def run(main, *words):
        monkeypatch.setattr(sys, "argv", ["a-command", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            return end.code or 0
        return 0

    return run
