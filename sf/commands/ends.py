"""How all commands end: quietly, or with one sentence, and with a status."""

from __future__ import annotations

import codecs
import errno
import hashlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sf.processes.interrupt import Interrupt
from sf.ranks.agent import SAID_ONCE

FAILURE = 1
USER_ERROR = 2  # exit status of everything that the user can mend
_INTERRUPTED = 128 + signal.SIGINT
_NOT_READ = 128 + signal.SIGPIPE
_STANDARD_ERROR = 2  # its descriptor
_ANY_CHARACTER = "sf.any_character"
_OF_A_STREAM = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)


@contextmanager
def quiet_end() -> Iterator[None]:
    """What a command does inside never ends with the traceback of a signal or of standard output.

    Ctrl-C ends the process with status 130. A reader that wants no more of standard output (`sf-envs | head`) ends it
    with 141, as the shell counts SIGPIPE. A full disk behind standard output ends it with one sentence and status 1.
    Neither changes the status of a command that has failed. A character that standard output lacks is written out.
    What is said to a stream that is closed (`sf-train >&-`) goes nowhere.
    """
    with Interrupt() as interrupt:
        try:
            try:
                _open_what_is_closed()
                _write_any_character()
                yield
            except SystemExit as end_of_command:
                if end_of_command.code:
                    _flush_or_discard()
                else:
                    _flush()
                raise
            _flush()
        except KeyboardInterrupt:
            raise SystemExit(_INTERRUPTED) from None
        except Exception as error:
            if interrupt.came:
                raise SystemExit(_INTERRUPTED) from None
            if not isinstance(error, OSError) or not _is_of_standard_output(error):
                raise
            _discard_output()
            if isinstance(error, BrokenPipeError):
                raise SystemExit(_NOT_READ) from None
            end(f"standard output cannot be written ({error.strerror}): write to another place", FAILURE)


@contextmanager
def exit_status() -> Iterator[None]:
    """As `quiet_end`, and a ValueError, which the user can mend, ends the process with its sentence and status 2, a
    RuntimeError with its sentence and status 1, that of an environment with its traceback, too. A file that is not
    found because the working directory was removed is one sentence and status 2."""
    with quiet_end():
        try:
            yield
        except ValueError as error:
            fail(str(error))
        except FileNotFoundError:
            if _has_working_directory():
                raise
            fail("the working directory was removed: change to one that exists (cd), and start again")
        except RuntimeError as error:
            end(_with_own_lines(error), FAILURE)


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def fail(message: str) -> NoReturn:
    """Print one sentence and end with status 2."""
    end(message, USER_ERROR)


def end(message: str, status: int) -> NoReturn:
    """Print one sentence on standard error, unless another rank has said it, and end with `status`."""
    if not _is_first_to_say(message):
        raise SystemExit(status)
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    head = "\033[1;31merror:\033[0m" if is_terminal and "NO_COLOR" not in os.environ else "error:"
    with suppress(OSError):  # nobody can read it: the status still says it
        print(head, message, file=sys.stderr, flush=True)
    raise SystemExit(status)


def _is_first_to_say(message: str) -> bool:
    folder = os.environ.get(SAID_ONCE)
    try:
        if folder is not None:
            open(os.path.join(folder, hashlib.sha256(message.encode(errors="replace")).hexdigest()), "x").close()
    except FileExistsError:
        return False
    except OSError:  # the launcher is gone: rather twice than never
        pass
    return True


def _with_own_lines(error: RuntimeError) -> str:
    from sf.envs.errors import EnvError  # noqa: PLC0415  slow to import, unless it has been raised

    return f"{error}\n\n{error.traceback}" if isinstance(error, EnvError) else str(error)


def _open_what_is_closed() -> None:
    """`sf-train >&-`: Python has no standard output then, and the next file to be opened would take its descriptor."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:  # the lowest number that is free
        pass
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  until the end of the process


def _write_any_character() -> None:
    """A path need not be UTF-8 and is printed to be copied: its bytes stay. What has no bytes becomes \\u6f22."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error(_ANY_CHARACTER, _bytes_or_number)
        sys.stdout.reconfigure(errors=_ANY_CHARACTER)


def _bytes_or_number(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _flush_or_discard() -> None:
    try:
        _flush()
    except OSError:
        _discard_output()


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _is_of_standard_output(error: OSError) -> bool:
    """Whether the write that failed was one to standard output: then the next one fails, too."""
    if error.errno not in _OF_A_STREAM or error.filename is not None or sys.stdout is None:
        return False
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _discard_output() -> None:
    """Python flushes standard output when it ends: what cannot be written must not change the status then."""
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
