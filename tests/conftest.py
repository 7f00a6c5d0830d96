"""What holds for all tests, which share a machine with each other and with others."""

import gc
import os
import signal
import tempfile
from pathlib import Path

import pytest
import warm
from hypothesis import settings

import sf  # noqa: F401  it sets variables for torch, which what is warm has read
from sf.system.messages import said_to

_TESTS = Path(__file__).parent
_ROOMS_OF_RUNS = ("training", "users", "tools", "ranks")

gc.disable()  # imports and what is collected leave no garbage, and looking for it takes a fifth of their time


def pytest_collection_modifyitems(items):
    """Rooms with whole runs come first, so that the short tests fill what is left of each process at the end."""
    items.sort(key=lambda item: item.path.relative_to(_TESTS).parts[0] not in _ROOMS_OF_RUNS)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


# A shell without job control starts background jobs with SIGINT ignored, which every process of a test would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# For torch, here and in every process that a test starts: the networks are tiny. It is read when torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # as ranks have it, which else could not be started warm

# What runs remember of a user's own code, here and in every process that a test starts, is no user's.
_state_home = tempfile.TemporaryDirectory(prefix="sf-tests-")
os.environ["XDG_STATE_HOME"] = _state_home.name

warm.begin()

settings.register_profile("shared_machine", deadline=None)  # no test is timed
settings.load_profile("shared_machine")


@pytest.fixture
def said():
    """What the user is told in this test."""
    sentences = []
    with said_to(sentences.append):
        yield sentences
