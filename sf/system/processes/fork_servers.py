"""Fork servers: processes that have imported what children need, and fork them.

A child then starts within milliseconds instead of seconds, and shares the pages of its libraries with its siblings: a
process of its own holds 150 MB for torch alone. A fork server is an instance of multiprocessing's own, beside the one
that the program may use itself. It must never touch a GPU: CUDA does not survive a fork.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from multiprocessing import forkserver, reduction, resource_tracker
from multiprocessing.process import BaseProcess

from sf.system.portable import resource
from sf.system.processes.creator import CREATOR
from sf.system.processes.stopping import STOP_SIGNALS

GONE_WITHIN_S = 2.0  # a process after its death
_OURS = "sf"  # what `_SAFE_PATH` is set to in here; `sf.system.processes.preload` takes it away again
_SAFE_PATH = "PYTHONSAFEPATH"  # known since Python 3.11
_DESCRIPTORS_AT_ONCE = 200  # the kernel passes on up to 253 in a message
_MANY_DESCRIPTORS = 65_536


class ForkServer:
    """Starts when it is first needed or told to, and ends with this process. preload: modules that it imports."""

    def __init__(self, preload: Sequence[str]) -> None:
        self.preload = preload
        self._server = forkserver.ForkServer()
        self._server.set_forkserver_preload(["sf.system.processes.preload", *preload])

    def ensure_running(self) -> None:
        """Start it without a wait: it imports while this process does something else."""
        with _blocked_signals(), _told():
            self._server.ensure_running()

    def unsuspend(self) -> None:
        """Let it go on if somebody has stopped it: it would report neither the death nor the start of a child."""
        pid = self._server._forkserver_pid  # type: ignore[attr-defined]  # there is no public way to it
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def start(self, process: BaseProcess) -> None:
        """Start a process, and try again if this server has died: it is replaced when it is gone for good."""
        give_up_at = time.monotonic() + GONE_WITHIN_S
        # multiprocessing flushes both streams before it starts a process, and fails if nobody reads them.
        with (
            _blocked_signals(),
            _told(),
            redirect_stdout(None),
            redirect_stderr(None),
            self._asked_by_multiprocessing(),
        ):
            while time.monotonic() < give_up_at:
                with suppress(ConnectionError, EOFError):
                    process.start()
                    return
                time.sleep(0.01)
            process.start()

    @contextmanager
    def _asked_by_multiprocessing(self) -> Iterator[None]:
        """Have multiprocessing ask this server: it knows one alone, by the name of the function that asks it."""
        default = forkserver.connect_to_new_process
        forkserver.connect_to_new_process = self._connect_to_new_process
        try:
            yield
        finally:
            forkserver.connect_to_new_process = default

    def _connect_to_new_process(self, fds: Sequence[int]) -> tuple[int, int]:
        """Do as multiprocessing's own, which takes 251 descriptors at most: a learner has two for each rollout worker.

        They wait in a socket instead, which is passed on in their place: see `sf.system.processes.preload`.
        """
        theirs, ours = socket.socketpair()
        with theirs, ours:
            for begin in range(0, len(fds), _DESCRIPTORS_AT_ONCE):
                reduction.sendfds(ours, list(fds[begin : begin + _DESCRIPTORS_AT_ONCE]))
            return self._server.connect_to_new_process([theirs.fileno()])


def descriptors_needed(num_workers: int, num_policy_workers: int) -> int:
    """Returns about how many descriptors the parent of a run opens."""
    return 64 + 7 * num_workers + 16 * num_policy_workers


def allow_many_descriptors() -> None:
    """Raise the limit of this process: it opens six for each rollout worker, and 1,024 is a usual default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MANY_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Keep STOP_SIGNALS from what is started in here until it ignores them; the parent gets them afterwards.

    A terminal, or a batch system, sends them to all processes of a group: the parent alone decides what to do about it.
    """
    resource_tracker.ensure_running()  # multiprocessing would start it in here, and unblock some after that
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _told() -> Iterator[None]:
    """Tell a fork server that starts in here which process has started it, and where this program finds modules by a
    change of `sys.path`.

    By itself it would look into the working directory before all else, and take a file `queue.py` there for the module
    of Python.
    """
    told = {CREATOR: str(os.getpid())}
    if os.environ.get(_SAFE_PATH):  # then it does not look there at all
        told |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    else:
        told |= {"PYTHONPATH": os.pathsep.join(_with_working_directory(sys.path)), _SAFE_PATH: _OURS}
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _with_working_directory(path: Sequence[str]) -> list[str]:
    """Returns where to look for modules of the user: before installed packages, behind the standard library."""
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        return list(path)
    of_python = {*map(sysconfig.get_path, ("stdlib", "platstdlib")), f"{sysconfig.get_path('platstdlib')}/lib-dynload"}
    behind = 1 + max((at for at, folder in enumerate(path) if folder in of_python), default=-1)
    return [*path[:behind], directory, *path[behind:]]
