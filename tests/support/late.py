"""The stand-in for `sf.system.gpu`, in this process."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch

from sf.system import gpu
from sf.system.processes.torch_runtime import configure

FOLDER = Path(__file__).parent.parent / "late_gpu"


def late_gpu():
    """A module of its own for each call."""
    spec = importlib.util.spec_from_file_location("late_gpu", FOLDER / "late_gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def devices_that_record():
    """For a parametrised fixture: the GPU, or where there is none the CPU with a stand-in."""
    return [pytest.param("cuda:0", marks=pytest.mark.gpu)] if torch.cuda.is_available() else ["cpu"]


def record_on(device, monkeypatch):
    """On the CPU a recording calls its function again."""
    if device == gpu.HOST:
        monkeypatch.setattr(gpu, "Recording", late_gpu().Recording)
    else:
        configure(device, num_threads=1, deterministic=False)  # float32 that is float32


def environment():
    """Of a process that takes it for `sf.system.gpu`, and so do its children."""
    path = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
