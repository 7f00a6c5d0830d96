"""Sources in C++ as libraries, which the machine's compiler makes once, within two seconds.

They are kept in the folder sf of XDG_CACHE_HOME or ~/.cache, by what they were made from: the source, the flags, and
what this CPU can do. Each file ends with a digest, which the linker does not read. Without a compiler, or where the
cache cannot be written, there is none: PyTorch's operations take the place of the loops of kernels.cpp.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from sf.system.portable import user_id

SOURCE = Path(__file__).with_name("kernels.cpp")
NUMBERS = {"float32": "float", "bfloat16": "BFloat16"}  # dtype of torch: type in the source

_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++14", "-O3", "-shared", "-fPIC", "-march=native")
# All of -ffast-math that keeps NaN and infinity what they are, and the state of the processor as it is.
_FLAGS_OF_NUMBERS = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=fast")
_FLAGS_OF_X86 = ("-mprefer-vector-width=512",)
_COMPILES_WITHIN_S = 60
_DIGEST_BYTES = hashlib.sha256().digest_size
_COMPILING = "compiling-"  # how folders begin in which a library is being made


class CompilerError(Exception):
    """The libraries cannot be made here. The message says why, as a clause."""


@functools.cache
def load(numbers: str | None, source: Path = SOURCE) -> ctypes.CDLL:
    """The library for float32 or bfloat16, made now where there is none yet. Raises CompilerError.

    numbers: None for a source that names no type of numbers.
    """
    path = folder() / f"{source.stem}-{numbers or 'all'}-{_made_from(source)}.so"
    if is_usable(path):
        with suppress(OSError):  # of another system: another one takes its place
            return ctypes.CDLL(str(path))
    _compile(numbers, source, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CompilerError(f"a compiled file cannot be loaded: {error}") from None


def folder() -> Path:
    """The user's own: what lies in it is run. Raises CompilerError."""
    try:
        path = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sf"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        raise CompilerError(f"the cache for compiled loops cannot be made ({error}; XDG_CACHE_HOME names it)") from None
    if not is_own(path):
        raise CompilerError(f"{path} could be written by other users: chmod go-w {path}")
    return path


def is_own(path: Path) -> bool:
    """Whether it is there, and nobody else can have written it."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == user_id() and not status.st_mode & 0o022


def is_usable(path: Path) -> bool:
    """Whether it is there as `put` has left it. To load a file that was cut short would kill this process."""
    try:
        whole = path.read_bytes() if is_own(path) else b""
    except OSError:  # the disk is failing
        return False
    return whole[-_DIGEST_BYTES:] == hashlib.sha256(whole[:-_DIGEST_BYTES]).digest()


def _compile(numbers: str | None, source: Path, path: Path) -> None:
    compiler = os.environ.get("CXX") or next(filter(shutil.which, _COMPILERS), None)
    if compiler is None:
        raise CompilerError("this machine has no C++ compiler (Debian and Ubuntu: apt install g++)")
    try:
        _remove_left_behind(path.parent)
        # A name of its own, then renamed: other processes may be at the same.
        with tempfile.TemporaryDirectory(prefix=_COMPILING, dir=path.parent) as beside:
            made = Path(beside, path.name)
            defined = [] if numbers is None else [f"-DT={NUMBERS[numbers]}"]
            command = [*shlex.split(compiler), *_flags(), *defined, str(source), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_COMPILES_WITHIN_S)
            put(made, path)
    except subprocess.CalledProcessError as error:
        first = next(iter(error.stderr.strip().splitlines()), f"exit status {error.returncode}")
        raise CompilerError(f"{compiler} fails: {first}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerError(f"{compiler} cannot compile into {path.parent}: {error}") from None


def put(made: Path, path: Path) -> None:
    """In its place, with its digest, once it is on the disk. Raises OSError."""
    made.chmod(0o700)
    with made.open("ab") as file:
        file.write(hashlib.sha256(made.read_bytes()).digest())
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)


def _remove_left_behind(cache: Path) -> None:
    """What processes have left that were killed while they compiled."""
    for beside in cache.glob(f"{_COMPILING}*"):
        with suppress(OSError):  # another process was faster
            if time.time() - beside.stat().st_mtime > 2 * _COMPILES_WITHIN_S:
                shutil.rmtree(beside)


def _flags() -> tuple[str, ...]:
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    return (*_FLAGS, *_FLAGS_OF_NUMBERS, *(_FLAGS_OF_X86 if is_x86 else ()))


@functools.cache
def _made_from(source: Path) -> str:
    """A name for the source, the flags, the compiler and this kind of CPU."""
    words = [source.read_text(encoding="utf-8"), *_flags(), machine()]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def machine() -> str:
    """The compiler that was chosen, and this kind of CPU."""
    return "\0".join((os.environ.get("CXX", ""), platform.machine(), _cpu()))


def _cpu() -> str:
    """What the first core is, as Linux says it: its model, and its instructions."""
    words = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if line.split("\t")[0].split(":")[0].strip() in words)
