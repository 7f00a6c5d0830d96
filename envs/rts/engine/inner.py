"""How the functions of the engine are compiled that only compiled functions call."""

from __future__ import annotations

from typing import Any

from numba import njit

# Without what Python would need to call them, which takes most of the time of compiling them.
# Nor is memory counted, since nothing is allocated: that doubles the speed.
_OPTIONS: dict[str, Any] = {
    "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False,
}  # fmt: skip
inner = njit(**_OPTIONS)
