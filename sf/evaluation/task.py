"""An evaluation: a fixed number of episodes of one or more players, played by several processes.

Called by `sf-eval`. The same task gives the same matches, environments and random numbers, however fast each process
is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection

import numpy as np

from sf import envs
from sf.arrays import Field, SharedArrays
from sf.envs import EnvOptions, UsageError
from sf.envs.custom.given import given_env
from sf.envs.seeding import env_seed
from sf.evaluation.results import Evaluation
from sf.evaluation.worker import EvaluationWorkerArgs, evaluation_worker
from sf.machine.cores import num_usable_cores, usable_cores
from sf.play.contestants import Contestant, require_spaces
from sf.play.episodes import Played, make_lineups
from sf.play.opponents import Opponent
from sf.processes.child import Child, start_child
from sf.processes.fork_servers import ForkServer
from sf.processes.reports import BegunAnew, EnvFault, EpisodesPlayed, Failed, Finished, Remark, Report
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

_SERVER = ForkServer([evaluation_worker.__module__])  # with simulators and networks
_NEWS_EVERY_S = 5.0  # of the progress, where workers have none
_SEED_KEY = 0x5C0E  # so that its environments differ from those that train


@dataclass(frozen=True)
class EvaluationTask:
    """What to play. players: by name. num_episodes: at least this many of each."""

    env: str
    options: EnvOptions
    players: Mapping[str, Contestant]
    num_episodes: int
    objective: str = "true_objective"  # see Evaluation
    seed: int = 0
    deterministic: bool = False
    device: str = "cpu"
    num_workers: int | None = None  # None: one a core
    num_envs_per_worker: int = 4


def evaluate(task: EvaluationTask, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Evaluation:
    """Play all matches. on_progress: called with the number of episodes that are over, and of all: at news, and every
    few seconds without.

    Raises ValueError for what the user can fix, RuntimeError where a worker fails for another reason.
    """
    spec = envs.describe(task.env, task.options)
    require_spaces(task.players, task.env, spec)
    lineups = make_lineups(len(task.players), spec.num_agents, task.num_episodes, task.seed)
    seed = env_seed(task.seed, _SEED_KEY)
    cores = usable_cores()
    num_workers = min(task.num_workers or num_usable_cores(), len(lineups))
    envs_per_worker = min(task.num_envs_per_worker, -(-len(lineups) // num_workers))
    num_envs = num_workers * envs_per_worker
    # In shared memory: the run may still go on, and remove a file before a worker has read it.
    players = {name: each if isinstance(each, Opponent) else _shared(each) for name, each in task.players.items()}
    _SERVER.ensure_running()
    children = []
    evaluation = Evaluation(task.objective)
    try:
        for idx in range(num_workers):
            args = EvaluationWorkerArgs(
                env=task.env,
                given_env=given_env(task.env),
                options=task.options,
                players=players,
                lineups=lineups,
                env_idxs=range(idx * envs_per_worker, (idx + 1) * envs_per_worker),
                num_envs=num_envs,
                seed=seed,
                deterministic=task.deterministic,
                device=task.device,
                core=cores[idx % len(cores)] if num_workers >= len(cores) else None,
            )
            children.append(start_child(_SERVER, "player", idx, evaluation_worker, args))
        on_progress(0, lineups.size)
        _collect(children, evaluation, lambda: on_progress(len(evaluation.episodes), lineups.size))
    finally:
        for child in children:
            child.process.kill()
            child.join()
    evaluation.episodes.sort(key=lambda episode: (episode.match_idx, episode.agent_idx))
    return evaluation


def _shared(saved: Checkpoint) -> SharedArrays:
    data = np.frombuffer(checkpoint.encode(saved), np.uint8)
    memory = SharedArrays([Field("data", data.shape, np.uint8)])
    memory["data"][:] = data
    return memory


def _collect(children: Sequence[Child], evaluation: Evaluation, on_episodes: Callable[[], None]) -> None:
    """Take reports until all workers have finished."""
    unfinished = list(children)
    while unfinished:
        if not connection.wait([child.connection for child in unfinished], timeout=_NEWS_EVERY_S):
            on_episodes()
        for child in list(unfinished):
            for report in child.receive():
                _take(child, report, evaluation)
                if isinstance(report, Finished):
                    unfinished.remove(child)
            on_episodes()
            if child.connection.closed and child in unfinished:
                child.join()
                raise RuntimeError(f"{child.name} {child.cause_of_death()}")


def _take(child: Child, report: Report, evaluation: Evaluation) -> None:
    match report:
        case EpisodesPlayed(episodes):
            evaluation.episodes += [Played(**episode) for episode in episodes]
        case BegunAnew(match_idx):
            evaluation.episodes = [each for each in evaluation.episodes if each.match_idx != match_idx]
        case EnvFault():
            evaluation.num_env_faults += report.count
        case Remark(about, text):
            evaluation.remarks.setdefault(about, text)
        case Failed():
            child.error = report
            if report.is_usage_error:
                raise UsageError(report.message)
