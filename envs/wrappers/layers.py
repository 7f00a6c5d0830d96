"""What lies around an environment: wrappers, those of its package and ours, and the classes that adapt it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MOST = 50


def layers(env: Any) -> tuple[str, ...]:
    """The names of the classes, outermost first, that of the environment itself last."""
    return tuple(type(each).__name__ for each in objects(env))


def objects(env: Any) -> Iterator[Any]:
    """The environment with all that is around it, outermost first.

    A layer keeps what it is around as `env` or `_env`.
    """
    num_found = 0
    while env is not None and num_found < _MOST:
        yield env
        num_found += 1
        inside = [getattr(env, "__dict__", {}).get(name) for name in ("env", "_env")]
        env = next((each for each in inside if hasattr(each, "reset") and hasattr(each, "step")), None)
