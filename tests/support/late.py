"""The stand-in for `sf.gpu`, in this process."""

import importlib.util
import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "late_gpu"


def late_gpu():
    """A module of its own for each call."""
    spec = importlib.util.spec_from_file_location("late_gpu", FOLDER / "late_gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment():
    """Of a process that takes it for `sf.gpu`, and so do its children."""
    path = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
