"""Where the compiled loops come from, and what is said where there are none."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

from sf.system.native import library
from sf.system.native.library import CompilerError

try:
    library.load("float32")
except CompilerError as error:
    pytest.skip(f"no compiled loops: {error}", allow_module_level=True)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty one, and a process that has loaded nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library.load.cache_clear()
    library._made_from.cache_clear()
    yield tmp_path / "cache" / "sf"
    library.load.cache_clear()
    library._made_from.cache_clear()


def test_a_library_is_made_once(cache, monkeypatch):
    cache.mkdir(mode=0o700, parents=True)
    for name, age_s in (("compiling-old", 1_000), ("compiling-now", 0)):
        Path(cache, name).mkdir()  # of another process, which was killed, or is at it
        Path(cache, name, "kernels.so").touch()
        os.utime(Path(cache, name), (time.time() - age_s,) * 2)
    library.load("float32")
    other, made = sorted(cache.iterdir())
    assert other.name == "compiling-now"
    assert made.name.startswith("kernels-float32-")
    assert stat.S_IMODE(cache.stat().st_mode) == stat.S_IMODE(made.stat().st_mode) == 0o700
    library.load.cache_clear()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("compiled again"))
    library.load("float32")


def test_a_damaged_library_is_made_anew(cache):
    command = [sys.executable, "-c", "from sf.system.native import library; library.load('float32').elu"]
    warm.run(command, check=True)  # in processes of their own: the linker knows a file that is open by its name
    (made,) = cache.iterdir()
    whole = made.read_bytes()
    for damaged in (
        whole[:4096],  # the linker maps all, and to read a page behind the end is a bus error
        whole[:4096] + bytes(4096) + whole[8192:],
    ):
        made.write_bytes(damaged)
        warm.run(command, check=True)
        assert made.read_bytes() == whole


def test_another_cpu_or_another_source_makes_another_library(cache, monkeypatch):
    name = library._made_from(library.SOURCE)
    library._made_from.cache_clear()
    monkeypatch.setattr(library, "_cpu", lambda: "flags: avx512f")
    assert library._made_from(library.SOURCE) != name


def test_processes_that_begin_together_get_the_same_library(cache):
    code = "from sf.system.native import library; library.load('float32')"
    started = [warm.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(list(cache.iterdir())) == 1


def test_what_others_can_write_is_not_loaded(cache):
    library.load("float32")
    [made] = cache.iterdir()
    made.unlink()  # this process has mapped it: to cut it short is a bus error when the process ends
    made.write_bytes(b"not a library")
    made.chmod(0o777)
    library.load.cache_clear()
    library.load("float32")  # made anew
    assert made.read_bytes()[:4] == b"\x7fELF"
    cache.chmod(0o777)
    library.load.cache_clear()
    with pytest.raises(CompilerError, match=rf"^{cache} could be written by other users: chmod go-w {cache}$"):
        library.load("float32")


def test_without_a_compiler_the_reason_names_the_package(cache, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerError, match=r"no C\+\+ compiler .*apt install"):
        library.load("float32")


def test_a_compiler_that_fails_is_quoted(cache, monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho cannot open output file >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(CompilerError, match=rf"^{broken} fails: cannot open output file$"):
        library.load("bfloat16")
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made_is_a_reason(cache):
    cache.parent.write_text("a file stands in its place")
    with pytest.raises(CompilerError, match=r"^the cache for compiled loops cannot be made \(.*XDG_CACHE_HOME"):
        library.load("float32")
