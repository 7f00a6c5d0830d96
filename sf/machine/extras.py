"""How the optional parts of the package are installed: one wording for every message."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """What to type, in a clone or with a wheel, to get the extra of that name of pyproject.toml."""
    return f"pip install '.[{extra}]', or from a wheel pip install 'sf_appo-VERSION-py3-none-any.whl[{extra}]'"
