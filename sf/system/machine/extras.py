"""The optional parts of the package: whether one is installed, and one wording for how to install it."""

from __future__ import annotations

from importlib.util import find_spec


def how_to_install(extra: str) -> str:
    """What to type, in a clone or with a wheel, to get the extra of that name of pyproject.toml."""
    return f"pip install '.[{extra}]', or from a wheel pip install 'sf_appo-VERSION-py3-none-any.whl[{extra}]'"


def require(extra: str, *modules: str, purpose: str) -> None:
    """Raises ValueError, before an import, if a module is missing. purpose: what needs it, the message's subject."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ValueError(f"{purpose} needs {' and '.join(missing)}: {how_to_install(extra)}")
