"""Objects by the name `module:Name`: environments, encoders and models that need no registration."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from sf.envs.errors import UsageError


def import_module(name: str, wanted_by: str) -> ModuleType:
    """Import a module, also from the working directory, which a command has not on its path.

    wanted_by: what the error begins with. Raises UsageError where the module, or one that it imports, is not there.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{wanted_by}: {name} cannot be imported ({error}): check the name, install what is missing, or start from "
            "the folder that it is in"
        ) from error


def attribute(module: ModuleType, name: str) -> Any:
    """The class or function `name` of the module; None where it has none."""
    found = getattr(module, name, None)
    return found if callable(found) else None
