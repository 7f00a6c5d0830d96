"""The engine is an extra. It is compiled once for all processes that run tests, and kept."""

import pytest

pytest.importorskip("numba")


@pytest.fixture(scope="session", autouse=True)
def _engine():
    from compiled_engine import compile_engine  # noqa: PLC0415

    compile_engine()
