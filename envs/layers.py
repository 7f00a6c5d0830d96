"""What lies around an environment: wrappers, those of its package and ours, and the classes that adapt it."""

from __future__ import annotations

from typing import Any

_MOST = 50


def layers(env: Any) -> tuple[str, ...]:
    """The names of the classes, outermost first, that of the environment itself last.

    A layer keeps what it is around as `env` or `_env`.
    """
    found: list[str] = []
    while env is not None and len(found) < _MOST:
        found.append(type(env).__name__)
        inside = [getattr(env, "__dict__", {}).get(name) for name in ("env", "_env")]
        env = next((each for each in inside if hasattr(each, "reset") and hasattr(each, "step")), None)
    return tuple(found)
