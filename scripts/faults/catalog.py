"""Everything that a campaign does to a run.

A fault does its harm and waits until the run has noticed; whether it then goes on as if nothing had been is for the
campaign to see. One that ends the run checks how it ended; the campaign resumes it.
"""

from __future__ import annotations

import os
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from faults.of_processes import (
    Harm,
    env_fault,
    kill_any,
    kill_fork_server,
    kill_resource_tracker,
    kill_two_at_once,
    kill_while_it_starts,
    signal_child,
    signal_engine,
    stop_fork_server,
    suspend,
)
from faults.of_runs import (
    damage_newest_checkpoint,
    deny_permission,
    fill_disk,
    flipped,
    hopeless,
    interrupt_a_replacement,
    interrupt_twice,
    interrupt_with_a_learner_that_hangs,
    kill_parent,
    remove_run_directory,
    start_second_run,
    stop,
    truncated,
)


@dataclass(frozen=True)
class Fault:
    name: str
    do: Harm
    tasks: tuple[str, ...] = ("toy", "toy_sync", "atari", "doom")


def _permissions_bind() -> bool:
    """Not where this is root with all its capabilities."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o500)
        return not os.access(directory, os.W_OK)


_TOY = ("toy", "toy_sync")

FAULTS = (
    Fault("rollout worker killed", signal_child("rollout", signal.SIGKILL)),
    Fault("policy worker killed", signal_child("policy", signal.SIGKILL)),
    Fault("learner killed", signal_child("learner", signal.SIGKILL)),
    Fault("rollout worker stopped", signal_child("rollout", signal.SIGSTOP)),
    Fault("policy worker stopped", signal_child("policy", signal.SIGSTOP)),
    Fault("learner stopped", signal_child("learner", signal.SIGSTOP)),
    Fault("two processes killed at once", kill_two_at_once, ("toy", "atari", "doom")),
    Fault("process killed, and again as it starts", kill_while_it_starts),
    Fault("fork server of the simulators killed", kill_fork_server("sf.rollout.worker", "rollout")),
    Fault("fork server of the networks killed", kill_fork_server("sf.learner.worker", "learner", "policy")),
    Fault("fork server stopped, and a rollout worker killed", stop_fork_server),
    Fault("resource tracker killed, and a policy worker", kill_resource_tracker),
    Fault("any process of the run killed", kill_any),
    Fault("all processes suspended", suspend),
    Fault("Doom engine killed", signal_engine(signal.SIGKILL), ("doom",)),
    Fault("Doom engine stopped", signal_engine(signal.SIGSTOP), ("doom",)),
    Fault("environment raises", env_fault("raise", "env_faults"), _TOY),
    Fault("environment returns NaN", env_fault("nan_obs", "env_faults"), _TOY),
    Fault("reward is NaN", env_fault("nan_reward", "env_faults"), _TOY),
    Fault("observation of a wrong shape", env_fault("wrong_shape", "env_faults"), _TOY),
    Fault("environment hangs", env_fault("hang", "restarts"), _TOY),
    Fault("environment kills its process", env_fault("kill", "restarts"), _TOY),
    Fault("NaN in the loss", env_fault("huge_obs", "train/skipped_updates"), ("toy",)),  # a core would bound it
    Fault("disk full", fill_disk),
    *([Fault("no permission to save", deny_permission)] if _permissions_bind() else []),
    Fault("run directory removed", remove_run_directory),
    Fault("second run on the directory", start_second_run),
    Fault("SIGINT", stop(signal.SIGINT)),
    Fault("SIGTERM", stop(signal.SIGTERM)),
    Fault("SIGHUP", stop(signal.SIGHUP)),
    Fault("SIGINT twice", interrupt_twice),
    Fault("SIGINT while the learner hangs", interrupt_with_a_learner_that_hangs),
    Fault("SIGINT while a child is replaced", interrupt_a_replacement),
    Fault("parent killed", kill_parent),
    Fault("newest checkpoint truncated", damage_newest_checkpoint(truncated)),
    Fault("a bit of the newest checkpoint flipped", damage_newest_checkpoint(flipped)),
    Fault("environment that always raises", hopeless("raise", 1.0, "toy_faulty was asked to fail"), _TOY),
    Fault("environment that kills again and again", hopeless("kill", 0.05, "has died 3 times within"), _TOY),
)
