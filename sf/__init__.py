"""Asynchronous PPO on one machine: `from sf import train`.

What is named here is imported when it is first asked for: every process imports this package, and few of them torch.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sf.__main__ import main
    from sf.api import train
    from sf.config import Config
    from sf.evaluation.play.policy import load_policy
    from sf.model.building import register_encoder, register_intrinsic, register_model
    from sf.run.startup.starting_flags import make_config

# A thread of PyTorch's that has nothing to do sleeps, in place of taking a core that another process needs. Its library
# reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_MODULES = {
    "Config": "sf.config",
    "load_policy": "sf.evaluation.play.policy",
    "main": "sf.__main__",
    "make_config": "sf.run.startup.starting_flags",
    "register_encoder": "sf.model.building",
    "register_intrinsic": "sf.model.building",
    "register_model": "sf.model.building",
    "train": "sf.api",
}

__all__ = [
    "Config",
    "load_policy",
    "main",
    "make_config",
    "register_encoder",
    "register_intrinsic",
    "register_model",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
