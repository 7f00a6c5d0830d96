"""An environment made in the parent for its spaces: what of a user runs there before any process starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sf import envs
from sf.envs import EnvOptions, EnvSpec
from sf.system.messages import warn

_SAID_AFTER_S = 10.0


def describe(env: str, options: EnvOptions) -> EnvSpec:
    """As `sf.envs.describe`; where that takes long, it is said on standard error."""
    with said_where_slow(f"making {env}"):
        return envs.describe(env, options)


@contextmanager
def said_where_slow(what: str, after_s: float = _SAID_AFTER_S) -> Iterator[None]:
    """Say what is waited for when the block has taken `after_s`, twice that, four times that and so on."""
    has_ended = threading.Event()

    def watch() -> None:
        seconds = waited = after_s
        while not has_ended.wait(waited):
            warn(f"{what} has taken {seconds:.0f} s so far; Ctrl-C ends it")
            seconds, waited = 2 * seconds, seconds

    watcher = threading.Thread(target=watch, name="said where slow", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()
