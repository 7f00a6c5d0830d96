"""Prepares a fork server for its children. Each fork server imports it at its start, and nothing else does."""

from __future__ import annotations

import gc
import os
import socket
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver, reduction

from sf.system.processes.creator import CREATOR, die_with_creator

if os.environ.get("PYTHONSAFEPATH") == "sf":  # by `sf.system.processes.fork_servers`, and not for what children start
    del os.environ["PYTHONSAFEPATH"]

PID = os.getpid()  # also known to what is forked from it

# It ends when the parent does. It would not by itself: it waits for the end of a pipe whose other end all its children
# hold, too.
die_with_creator()
if os.environ.pop(CREATOR, str(os.getppid())) != str(os.getppid()):
    os._exit(1)  # the parent had died before that took effect

# What is imported next leaves nothing to collect: looking for it takes a fifth of the time. Children turn it on again.
gc.disable()

# Whatever is imported next and asks torch for a GPU must not initialise CUDA, which what is forked could then not use.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"


@cache
def _inherited_fds() -> list[int]:
    """Returns, in a child, the descriptors that the parent has put into the one that multiprocessing was given."""
    (fd,) = forkserver._forkserver._inherited_fds  # type: ignore[attr-defined]  # there is no public way to it
    fds: list[int] = []
    with socket.socket(fileno=fd) as waiting, suppress(EOFError):
        while True:
            fds += reduction.recvfds(waiting, 256)
    return fds


forkserver.get_inherited_fds = _inherited_fds  # asked by whatever is unpickled in a child
