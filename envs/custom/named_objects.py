"""Objects by the name `module:Name`: environments, encoders and models that need no registration."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from sf.envs.errors import UsageError, place_of

# Their helpers make functions that other packages hand out as their own, as `parallel_env` of most of PettingZoo's kin.
_ENV_LIBRARIES = ("gymnasium", "pettingzoo")


def split(reference: str, wanted_by: str) -> tuple[str, str]:
    """The module and the name in it. wanted_by: what the error begins with. Raises ValueError for another form."""
    module_name, _, name = reference.partition(":")
    if name and (module_name.endswith(".py") or "/" in module_name):
        raise UsageError(
            f"{wanted_by} names a file: write {_module_of_path(module_name)}:{name}, as one would import it, and start "
            "from the folder that it would be imported from"
        )
    if not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(f"{wanted_by} is not of the form module:Name: write it as in my_module:MyClass")
    return module_name, name


def meant(reference: str) -> str | None:
    """Returns what somebody may have meant who named a file of the working directory, or what is in it, without a
    colon; None: no such file is there."""
    module_name = _module_of_path(reference)
    if os.path.isfile(module_name.replace(".", os.sep) + ".py"):
        return f"{module_name}:MyClass, with the name of the class"
    module_name, _, name = module_name.rpartition(".")
    is_file = module_name and os.path.isfile(module_name.replace(".", os.sep) + ".py")
    return f"{module_name}:{name}" if is_file else None


def import_module(name: str, wanted_by: str) -> ModuleType:
    """Import a module, also one in the working directory, which is not on the path of a command.

    wanted_by: what the error begins with. Raises ValueError where the module, or one that it imports, is not there,
    is no Python or calls sys.exit, and for a module of Python itself, whose functions run programs and remove files.
    """
    if _top_level(name) in sys.stdlib_module_names:
        raise UsageError(f"{wanted_by}: {name} is a module of Python itself: name one of your own, or of a package")
    with suppress(FileNotFoundError):  # an environment has moved this process to a directory that is gone
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise UsageError(f"{wanted_by}: {name} cannot be imported ({place}: {error.msg}): fix that line") from error
    except SystemExit as error:
        called_at = place_of(error, _top_level(name))
        where = f" ({called_at})" if called_at else ""
        raise UsageError(
            f"{wanted_by}: importing {name} calls sys.exit{where}: put what it does as a program under "
            "`if __name__ == '__main__':`"
        ) from error
    except ImportError as error:
        raise UsageError(
            f"{wanted_by}: {name} cannot be imported ({error}): check the name, install what is missing, or start from "
            "the folder that it is in"
        ) from error


def file_of_module(name: str) -> str | None:
    """Returns where the top-level package of a module would be imported from; None: there is none, so nothing would be.

    Nothing is imported here.
    """
    top = _top_level(name)
    try:
        spec = importlib.util.find_spec(top) or PathFinder.find_spec(top, [os.getcwd()])
    except ValueError:  # one that is imported already, and from no file: such as __main__
        return top
    if spec is None:
        return None
    if spec.has_location and spec.origin:
        return os.path.realpath(spec.origin)
    return ":".join(map(os.path.realpath, spec.submodule_search_locations or []))  # of a package without __init__.py


def factory(
    module: ModuleType, name: str, wanted_by: str, is_wanted: Callable[[type], bool], wanted: str
) -> Callable[..., Any] | None:
    """The class or function `name` of the module, if it is one that makes what is wanted; None where it has none.

    is_wanted: whether a class is. wanted: what that is, for the error. A function, or another callable, must be defined
    in the same package: what the module only imported is no factory of its own. Raises ValueError for anything else.
    """
    found = getattr(module, name, None)
    if not callable(found):
        return None
    made_by = innermost(found)
    if isinstance(made_by, type):
        if is_wanted(made_by):
            return found
        raise UsageError(f"{wanted_by}: {name} is a class, but not {wanted}: name one that is")
    home = _top_level(getattr(made_by, "__module__", None) or "")
    if home not in (_top_level(module.__name__), *_ENV_LIBRARIES):
        raise UsageError(
            f"{wanted_by}: {name} is not defined in {module.__name__}: name the module that defines it, or write a "
            f"function in {module.__name__} that calls it"
        )
    return found


def did_you_mean(module_name: str, name: str, known: Collection[str]) -> str:
    """Returns the end of a sentence about an unknown name: the nearest one of the module, if any is near."""
    nearest = difflib.get_close_matches(name, [each for each in known if not each.startswith("_")], n=1)
    return f"; did you mean {module_name}:{nearest[0]}?" if nearest else ""


def innermost(factory: Any) -> Any:
    """Returns the class or function inside of partials."""
    while isinstance(factory, partial):
        factory = factory.func
    return factory


def _module_of_path(path: str) -> str:
    """envs/my_env.py, or ./envs/my_env.py, is envs.my_env; one that begins elsewhere is its last part."""
    parts = [part for part in path.removesuffix(".py").split("/") if part not in ("", ".")]
    return ".".join(parts[-1:] if path.startswith(("/", "~")) or ".." in parts else parts)


def _top_level(module_name: str) -> str:
    return module_name.partition(".")[0]
