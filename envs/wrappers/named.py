"""Reads a wrapper as people write it: `module:Name`, or the JSON object `{"module:Name": {"argument": value}}`.

Nothing is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sf.envs.custom.named_objects import file_of_module
from sf.envs.errors import UsageError

_OF_GYMNASIUM = ("gymnasium.wrappers", "gymnasium.wrappers.vector")
_WRITES_FILES = "RecordVideo"
_FORM = 'one wrapper and its arguments, as in {"module:Name": {"argument": value}}'


class NamedWrapper(NamedTuple):
    """A wrapper, and what it is given beside the environment."""

    name: str
    kwargs: dict[str, Any]

    @property
    def arguments(self) -> str:
        """Returns the same text for the same arguments."""
        return json.dumps(self.kwargs, sort_keys=True)


def read(written: str) -> NamedWrapper:
    """Raises UsageError for what is neither a name nor a JSON object of one with its arguments."""
    if not written.lstrip().startswith("{"):
        return NamedWrapper(written, {})
    try:
        parsed = json.loads(written)
    except json.JSONDecodeError as error:
        raise UsageError(f"env_wrappers has {written!r}, which is not JSON ({error}): write {_FORM}") from None
    if not isinstance(parsed, dict) or len(parsed) != 1:
        raise UsageError(f"env_wrappers has {written}: an item is a name, or {_FORM}")
    ((name, kwargs),) = parsed.items()
    if not isinstance(kwargs, dict | None):
        raise UsageError(f"env_wrappers has {written}: its arguments must be a mapping, as in {_FORM}")
    return NamedWrapper(name, kwargs or {})


def read_all(written: Sequence[str]) -> tuple[NamedWrapper, ...]:
    """Raises UsageError as `read` does."""
    return tuple(map(read, written))


def code_of(wrapper: NamedWrapper) -> str | None:
    """Returns the file of the code that a wrapper runs; None for Gymnasium's own, but for one that writes files.

    A file that names such a wrapper is obeyed only if the user trusts it.
    """
    module, _, name = wrapper.name.partition(":")
    return None if module in _OF_GYMNASIUM and name != _WRITES_FILES else file_of_module(module)
