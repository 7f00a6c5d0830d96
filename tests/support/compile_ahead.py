"""Compiles once what each process that runs tests would otherwise compile for itself: bytecode, with the assertions of
the tests rewritten, and the engine of strategy games. `make test` starts it beside the linters, which use one core.
"""

import importlib
import importlib.util
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import warm

TESTS = Path(__file__).parent.parent


def main():
    with redirect_stdout(StringIO()) as said:
        status = pytest.main(["--collect-only", "--quiet", str(TESTS)])
    if status != pytest.ExitCode.OK:
        print(said.getvalue())
        sys.exit(status)
    for name in warm.IMPORTS:
        importlib.import_module(name)
    if importlib.util.find_spec("numba") is not None:
        importlib.import_module("compiled_engine").compile_engine()


if __name__ == "__main__":
    main()
