"""How a trainer becomes one of several ranks before its run begins, and what it owes them when that has ended."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from torch.distributed import Store

from sf.config import Config
from sf.envs import UsageError
from sf.ranks.board import Board, StoreBoard
from sf.ranks.place import FAILURE, FINAL_FAILURE, USER_ERROR, LaunchMark
from sf.ranks.rendezvous import SavedRun, meet, most_saved, new_run_id
from sf.run.children.verdict import ChildError
from sf.run.plan import Plan
from sf.run.ranks_report import status_after
from sf.storage.run_dir import RunDir
from sf.system.processes.stopping import ended_by_ctrl_c

ANOTHER_RANK = "another rank"  # was asked to end, and so this one ends
_FINAL_STATUS_WITHIN_S = 5.0


@dataclass(frozen=True)
class Joined:
    """A trainer that has met the other ranks, or is alone.

    config, plan, run_dir: as they are for this rank. board: of all ranks. store: of the ranks; None: there are none.
    mark: to be set once no earlier run can come back in the place of this one.
    """

    config: Config
    plan: Plan
    run_dir: RunDir
    board: Board
    mark: LaunchMark
    store: Store | None = None

    def most_saved(self, env_steps: Sequence[int | None], run_id: str | None) -> tuple[Sequence[int | None], str]:
        """Returns the newest env steps of each policy on any rank, and the id of the run. Raises UsageError where
        ranks have different runs."""
        if self.store is None:
            return env_steps, run_id or new_run_id()
        where = f"{self.run_dir.path.absolute()} on {socket.gethostname()}"
        newest = most_saved(self.store, self.plan.place, SavedRun(env_steps, run_id, where))
        assert newest.run_id is not None  # a new one has one as well
        return newest.env_steps, newest.run_id

    def end_agent(self, stopped_by: str | None) -> None:
        """Where another machine was asked to end, so shall the agent of torchrun: it would wait for five minutes."""
        place = self.plan.place
        if stopped_by == ANOTHER_RANK and place.size > place.local_size:
            os.kill(os.getppid(), signal.SIGTERM)


@contextmanager
def joined(config: Config, plan: Plan) -> Iterator[Joined]:
    """Waits until all ranks have come. What is raised while this is open, the others hear of. Raises UsageError."""
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name).itself()
    mark = LaunchMark(run_dir.ranks, plan.place)
    if not plan.place.is_by_torchrun:
        if config.ranks.num_learners > 1:
            raise UsageError(
                f"num_learners is {config.ranks.num_learners}: a call from Python trains with one, so use sf-train, or "
                "start the script with torchrun"
            )
        yield Joined(config, plan, run_dir, Board(), mark)
        return
    if not plan.place.is_started_again:
        mark.remove()
    with ended_by_ctrl_c():
        rendezvous = meet(plan.place, config, plan.resolved, run_dir.ranks)
    place = plan.place.after(rendezvous.name, rendezvous.sees_disk_of_first)
    if not place.saves or (place.is_started_again and mark.is_there()):
        config = config.replace(restart_behavior="resume")
    run_dir = run_dir if place.saves else run_dir.of_rank(place.rank)
    with closing(
        Board() if place.is_alone else StoreBoard(rendezvous.store, place, config.ranks.rank_timeout_s)
    ) as board:
        try:
            yield Joined(config, dataclasses.replace(plan, place=place), run_dir, board, mark, rendezvous.store)
        except Exception as error:
            status = status_after(error)
            board.post(failure=str(error).partition("\n")[0], status=status)
            if isinstance(error, ChildError) and status == FAILURE:
                # This rank fails over the end of another, and may end first: the launcher goes by its status.
                status_of_other = board.final_status(_FINAL_STATUS_WITHIN_S)
                if status_of_other == USER_ERROR:
                    raise UsageError(str(error)) from error
                if status_of_other == FINAL_FAILURE:
                    raise ChildError(str(error), is_final=True) from error
            raise
