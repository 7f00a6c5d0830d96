"""Starts the ViZDoom engines of a game so that they leave nothing behind, however their owner dies.

Those of a network game end when one of them dies or hangs.
"""

from __future__ import annotations

import logging
import os
import select
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType

import vizdoom

LAUNCHER = Path(__file__).with_name("launcher.py")
MAX_ATTEMPTS = 3
START_ERRORS = (
    vizdoom.ViZDoomErrorException,
    vizdoom.ViZDoomUnexpectedExitException,
    vizdoom.SharedMemoryException,
    vizdoom.MessageQueueException,
)
MIN_SHARED_MEMORY_BYTES = 2**20  # an engine touches some 100 KiB of /dev/shm

log = logging.getLogger(__name__)


def start_engine(game: vizdoom.DoomGame) -> None:
    """`game.init()` through `launcher.py`, tried up to `MAX_ATTEMPTS` times.

    The kernel kills the engine when this process ends, and soon after this returns the engine has no file
    in /dev/shm or in the working directory any more. One crash remains: where an engine dies in its first
    tenth of a second, before it has opened its shared memory, ViZDoom 1.3 follows a null pointer and ends
    this process, too. So the commonest cause, a full /dev/shm, is looked for first.

    Raises RuntimeError where the engine does not start.
    """
    _require_shared_memory()
    game.set_doom_config_path(os.devnull)  # else every engine reads, and at its end writes, ./_vizdoom.ini
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with _launcher(game):
                game.init()
            return
        except START_ERRORS as error:
            reason = str(error)
        log.warning("the ViZDoom engine did not start (attempt %d of %d): %s", attempt, MAX_ATTEMPTS, reason)
        game.close()
    raise RuntimeError(
        f"the ViZDoom engine did not start in {MAX_ATTEMPTS} attempts ({reason}): "
        f"run {vizdoom.exe_path} in a terminal to see what it lacks"
    )


def start_joined_engines(
    games: Sequence[vizdoom.DoomGame], limit_s: float, namespaces: Sequence[int] = ()
) -> list[int]:
    """Start the engines of one network game at once, since each of them waits for all others.

    namespaces: file numbers of those that the engines live in, see `sf.envs.doom.matches.network`.
    Returns the ids of their processes; to kill one is the only way to end an engine that waits for another.
    Raises TimeoutError, with every engine ended, where they have not all joined after `limit_s` seconds.
    """
    _require_shared_memory()
    for game in games:
        game.set_doom_config_path(os.devnull)
    try:
        with ThreadPoolExecutor(len(games)) as threads:
            pids = [*threads.map(partial(_join, limit_s=limit_s, namespaces=namespaces), games)]
        if all(game.is_multiplayer_game() for game in games):
            return pids
        reason = f"not within {limit_s:.0f} s"
    except START_ERRORS as error:
        reason = str(error)
    for game in games:
        game.close()
    raise TimeoutError(f"{len(games)} Doom engines did not join each other: {reason}")


def _join(game: vizdoom.DoomGame, limit_s: float, namespaces: Sequence[int]) -> int:
    """Returns the process id of the launcher, which stays between the engine and this process."""
    with _launcher(game, limit_s, namespaces) as pipe:
        game.init()
        return int(pipe.recv(16))


@contextmanager
def _launcher(
    game: vizdoom.DoomGame, join_limit_s: float = 0.0, namespaces: Sequence[int] = ()
) -> Iterator[socket.socket]:
    """Have `game.init()` execute `launcher.py`. Yields the socket that its process id arrives at."""
    ours, launchers = socket.socketpair()
    script_fd = os.memfd_create("vizdoom-launcher")
    try:
        for fd in (ours.fileno(), launchers.fileno(), script_fd, *namespaces):
            os.set_inheritable(fd, True)
        numbers = ",".join(map(str, namespaces))
        arguments = [os.getpid(), launchers.fileno(), ours.fileno(), join_limit_s, numbers, vizdoom.exe_path]
        command = shlex.join([sys.executable, "-I", "-S", str(LAUNCHER), *map(str, arguments)])
        # ViZDoom takes one path, without arguments. A script in memory needs no folder that permits
        # execution, and sh, unlike a #! line, copes with a long path of the interpreter or one with spaces.
        os.write(script_fd, f'#!/bin/sh\nexec {command} "$@"\n'.encode())
        game.set_vizdoom_path(f"/proc/self/fd/{script_fd}")
        yield ours
    finally:
        ours.send(b"!!")  # a byte for the sweeper, and one for the launcher that waits until a game is joined
        ours.close()
        launchers.close()
        os.close(script_fd)


def _require_shared_memory() -> None:
    status = os.statvfs("/dev/shm")
    free_bytes = status.f_bavail * status.f_frsize
    if free_bytes < MIN_SHARED_MEMORY_BYTES:
        raise RuntimeError(
            f"/dev/shm has {free_bytes // 1024} KiB left, and starting a Doom engine takes "
            f"{MIN_SHARED_MEMORY_BYTES // 1024} KiB: free some, or give it more (docker run --shm-size)"
        )


PATIENCE_MS = 10_000  # a step of a match takes a millisecond, the start of an episode some 20


class Watchdog:
    """A thread that watches the engines of one network game. The game is stepped inside of `with watchdog:`.

    An engine that waits for a packet of another one never returns to us, and nothing but a signal ends it. So when an
    engine is dead, or a step has not ended when the thread has looked at it twice, `PATIENCE_MS` apart, it kills all of
    them, and ViZDoom raises in the thread that steps. It counts looks, not seconds: so a process that was stopped and
    continued is not taken for one that hangs.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        """pids: of the engines."""
        self._pidfds = [os.pidfd_open(pid) for pid in pids]
        self._stop_fd = os.eventfd(0)
        self._turn = 0  # odd in a step
        self._thread = threading.Thread(target=self._watch, name="doom-watchdog", daemon=True)
        self._thread.start()

    def __enter__(self) -> None:
        self._turn += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._turn += 1

    def close(self) -> None:
        """Kill the engines, and end the thread."""
        os.eventfd_write(self._stop_fd, 1)
        self._thread.join()
        self._kill()
        for fd in (self._stop_fd, *self._pidfds):
            os.close(fd)

    def _watch(self) -> None:
        poll = select.poll()
        for fd in (self._stop_fd, *self._pidfds):
            poll.register(fd, select.POLLIN)
        seen = 0
        while not poll.poll(PATIENCE_MS):  # nobody died, nobody closes
            if self._turn == seen and seen % 2 == 1:
                break
            seen = self._turn
        self._kill()

    def _kill(self) -> None:
        for pidfd in self._pidfds:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
