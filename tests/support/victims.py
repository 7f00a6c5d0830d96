"""Processes that are started to be killed."""

import os
import signal

from sf.system.processes.creator import die_with_creator


def fork(body, *args):
    """The pid of a process that runs `body`, which never returns."""
    pid = os.fork()
    if pid == 0:
        try:
            die_with_creator()
            body(*args)
        finally:
            os._exit(1)
    return pid


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
