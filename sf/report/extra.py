"""What the extra `plot` brings, and one sentence where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from sf.machine.extras import how_to_install

_LIBRARIES = ("matplotlib", "jinja2")


def require() -> None:
    """Raises ValueError where a library is missing. For before the import of what draws."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise ValueError(f"{' and '.join(missing)} is not installed: {how_to_install('plot')}")
