import sys

import pytest


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
