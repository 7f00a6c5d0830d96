"""`--num_learners`: starts the ranks of this machine, as `torchrun --standalone` does."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from pathlib import Path

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

_OWN_PROGRAMS = ("sf-train", "__main__.py")


def launch(num_ranks: int, max_restarts: int) -> int:
    """Run this command once for each rank, and wait for all. Returns the exit status.

    When one ends with another status than 0, all are ended and started again, `max_restarts` times in all.
    """
    # torch tells in several lines what each rank has told in one.
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    here = "localhost"
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint=f"{here}:0",
        local_addr=here,
        max_restarts=max_restarts,
    )
    try:
        elastic_launch(config, sys.executable)(*_words_of_this_command())
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    return 0


def _words_of_this_command() -> list[str]:
    program = sys.argv[0]
    is_own = Path(program).name in _OWN_PROGRAMS
    return [*(["-m", "sf"] if is_own else [program]), *sys.argv[1:]]
