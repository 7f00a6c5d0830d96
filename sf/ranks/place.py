"""Where this trainer stands among the ranks, as `torchrun` says it in environment variables, and in which launch."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sf.config import Config
from sf.envs.errors import UsageError
from sf.ranks.agent import end_with_agent
from sf.storage import text_files
from sf.storage.run_dir import write_atomically
from sf.system.machine.cores import num_usable_cores, shares, usable_cores

FAILURE, USER_ERROR = 1, 2  # exit statuses, see sf.tools.commands.ends
FINAL_FAILURE = 3  # of a rank that would fail again
STARTED_AGAIN = "SF_RANKS_STARTED_AGAIN"  # a variable that the launcher sets
_SEED_STRIDE = 1_000_003  # between ranks; environments count up from the seed of their rank


@dataclass(frozen=True)
class Place:
    """rank: from 0 to size - 1. local_rank: among the `local_size` ranks of this machine.

    is_by_torchrun: which may start it again. rendezvous: the name under which the ranks have met, once they have.
    has_disk: it keeps the run on a disk that the first rank does not see, so that the run goes on from there where the
    machine of that one is lost.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    is_by_torchrun: bool = False
    rendezvous: str = ""
    has_disk: bool = False

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] | None = None) -> Place:
        """Reads the variables of `torchrun`; alone if there are none. Raises UsageError if some are missing."""
        variables = os.environ if variables is None else variables
        if "RANK" not in variables or "WORLD_SIZE" not in variables:
            return ALONE_HERE
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        for name in (*names, "MASTER_ADDR", "MASTER_PORT"):
            value = variables.get(name)
            if not value or (name != "MASTER_ADDR" and not value.isdecimal()):
                raise UsageError(
                    "RANK and WORLD_SIZE are set, as torchrun does it, but another variable is not "
                    f"({name} is {'not there' if value is None else repr(value)}): start the ranks with torchrun, or "
                    "unset them"
                )
        rank, size, local_rank, local_size = (int(variables[name]) for name in names)
        return cls(rank, size, local_rank, local_size, is_by_torchrun=True)

    @property
    def is_alone(self) -> bool:
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Returns whether it does what is done once: merged metrics, evaluations, the display."""
        return self.rank == 0

    @property
    def is_started_again(self) -> bool:
        """After a failure, by torchrun or by `--num_learners`."""
        return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0" or STARTED_AGAIN in os.environ

    @property
    def saves(self) -> bool:
        """Returns whether it writes checkpoints: one rank for each disk."""
        return self.is_first or self.has_disk

    def after(self, rendezvous: str, sees_disk_of_first: bool) -> Place:
        """The place of a rank that has met the others."""
        has_disk = not sees_disk_of_first and self.local_rank == 0
        return dataclasses.replace(self, rendezvous=rendezvous, has_disk=has_disk)

    def settle(self) -> None:
        """Make this process one of several: it ends with the agent of torchrun, and it, and those that it starts, keep
        to their share of the cores. One of them tells the user."""
        if self.is_by_torchrun:
            end_with_agent()
        self.take_cores()
        if not self.is_first:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def take_cores(self) -> None:
        """Once: those that are left would be shared out again."""
        if self.local_size > 1 and not _taken:
            _taken.append(True)
            own = shares(usable_cores(), self.local_size, num_usable_cores())[self.local_rank]
            os.sched_setaffinity(0, own)

    def config_of(self, run: Config) -> Config:
        """Returns that of this rank: it draws other numbers than the first, which alone does what is done once."""
        if self.is_first:
            return run
        return run.replace(
            seed=(run.run.seed + _SEED_STRIDE * self.rank) % 2**32,
            with_pbt=False,
            stop_at_return=None,
            save_milestones_sec=0,
            eval_every_env_steps=None,
            video_every_env_steps=None,
            exploitability_every_env_steps=None,
        )


ALONE_HERE = Place()
_taken: list[bool] = []  # whether this process has its share of the cores


class LaunchMark:
    """Tells whether the run in the directory is that of this launch, by a file that the first rank sets.

    The file has the id of the launch. A launch is all starts of the ranks by one torchrun or one `--num_learners`. With
    `--restart_behavior restart` or `overwrite` a start that fails before the new run is under way puts back the earlier
    one. Ranks that are started again tell by the mark which of the two they find: their own they resume, in the place
    of the other they begin anew.
    """

    def __init__(self, folder: Path, place: Place, variables: Mapping[str, str] | None = None) -> None:
        """folder: for what ranks write. variables: of the environment."""
        variables = os.environ if variables is None else variables
        self._path = folder / "under_way"
        self._launch = variables.get("TORCHELASTIC_RUN_ID", "")
        self._is_of_this_rank = place.is_by_torchrun and place.is_first
        self._is_set = False

    def is_there(self) -> bool:
        """Returns whether this launch has set the mark. Raises ValueError if a link is in its place."""
        text_files.require_file(self._path)
        try:
            return self._path.read_text(errors="replace") == self._launch
        except OSError:  # nobody has
            return False

    def set(self) -> None:
        """No earlier run will be put back. May be called again and again: a disk that is full now has room later."""
        if self._is_of_this_rank and not self._is_set:
            with suppress(OSError):
                write_atomically(self._path, self._launch.encode())
                self._is_set = True

    def remove(self) -> None:
        """At the first start: torchrun without --rdzv-id calls all launches the same. One of another launch stays."""
        if self._is_of_this_rank and self.is_there():
            with suppress(OSError):
                self._path.unlink()


def require_can_be_ranked(config: Config, place: Place) -> None:
    """Raises UsageError for what several ranks cannot do."""
    if place.size > place.local_size and config.run.restart_behavior != "resume":
        raise UsageError(
            f"restart_behavior is {config.run.restart_behavior}: torchrun starts the ranks again whenever a machine "
            "comes or goes, and each time they would begin anew; leave it out and name another --experiment"
        )
    hangs_s, gone_s = config.supervision.worker_timeout_s, config.ranks.rank_timeout_s
    if hangs_s < gone_s:
        raise UsageError(
            f"worker_timeout_s is {hangs_s:g}, and rank_timeout_s {gone_s:g}: "
            "a learner that waits for another rank would be killed first; raise worker_timeout_s"
        )
    reasons = {
        "players that do not learn (past_share)": config.players.with_players,
        "gradient_workers": bool(config.learner.gradient_workers),
        "buffer_games": config.learner.algorithm == "search" and config.search.buffer_games > 0,
        "trajectory_priority": config.learner.trajectory_priority > 0,
    }
    for what, is_asked in reasons.items():
        if is_asked:
            raise UsageError(f"several learners cannot train with {what}: leave it out, or use one learner")
