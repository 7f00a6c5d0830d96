"""Runs a module, after it has hidden what Linux has and Windows or macOS lack.

    python hidden_linux.py sf --env CartPole-v1 --serial true

What other packages need of it, they have imported by then.
"""

import builtins
import io
import multiprocessing.connection
import multiprocessing.forkserver
import multiprocessing.popen_forkserver
import multiprocessing.resource_tracker
import multiprocessing.synchronize  # noqa: F401
import os
import runpy
import select
import signal
import subprocess  # noqa: F401
import sys

import gymnasium  # noqa: F401
import rich.live  # noqa: F401
import torch._dynamo
import torch.utils.tensorboard  # noqa: F401
import tyro  # noqa: F401

MODULES = ("fcntl", "resource", "termios", "tty", "pwd", "grp", "_posixshmem", "faster_fifo")
OF_OS = (
    *("memfd_create", "sched_getaffinity", "sched_setaffinity", "fork", "eventfd", "getuid", "geteuid", "O_NOFOLLOW"),
    *("O_DIRECTORY", "sysconf", "killpg", "register_at_fork", "setsid", "statvfs", "fdatasync", "posix_fadvise"),
    *("nice", "getpgid", "getloadavg", "mkfifo", "sched_yield", "waitid"),
)
OF_SIGNAL = (
    *("SIGHUP", "SIGKILL", "SIGPIPE", "SIGCHLD", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGALRM", "SIGQUIT"),
    *("pthread_sigmask", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK", "setitimer", "alarm", "pidfd_send_signal"),
)
FILES = ("/proc", "/sys", "/dev/shm")


def open_others(file, *args, own=io.open, **kwargs):
    if str(file).startswith(FILES):
        raise FileNotFoundError(2, "hidden", str(file))
    return own(file, *args, **kwargs)


def hide():
    sys.modules.update(dict.fromkeys(MODULES))
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL), (select, ("poll",))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    builtins.open = io.open = open_others


if __name__ == "__main__":
    hide()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
