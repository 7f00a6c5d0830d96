"""How all commands end: quietly, or with one sentence, and with a status."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sf.ranks.agent import SAID_ONCE

FAILURE = 1
USER_ERROR = 2  # exit status of everything that the user can fix
_INTERRUPTED = 128 + signal.SIGINT
_NOT_READ = 141  # 128 + SIGPIPE
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def quiet_end() -> Iterator[None]:
    """Ends what a command does inside without the traceback of Ctrl-C, of a closed pipe or of a full disk.

    Ctrl-C ends the process with status 130. A reader that wants no more of standard output (`sf-envs | head`) ends it
    with 141, as the shell counts SIGPIPE. A full disk ends it with one sentence and status 1. A character that standard
    output cannot encode is written with its number.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path need not be UTF-8, and is printed to be copied: its bytes stay.
        sys.stdout.reconfigure(errors="surrogateescape" if sys.stdout.encoding == "utf-8" else "backslashreplace")
    try:
        try:
            yield
        except SystemExit:
            _flush()
            raise
        _flush()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except BrokenPipeError:
        if _is_read():
            raise
        _flush_or_discard()
        raise SystemExit(_NOT_READ) from None
    except OSError as error:
        if error.errno not in _FULL_DISK:
            raise
        _flush_or_discard()
        end(f"{error}: make room on the disk, and start again", FAILURE)


@contextmanager
def exit_status() -> Iterator[None]:
    """Ends a command as `quiet_end` does, and with one sentence after an error.

    A ValueError, which the user can fix, ends the process with status 2, a RuntimeError with status 1, that of an
    environment with its traceback, too.
    """
    with quiet_end():
        try:
            yield
        except ValueError as error:
            fail(str(error))
        except RuntimeError as error:
            end(_with_own_lines(error), FAILURE)


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


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _is_read() -> bool:
    """Returns whether standard output can still be written: then the broken pipe was another one."""
    try:
        print(flush=True)
    except BrokenPipeError:
        return False
    return True


def _flush_or_discard() -> None:
    """Python flushes standard output when it ends: what cannot be written must not change the status then."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
