"""JSON as every parser reads it, for all that is written for people and their programs.

JSON has no word for NaN and infinity, which Python's own writer spells out: they become null. Text that is not UTF-8,
such as the name of a file, has such bytes written as \\udcff.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sf.storage.printable import printable


def dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_finite(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
