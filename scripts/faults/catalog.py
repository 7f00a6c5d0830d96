"""Everything that a campaign does to a run.

A fault does its harm and waits until the run has noticed; whether it then goes on as if nothing had been is for the
campaign to see. One that ends the run checks how it ended; the campaign resumes it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from faults.machine import permissions_bind
from faults.of_processes import (
    env_fault,
    kill_any,
    kill_fork_server,
    kill_gradient_worker,
    kill_resource_tracker,
    kill_two_at_once,
    kill_while_it_starts,
    signal_child,
    signal_engine,
    stop_fork_server,
    stop_gradient_worker,
    suspend,
)
from faults.of_runs import (
    damage_newest_checkpoint,
    deny_permission,
    end_as_it_starts,
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
from faults.of_sweeps import (
    end_sweep,
    end_sweep_as_it_starts,
    interrupt_sweep_twice,
    kill_parent_of_a_run,
    kill_process_of_a_run,
    start_second_sweep,
)

_ONE_POLICY = ("toy", "toy_sync", "own", "atari", "doom")
_POPULATIONS = ("pair", "population")
_LEAGUE = ("league",)
_ALL = (*_ONE_POLICY, *_POPULATIONS, *_LEAGUE)
_TOY = ("toy", "toy_sync")
_EVALUATED = ("own", *_POPULATIONS)
_SWEEP = ("sweep",)


@dataclass(frozen=True)
class Fault:
    """do: of a session of the task."""

    name: str
    do: Callable[[Any, Random], None]
    tasks: tuple[str, ...] = _ONE_POLICY
    is_possible: Callable[[], bool] = lambda: True  # on this machine


FAULTS = (
    Fault("rollout worker killed", signal_child("rollout", signal.SIGKILL), _ALL),
    Fault("policy worker killed", signal_child("policy", signal.SIGKILL), _ALL),
    Fault("player worker killed", signal_child("player", signal.SIGKILL), _LEAGUE),
    Fault("player worker stopped", signal_child("player", signal.SIGSTOP), _LEAGUE),
    Fault("learner killed", signal_child("learner", signal.SIGKILL), _ALL),
    Fault("rollout worker stopped", signal_child("rollout", signal.SIGSTOP), _ALL),
    Fault("policy worker stopped", signal_child("policy", signal.SIGSTOP), _ALL),
    Fault("learner stopped", signal_child("learner", signal.SIGSTOP), _ALL),
    Fault("gradient worker killed", kill_gradient_worker, ("toy_sync",)),
    Fault("gradient worker stopped", stop_gradient_worker, ("toy_sync",)),
    Fault("evaluator killed", signal_child("evaluator", signal.SIGKILL), _EVALUATED),
    Fault("evaluator stopped", signal_child("evaluator", signal.SIGSTOP), _EVALUATED),
    Fault("two processes killed at once", kill_two_at_once, tuple(task for task in _ALL if task != "toy_sync")),
    Fault("process killed, and again as it starts", kill_while_it_starts, _ALL),
    Fault("fork server of the simulators killed", kill_fork_server("sf.rollout.worker", "rollout"), _ALL),
    Fault(
        "fork server of the networks killed",
        kill_fork_server("sf.learner.worker", "learner", "policy", "player", "evaluator"),
        _ALL,
    ),
    Fault("fork server stopped, and a rollout worker killed", stop_fork_server, _ALL),
    Fault("resource tracker killed, and a policy worker", kill_resource_tracker),
    Fault("any process of the run killed", kill_any, _ALL),
    Fault("all processes suspended", suspend, _ALL),
    Fault("Doom engine killed", signal_engine(signal.SIGKILL), ("doom",)),
    Fault("Doom engine stopped", signal_engine(signal.SIGSTOP), ("doom",)),
    Fault("environment raises", env_fault("raise", "env_faults"), (*_TOY, "own", "pair")),
    Fault("environment returns NaN", env_fault("nan_obs", "env_faults"), (*_TOY, "own")),
    Fault("reward is NaN", env_fault("nan_reward", "env_faults"), (*_TOY, "own")),
    Fault("observation of a wrong shape", env_fault("wrong_shape", "env_faults"), (*_TOY, "own")),
    Fault("environment hangs", env_fault("hang", "restarts"), _TOY),
    Fault("environment kills its process", env_fault("kill", "restarts"), _TOY),
    Fault("NaN in the loss", env_fault("huge_obs", "train/skipped_updates"), ("toy",)),  # a core would bound it
    Fault("disk full", fill_disk, _ALL),
    Fault("no permission to save", deny_permission, is_possible=permissions_bind),
    Fault("run directory removed", remove_run_directory, _ALL),
    Fault("second run on the directory", start_second_run, _ALL),
    Fault("SIGINT", stop(signal.SIGINT), _ALL),
    Fault("SIGTERM", stop(signal.SIGTERM), _ALL),
    Fault("SIGHUP", stop(signal.SIGHUP), _ALL),
    Fault("SIGINT twice", interrupt_twice, _ALL),
    Fault("SIGINT while the learner hangs", interrupt_with_a_learner_that_hangs, _ALL),
    Fault("SIGINT while a child is replaced", interrupt_a_replacement, _ALL),
    Fault("parent killed", kill_parent, _ALL),
    Fault("ended as it starts", end_as_it_starts, _ALL),
    Fault("newest checkpoint truncated", damage_newest_checkpoint(truncated), _ALL),
    Fault("a bit of the newest checkpoint flipped", damage_newest_checkpoint(flipped), _ALL),
    Fault("environment that always raises", hopeless("raise", 1.0, "toy_faulty was asked to fail"), _TOY),
    Fault("environment that kills again and again", hopeless("kill", 0.05, "has died 3 times within"), _TOY),
    Fault("sweep: SIGINT", end_sweep(signal.SIGINT), _SWEEP),
    Fault("sweep: SIGTERM", end_sweep(signal.SIGTERM), _SWEEP),
    Fault("sweep: SIGKILL", end_sweep(signal.SIGKILL), _SWEEP),
    Fault("sweep: SIGINT twice", interrupt_sweep_twice, _SWEEP),
    Fault("sweep: ended as it starts", end_sweep_as_it_starts, _SWEEP),
    Fault("sweep: parent of a run killed", kill_parent_of_a_run, _SWEEP),
    Fault("sweep: rollout or policy worker of a run killed", kill_process_of_a_run("rollout", "policy"), _SWEEP),
    Fault("sweep: learner of a run killed", kill_process_of_a_run("learner"), _SWEEP),
    Fault("sweep: second one on its directory", start_second_sweep, _SWEEP),
)
