"""JSON that every parser reads, for all files that people and their programs read.

NaN and infinity become null: JSON has no word for them, though Python writes some. Bytes of a text that are not UTF-8,
such as in the name of a file, are written as \\udcff.
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
