"""An evaluation: a fixed number of episodes of one or more players, played by several processes.

Called by `sf-eval`. The same task gives the same matches, environments and random numbers, however fast each process
is. Each evaluation worker plays its share of the matches, with a copy of every player of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import connection
from pathlib import Path

import numpy as np

from sf import envs
from sf.config.roles import Roles
from sf.envs import EnvGroup, EnvOptions, UsageError
from sf.envs.custom.given import GivenEnv, given_env
from sf.envs.guard import GuardedGroup
from sf.envs.remarks import handed_to
from sf.envs.seeding import env_seed, seed_process
from sf.envs.teams import sides_of
from sf.evaluation.play.contestants import Contestant, require_spaces
from sf.evaluation.play.episodes import Play, Played, make_lineups
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.player import Player
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.evaluation.recording import Parts, RecordedPlay
from sf.evaluation.results import Evaluation
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system.arrays import Field, SharedArrays
from sf.system.machine.cores import num_usable_cores, usable_cores
from sf.system.processes import reports as kinds
from sf.system.processes.child import Child, start_child
from sf.system.processes.fork_servers import ForkServer
from sf.system.processes.reports import Report, Reports
from sf.system.processes.torch_runtime import configure

_SERVER = ForkServer([__name__])  # with simulators and networks


@dataclass(frozen=True)
class RecordedTo:
    """Says where episodes are kept, see `sf.evaluation.recording`.

    num_players: of the players, the first ones, are recorded. prefix: of the names of the files, which no earlier
    recording there had.
    """

    directory: Path
    num_players: int
    prefix: str


@dataclass(frozen=True)
class EvaluationTask:
    """Says what to play. players: by name. num_episodes: at least this many of each, at each of several tasks."""

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
    roles: Roles = ()  # [A] players that may play each agent, see `sf.config.roles`; (): all
    recorded: RecordedTo | None = None  # where the episodes are kept; None: nowhere


@dataclass(frozen=True)
class EvaluationWorkerArgs:
    """Everything an evaluation worker needs to know."""

    task: EvaluationTask  # without its players; its seed differs from those that train
    given_env: GivenEnv | None  # where its `env` is the name of one that was given as an object
    players: Mapping[str, SharedArrays | Opponent]  # by name; of a policy `data`, the content of its checkpoint
    lineups: np.ndarray  # [M, A] of all matches, of all workers
    env_idxs: range  # its environments
    num_envs: int  # of all workers
    core: int | None  # that it is pinned to


def evaluation_worker(reports: Reports, args: EvaluationWorkerArgs) -> None:
    """Body of the process."""
    configure(args.task.device, num_threads=1, deterministic=True)
    players = [
        each.player()
        if isinstance(each, Opponent)
        else TorchPolicy(checkpoint.decode(each["data"].tobytes()), name, args.task.device)
        for name, each in args.players.items()
    ]
    seed_process(args.task.seed, args.env_idxs.start)
    with handed_to(reports.remark):
        _play(reports, args, players)
    reports.send(kinds.Finished())


def _play(reports: Reports, args: EvaluationWorkerArgs, players: Sequence[Player]) -> None:
    task = args.task
    group = guarded_group(task.env, task.options, task.seed, args.env_idxs, args.core)
    try:
        what = group, players, args.lineups, args.env_idxs, args.num_envs, task.seed, task.deterministic
        to, parts = task.recorded, None
        if to is not None:
            parts = Parts(to.directory, f"{to.prefix}-{args.env_idxs.start:04d}")
            play: Play = RecordedPlay(parts, to.num_players, *what)
        else:
            play = Play(*what)
        reports.send(kinds.Ready())
        while not play.is_done:
            played = play.step()
            for match_idx in play.pop_begun_anew():
                reports.send(kinds.BegunAnew(match_idx))
            if played:
                reports.send(kinds.EpisodesPlayed([asdict(episode) for episode in played]))
            for fault in group.pop_faults():
                reports.send(kinds.EnvFault(**asdict(fault)))
        if parts is not None:
            parts.write()
    finally:
        group.close()


def guarded_group(env: str, options: EnvOptions, seed: int, env_idxs: range, core: int | None) -> GuardedGroup:
    """The environments with these positions, rebuilt where they fail. core: that the caller is pinned to."""

    def make(attempt: int) -> EnvGroup:
        own_seed = env_seed(seed, attempt) if attempt else seed
        return envs.make_group(env, len(env_idxs), options, seed=own_seed, first_env_idx=env_idxs.start, core=core)

    return GuardedGroup(make, env_id=env)


_NEWS_EVERY_S = 5.0  # of the progress, where workers have none
_SEED_KEY = 0x5C0E  # so that its environments differ from those that train


def evaluate(task: EvaluationTask, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Evaluation:
    """Play all matches. on_progress: called with the number of episodes that are over, and of all: at news, and every
    few seconds without.

    Raises ValueError for what the user can fix, RuntimeError where a worker fails for another reason.
    """
    spec = envs.describe(task.env, task.options)
    if spec.tasks and task.options.task is None:
        return _evaluate_each(list(spec.tasks), task, on_progress)
    require_spaces(task.players, task.env, spec, task.options, task.roles)
    sides = sides_of(spec)
    lineups = make_lineups(len(task.players), spec.num_agents, task.num_episodes, task.seed, sides, task.roles)
    of_workers = replace(task, players={}, seed=env_seed(task.seed, _SEED_KEY))
    cores = usable_cores()
    num_workers = min(task.num_workers or num_usable_cores(), len(lineups))
    envs_per_worker = min(task.num_envs_per_worker, -(-len(lineups) // num_workers))
    num_envs = num_workers * envs_per_worker
    # In shared memory: the run may still go on, and remove a file before a worker has read it.
    players = {name: each if isinstance(each, Opponent) else _shared(each) for name, each in task.players.items()}
    _SERVER.ensure_running()
    children = []
    evaluation = Evaluation(task.objective, sides=sides)
    try:
        for idx in range(num_workers):
            args = EvaluationWorkerArgs(
                task=of_workers,
                given_env=given_env(task.env),
                players=players,
                lineups=lineups,
                env_idxs=range(idx * envs_per_worker, (idx + 1) * envs_per_worker),
                num_envs=num_envs,
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


def _evaluate_each(names: Sequence[str], task: EvaluationTask, on_progress: Callable[[int, int], None]) -> Evaluation:
    """Play the matches of one task after the other. names: of the tasks of the environment."""
    whole = Evaluation(task.objective)

    def on_progress_of_one(done: int, total: int) -> None:
        on_progress(len(whole.episodes) + done, len(names) * total)

    for name in names:
        whole.add(evaluate(replace(task, options=replace(task.options, task=name)), on_progress_of_one))
    return whole


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
                if isinstance(report, kinds.Finished):
                    unfinished.remove(child)
            on_episodes()
            if child.connection.closed and child in unfinished:
                child.join()
                raise RuntimeError(f"{child.name} {child.cause_of_death()}")


def _take(child: Child, report: Report, evaluation: Evaluation) -> None:
    match report:
        case kinds.EpisodesPlayed(episodes):
            evaluation.episodes += [Played(**episode) for episode in episodes]
        case kinds.BegunAnew(match_idx):
            evaluation.episodes = [each for each in evaluation.episodes if each.match_idx != match_idx]
        case kinds.EnvFault():
            evaluation.num_env_faults += report.count
        case kinds.Remark(about, text):
            evaluation.remarks.setdefault(about, text)
        case kinds.Failed():
            child.error = report
            if report.is_usage_error:
                raise UsageError(report.message)
