"""What has started this rank: the launcher of `--num_learners`, or the agent of torchrun. A rank ends with it."""

from __future__ import annotations

import os

from sf.system.processes.creator import die_with_creator

LAUNCHER = "SF_RANKS_LAUNCHER"  # a variable: the process id of the launcher
SAID_ONCE = "SF_RANKS_SAID_ONCE"  # a variable: a folder of the launcher; who makes a file there says its sentence


def end_with_agent() -> None:
    """End this process when its agent dies, or has died, unless it is no rank.

    It is the first that a rank does. Whatever came before would outlive an agent that dies meanwhile: torchrun sets no
    variable by which it could be missed.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return
    agent = os.environ.get(LAUNCHER, str(os.getppid()))
    die_with_creator()
    if str(os.getppid()) != agent:
        os._exit(1)  # the agent had died before that took effect
