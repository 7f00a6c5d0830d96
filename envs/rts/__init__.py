"""Games of strategy: `rts_mini`, `rts_flag`, `rts_tower`, and the first two as matches of two players.

It needs the extra `rts`. For other trainers there are `RtsEnv` (Gymnasium) and `RtsParallelEnv` (PettingZoo).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sf.envs.rts.engine.units import UNITS, Unit
    from sf.envs.rts.env import RtsEnv, RtsParallelEnv
    from sf.envs.rts.replay import Replay

__all__ = ["UNITS", "Replay", "RtsEnv", "RtsParallelEnv", "Unit"]

_MODULES = {
    "RtsEnv": "env",
    "RtsParallelEnv": "env",
    "Replay": "replay",
    "UNITS": "engine.units",
    "Unit": "engine.units",
}


def __getattr__(name: str) -> Any:
    """Import Numba only when a name is asked for, since the record of the family is imported with `sf.envs`."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
