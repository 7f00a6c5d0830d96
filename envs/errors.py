"""The two kinds of failure that the user can mend: wrong use, and an environment that raises.

Each is shown once. Anything else is a fault of the trainer, and shows its whole traceback.
"""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LONGEST = 300  # characters of a summary: some exceptions print an array
_PACKAGE = __name__.partition(".")[0]
_NO_DISPLAY = ("NoSuchDisplay", "open display", "connect to display", "$DISPLAY")  # in what libraries raise
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def env_exceptions() -> tuple[type[BaseException], ...]:
    """Returns what an environment may raise, for an `except`: its sys.exit must not end the process without a word.
    Nor must what derives from BaseException alone, as the panic of one in Rust (pyo3) or a cancelled task of asyncio.

    Python evaluates the classes of an `except` when something is raised, so the class of that can be one of them. In a
    process that ignores Ctrl-C, a KeyboardInterrupt is the environment's own, as of a window that somebody closed.
    """
    raised = sys.exc_info()[0]
    is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    others = (GeneratorExit,) if is_ignored else (GeneratorExit, KeyboardInterrupt)
    if raised is None or issubclass(raised, others):
        return (Exception, SystemExit)
    return (Exception, SystemExit, raised)


class UsageError(ValueError):
    """Reports what the user can fix: one sentence with the value and what to change.

    A command prints the sentence alone and ends with status 2. Any other ValueError may come from the user's own code,
    where only a traceback helps.
    """


class ApiError(UsageError):
    """An answer of an environment that Gymnasium's or PettingZoo's API does not know, such as four values of `step`.

    Its code is at fault, not its state: to make the environment anew does not help.
    """


class EnvError(RuntimeError):
    """An environment raised an exception, or called sys.exit: that is the `__cause__`.

    The text names the environment and the call. A command prints the text and `traceback`, and ends with status 1.
    """

    def __init__(self, env_id: str, call: str, cause: BaseException) -> None:
        """call: what the environment was asked, such as "reset()"."""
        super().__init__(f"{env_id} failed in {call}: {summary(cause)}")
        self.__cause__ = cause

    @property
    def traceback(self) -> str:
        """Returns the traceback of the cause, from the environment's own code on."""
        return traceback_of(self.__cause__ or self)


@contextmanager
def call_of(env_id: str, call: str) -> Iterator[None]:
    """Turns what is raised inside into an `EnvError` of this environment and call. A `UsageError` stays as it is."""
    try:
        yield
    except (UsageError, EnvError):
        raise
    except env_exceptions() as error:
        raise failure(env_id, call, error) from error


def failure(env_id: str, call: str, error: BaseException) -> UsageError | EnvError:
    """Returns an error for an exception of an environment: a sentence where all it lacks is a display."""
    if any(mark in f"{type(error).__name__}: {error}" for mark in _NO_DISPLAY):
        return UsageError(
            f"{env_id} draws on a display, and there is none ({summary(error)}): put `xvfb-run -a` before the command, "
            "or set PYOPENGL_PLATFORM=egl if its package can draw without one"
        )
    return EnvError(env_id, call, error)


def summary(error: BaseException) -> str:
    """Returns the error in one line, such as "KeyError: 'door'"; of a `UsageError` or an `EnvError` its own text."""
    if isinstance(error, UsageError | EnvError):
        return str(error)
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}".rstrip(": ")[:_LONGEST]


def traceback_of(error: BaseException) -> str:
    """Returns the traceback without the calls that led to code outside of this package."""
    own = outside = error.__traceback__
    while outside is not None and _package_of(outside.tb_frame) == _PACKAGE:
        outside = outside.tb_next
    if outside is None and own is not None:  # an environment that comes with the package
        outside = own.tb_next or own
    return "".join(traceback.format_exception(type(error), error, outside)).rstrip()


def place_of(error: BaseException, package: str = "") -> str | None:
    """The file and line of the user's own code that raised it, or called the library that did; None: there is none.

    package: the user's, which may be installed among the libraries.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file, of = frame.f_code.co_filename, _package_of(frame)
        if of == package or not (of == _PACKAGE or file.startswith(("<frozen ", *_LIBRARIES))):
            place = f"{file}, line {line}"
    return place


def is_refusal_of_arguments(error: BaseException) -> bool:
    """Returns whether a call was refused for its arguments. A TypeError from inside of the call is no refusal."""
    while isinstance(error.__cause__, TypeError):
        error = error.__cause__
    packages = [_package_of(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, TypeError) and (not packages or packages[-1] in (_PACKAGE, "gymnasium", "pettingzoo"))


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
