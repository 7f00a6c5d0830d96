"""Reads the JSON objects of a file as dataclasses, whose fields say what is allowed."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

_Row = TypeVar("_Row")
Reader = Callable[[Any, str], Any]
"""Returns a value of JSON as one of its type. Called with the value and its name; raises TypeError or OverflowError."""


def row_of(kind: type[_Row], values: Mapping[str, Any]) -> _Row:
    """An object of a dataclass from the values of its fields by name; other names are left out.

    Raises KeyError for a field that is missing, TypeError and OverflowError for a value of another kind.
    """
    dataclass: Any = kind
    readers, required = _fields(dataclass)
    named = {name: read(values[name], name) for name, read in readers if name in values or name in required}
    return dataclass(**named)


@cache
def _fields(dataclass: Any) -> tuple[list[tuple[str, Reader]], set[str]]:
    """The readers of the fields, and the names of those without a default."""
    readers = [(name, reader_of(hint)) for name, hint in get_type_hints(dataclass).items()]
    return readers, {field.name for field in fields(dataclass) if field.default is MISSING}


def reader_of(hint: Any) -> Reader:
    """For a whole number from 0 on, a finite float, text, one or None of these, a tuple or a mapping of them."""
    if hint in _READERS:
        return _READERS[hint]
    args = get_args(hint)
    if get_origin(hint) is types.UnionType:
        of_value = reader_of(args[0])
        return lambda value, name: None if value is None else of_value(value, name)
    readers = [reader_of(arg) for arg in args if arg is not ...]
    if get_origin(hint) is tuple:
        return lambda value, name: _tuple(value, name, readers * len(value) if args[-1] is ... else readers)
    return lambda value, name: {
        key: readers[1](item, f"{key} of {name}") for key, item in _mapping(value, name).items()
    }


def _count(value: Any, name: str) -> int:
    return value if type(value) is int and value >= 0 else _refuse(value, name, "a whole number")


def _number(value: Any, name: str) -> float:
    is_number = type(value) in (int, float) and math.isfinite(value)
    return float(value) if is_number else _refuse(value, name, "a number")


def _text(value: Any, name: str) -> str:
    return value if isinstance(value, str) and value else _refuse(value, name, "text")


def _tuple(value: Any, name: str, readers: list[Reader]) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) != len(readers):
        _refuse(value, name, "a list")
    return tuple([read(item, name) for read, item in zip(readers, value, strict=True)])


def _mapping(value: Any, name: str) -> dict[str, Any]:
    return value if isinstance(value, dict) else _refuse(value, name, "a mapping")


def _refuse(value: Any, name: str, what: str) -> NoReturn:
    raise TypeError(f"{name} is {value!r}: it must be {what}")


_READERS: Mapping[Any, Reader] = {int: _count, float: _number, str: _text}
