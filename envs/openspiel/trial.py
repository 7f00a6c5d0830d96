"""A game with parameters, made for a first time in a process of its own.

OpenSpiel checks few of its parameters: over some it ends the process that it is in, and over some it takes memory
without end. A process that only tries may come to such an end.
"""

from __future__ import annotations

import functools
import resource
import signal
import subprocess
import sys

from sf.envs.errors import UsageError
from sf.envs.options import EnvOptions

_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from sf.envs.openspiel.trial import main; main(*sys.argv[1:3])"
_MOST_S = 300  # bridge_uncontested_bidding takes 20 s
_MOST_BYTES = 4 << 30  # beyond what the process has when it begins
_REFUSED = 3  # the status of a process that has printed why


def require_playable(env_id: str, env_kwargs: str) -> None:
    """env_kwargs: as in EnvOptions. Raises UsageError where OpenSpiel cannot make such a game."""
    refusal = _refusal(env_id, env_kwargs)
    if refusal is not None:
        raise UsageError(refusal)


@functools.cache
def _refusal(env_id: str, env_kwargs: str) -> str | None:
    command = [sys.executable, "-c", _PROGRAM, env_id, env_kwargs, *sys.path]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == _REFUSED:
        return done.stdout.strip()
    if done.returncode == -signal.SIGALRM:
        return f"env {env_id!r} with env_kwargs {env_kwargs} was not made within {_MOST_S} s: change them"
    if done.returncode < 0:
        lines = done.stderr.split("\n")
        said = next((line for line in reversed(lines) if line.strip()), signal.Signals(-done.returncode).name)
        return f"env {env_id!r} with env_kwargs {env_kwargs} makes OpenSpiel crash ({said.strip()}): change them"
    return None


def main(env_id: str, env_kwargs: str) -> None:
    """The process that tries."""
    from sf.envs.openspiel.group import make_group  # noqa: PLC0415  which calls this module

    signal.alarm(_MOST_S)  # the kernel's, which also ends what does not come back from C++
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most_bytes = _bytes_in_use() + _MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    try:
        make_group(env_id, 1, EnvOptions(env_kwargs=env_kwargs), seed=0, first_env_idx=0)
    except UsageError as refusal:
        print(refusal)
        sys.exit(_REFUSED)


def _bytes_in_use() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
