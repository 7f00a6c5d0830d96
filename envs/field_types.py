"""Values are checked against the types of a dataclass's fields, whether they come from YAML, a command line or Python.

Each dataclass of flags calls `check_fields` first in its `__post_init__`; `checked` does the same for flags by name,
before a dataclass is made of them. A value that can stand for the type is converted, and any other is a ValueError:

int          a whole number, also as 1e6, "1e6" (YAML 1.1 reads 1e6 as text) or a NumPy number; never a bool
float        a finite number, also an int, the text of one, or a NumPy number; never a bool
bool         True or False, also NumPy's; never a text or a number
str          a text or a path; of a field with the metadata AS_JSON (also in a tuple) a mapping, and of one with
             AS_JSON_LIST a list, which are kept as JSON
Literal      one of the texts
X | None     X; None, also as the text "None", as the command line has it
tuple        a list, a tuple or a flat NumPy array of values; a single value is a tuple of one
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import os
import types
import typing
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

import numpy as np

from sf.envs.errors import UsageError

_JSON, _JSON_LIST = "JSON", "JSON list"
AS_JSON, AS_JSON_LIST = {"keeps": _JSON}, {"keeps": _JSON_LIST}
_KEPT_AS_JSON = {_JSON: Mapping, _JSON_LIST: list | tuple}
_SHOWN_AS_JSON = {
    _JSON: ("a JSON object", "a mapping of names to what JSON can hold"),
    _JSON_LIST: ("a JSON list", "a list of what JSON can hold"),
}
_SHOWN_CHARACTERS = 80
_NUMBERS = {int: ("a whole number", "whole numbers"), float: ("a finite number", "finite numbers")}
_NAMES = {**_NUMBERS, str: ("a text", "texts"), bool: ("true or false", "true or false")}


class _WrongTypeError(Exception):
    """A value is not of a type; the text, if any, says more."""


def check_fields(instance: Any) -> None:
    """Convert the fields of a frozen dataclass to their types. Raises ValueError for the first that cannot be."""
    kind: Any = type(instance)
    for name, hint in _hints(kind).items():
        given = getattr(instance, name)
        value = as_type(name, given, hint)
        if value is not given:
            object.__setattr__(instance, name, value)


def require(rule: bool, message: str) -> None:
    """Raise UsageError with the message where a rule of a field does not hold."""
    if not rule:
        raise UsageError(message)


def checked(kind: type, flags: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """Flags by name, converted to the types of the fields of `kind` and of the dataclasses inside it.

    source: the file that they come from. Raises ValueError for an unknown name and for a value that cannot be.
    """
    hints = flag_types(kind)
    where = f"{source}: " if source else ""
    for name in flags:
        if name not in hints:
            nearest = difflib.get_close_matches(str(name), hints, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "see sf-train --help for the names"
            raise UsageError(f"{where}unknown setting {name}: {hint}")
    return {name: as_type(name, given, hints[name], where) for name, given in flags.items()}


def as_type(name: str, given: Any, hint: Any, where: str = "") -> Any:
    """Returns the value of a flag, converted to its type. Raises ValueError where that cannot be."""
    try:
        return _read(hint, given)
    except _WrongTypeError as error:
        more = f" ({error})" if str(error) else ""
        raise UsageError(f"{where}{name} is {_shown(given)}{more}: it must be {allowed(hint)}") from None


def flag_types(kind: type) -> dict[str, Any]:
    """Returns the types of the fields of `kind`, and of those of the dataclasses inside it, by name."""
    return dict(_flag_hints(kind))


def allowed(hint: Any) -> str:
    """Returns what values of the type are, in words: "a whole number or auto"."""
    choices = [*_choices(hint)]
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.name: _kept_as_json(hints[field.name], field.metadata["keeps"])
        if field.metadata in (AS_JSON, AS_JSON_LIST)
        else hints[field.name]
        for field in dataclasses.fields(kind)
    }


def _kept_as_json(hint: Any, kept: str) -> Any:
    if typing.get_origin(hint) is tuple:
        item: Any = typing.get_args(hint)[0]
        return tuple[Annotated[item, kept], ...]
    return Annotated[hint, kept]


def _flag_hints(kind: type) -> Iterator[tuple[str, Any]]:
    for name, hint in _hints(kind).items():
        if dataclasses.is_dataclass(hint):
            yield from _flag_hints(typing.cast(type, hint))
        else:
            yield name, hint


def _read(hint: Any, given: Any) -> Any:
    if type(given) is hint and (hint is not float or math.isfinite(given)):
        return given  # at once, since a learner's configuration changes as it trains
    if isinstance(given, np.generic):
        given = given.item()
    if hint in _READERS:
        return _READERS[hint](given)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _read_json(given) if isinstance(given, _KEPT_AS_JSON[args[1]]) else _read(args[0], given)
    if origin in (types.UnionType, typing.Union):
        return _read_union(args, given)
    if origin is tuple:
        items = given.tolist() if isinstance(given, np.ndarray) else given
        return tuple(_read(args[0], item) for item in (items if isinstance(items, list | tuple) else [items]))
    is_valid = isinstance(given, str) and given in args if origin is Literal else isinstance(given, hint)
    if not is_valid:
        raise _WrongTypeError
    return given


def _read_union(kinds: tuple[Any, ...], given: Any) -> Any:
    # None first: the text "None" is also one of the texts that a str can be.
    for kind in sorted(kinds, key=lambda kind: kind is not type(None)):
        with suppress(_WrongTypeError):
            return _read(kind, given)
    return _read(next(kind for kind in kinds if kind is not type(None)), given)  # it says most about what is wrong


def _read_int(given: Any) -> int:
    if type(given) is int:
        return given
    if isinstance(given, str):
        with suppress(ValueError):
            return int(given)
    number = _read_float(given)
    if not number.is_integer():
        raise _WrongTypeError
    return int(number)


def _read_float(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise _WrongTypeError
    try:
        number = float(given)
    except (ValueError, OverflowError):
        raise _WrongTypeError from None
    if not math.isfinite(number):
        raise _WrongTypeError
    return number


def _read_str(given: Any) -> str:
    if isinstance(given, bool | int | float):
        raise _WrongTypeError("a file needs quotes for that")
    if not isinstance(given, str | os.PathLike):
        raise _WrongTypeError
    return str(given)


def _read_none(given: Any) -> None:
    if given not in (None, "None"):
        raise _WrongTypeError


def _read_json(given: Mapping | list | tuple) -> str:
    try:
        return json.dumps(dict(given) if isinstance(given, Mapping) else given)
    except (TypeError, ValueError) as error:
        raise _WrongTypeError(str(error)) from None


def _choices(hint: Any) -> Iterator[str]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _SHOWN_AS_JSON[args[1]]
        if type(None) in typing.get_args(args[0]):
            yield "None"
    elif origin in (types.UnionType, typing.Union):
        for arg in args:
            yield from _choices(arg)
    elif origin is Literal:
        yield from map(str, args)
    elif origin is tuple and _JSON in typing.get_args(args[0]):
        yield "a list of names, JSON objects and mappings of what JSON can hold"
    elif origin is tuple:
        yield (
            f"a list of {_NAMES[args[0]][1]}" if args[0] in _NAMES else f"one or more of {', '.join(_choices(args[0]))}"
        )
    elif hint is type(None):
        yield "None"
    else:
        yield _NAMES[hint][0] if hint in _NAMES else f"a {hint.__name__}"


def _shown(given: Any) -> str:
    text = " ".join(repr(given).split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


_READERS = {int: _read_int, float: _read_float, str: _read_str, type(None): _read_none}
