"""Messages to the user: any code calls `say`, and the process that it runs in decides where the message goes.

The parent of a run shows it on its display and writes it to run.log. A child process reports it to its parent. All
else, such as a command, prints it.

The receiver is a context variable, so two runs in two threads of one process have two receivers, and neither gets a
message of the other. A new thread begins without a receiver, and prints: start it in `contextvars.copy_context()`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_receiver: ContextVar[Callable[[str], object]] = ContextVar("receiver", default=print)


def say(text: str) -> None:
    """Tell the user."""
    _receiver.get()(text)


@contextmanager
def said_to(receiver: Callable[[str], object]) -> Iterator[None]:
    """Hand each message of the block to `receiver`."""
    token = _receiver.set(receiver)
    try:
        yield
    finally:
        _receiver.reset(token)


def nobody(text: str) -> None:
    """Drop a message that nobody needs: a receiver."""


def warn(text: str) -> None:
    """Print a message to standard error: a receiver."""
    print(text, file=sys.stderr, flush=True)
