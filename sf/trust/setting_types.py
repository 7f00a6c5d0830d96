"""Whether the settings in a file are of the kinds that the flags of these names take."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from sf.config import Config


def require_right_kinds(settings: Mapping[Any, Any], source: object) -> None:
    """Raises ValueError for a value of another kind. Names that are no flag are left to `Config.replace`."""
    for name, value in settings.items():
        kind = _kinds().get(name)
        if kind is not None and not _is_of(value, kind):
            raise ValueError(f"{source} has {name} {reprlib.repr(value)}, which is not what --{name} takes: mend it")


@functools.cache
def _kinds() -> dict[str, Any]:
    """By the name of the flag, as the dataclasses of `Config` have it."""
    parts = [type(getattr(Config(), part.name)) for part in dataclasses.fields(Config)]
    return {name: kind for part in parts for name, kind in typing.get_type_hints(part).items()}


def _is_of(value: Any, kind: Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_is_of(each, arguments[0]) for each in value)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if isinstance(value, float) and kind is int:
        return value.is_integer()  # as Python may have been told, 1e6
    return isinstance(value, int | float if kind is float else kind)
