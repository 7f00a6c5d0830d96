"""Installed packages that may register environments. None is imported here."""

from __future__ import annotations

import re
from importlib import metadata


def users_of_gymnasium() -> set[str]:
    """The modules of those that depend on Gymnasium or gym."""
    return {
        module
        for module, distributions in metadata.packages_distributions().items()
        if module.isidentifier() and any(map(_needs_gymnasium, distributions))
    }


def _needs_gymnasium(distribution: str) -> bool:
    requirements = metadata.requires(distribution) or []
    return distribution != "sf-appo" and any(
        re.match(r"gym(nasium)?\b", each) and "extra ==" not in each for each in requirements
    )
