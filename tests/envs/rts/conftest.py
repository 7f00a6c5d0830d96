"""The engine is an extra. It is compiled once for all processes that run tests, and kept."""

import pytest

pytest.importorskip("numba")
