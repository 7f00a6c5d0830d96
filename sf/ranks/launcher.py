"""`--num_learners`: starts the ranks of this machine, as `torchrun --standalone` does."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from sf.envs.errors import UsageError
from sf.ranks.agent import LAUNCHER, SAID_ONCE
from sf.ranks.place import FAILURE, FINAL_FAILURE, STARTED_AGAIN, USER_ERROR
from sf.system.processes.stopping import STOP_SIGNALS

_BYTES_OF_RANK = 300 * 2**20  # the least: its libraries alone
_ASKED_TO_END = tuple(128 + signum for signum in STOP_SIGNALS)


def require_memory(num_ranks: int, free: int) -> None:
    """free: bytes. Raises UsageError where so many ranks could not even import what they need."""
    most = free // _BYTES_OF_RANK
    if num_ranks > max(most, 1):
        raise UsageError(
            f"num_learners is {num_ranks:,}: each takes 300 MiB before anything else, and {free / 2**30:,.1f} GiB of "
            f"memory are free, so take {most:,} at most; one for each GPU, or for every few cores, is what helps"
        )


def launch(num_ranks: int, may_start_again: Callable[[], bool]) -> int:
    """Run this command once for each rank, and wait for all. Returns the exit status.

    When one fails, all are ended, and started again as often as `may_start_again` says so. A user's mistake would be
    the same again, a final failure too, and a rank that was asked to end has ended all.
    """
    logging.disable(logging.CRITICAL)  # torch tells in several lines what each rank has told in one
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ[LAUNCHER] = str(os.getpid())
    launch_id = uuid.uuid4().hex
    while True:
        with TemporaryDirectory(prefix="sf-ranks-") as folder:
            os.environ[SAID_ONCE] = folder
            status = _launch_once(num_ranks, launch_id, folder)
        if status == FINAL_FAILURE:
            return FAILURE
        if status in (0, USER_ERROR) or status in _ASKED_TO_END or not may_start_again():
            return status
        with suppress(OSError):  # nobody reads it
            print("all ranks are started again, from what was saved", flush=True)
        os.environ[STARTED_AGAIN] = "1"


def _launch_once(num_ranks: int, launch_id: str, logs: str) -> int:
    """logs: a folder for what ranks say. They write to the terminal in its place."""
    here = "localhost"
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_ranks,
        logs_specs=DefaultLogsSpecs(log_dir=logs),
        run_id=launch_id,
        rdzv_backend="c10d",
        rdzv_endpoint=f"{here}:0",
        local_addr=here,
        max_restarts=0,
        **_signals(),
    )
    try:
        elastic_launch(config, sys.executable)(*sys.orig_argv[1:])
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    return 0


def _signals() -> dict[str, Any]:
    """At which torch ends the ranks: not at a hangup that nohup has set to be ignored. An older torch takes no word."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN or not hasattr(LaunchConfig, "signals_to_handle"):
        return {}
    return {"signals_to_handle": "SIGTERM,SIGINT,SIGQUIT"}
