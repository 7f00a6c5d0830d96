"""Evaluation: a fixed number of episodes of one or more policies, over several processes.

Called by `sf-eval`. The same call gives the same matches, environments and random numbers, whichever process is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection
from typing import Any

import numpy as np

from sf import envs
from sf.arrays import Field, SharedArrays
from sf.envs import EnvOptions, UsageError
from sf.evaluation.player import PlayerArgs, player
from sf.evaluation.statistics import Statistics, statistics
from sf.machine.cores import num_usable_cores, usable_cores
from sf.play.episodes import Played, make_lineups
from sf.processes.child import Child, start_child
from sf.processes.fork_servers import PLAYERS
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint


@dataclass(frozen=True)
class EvaluationTask:
    """What to play. policies: by name. num_episodes: of each policy, at least."""

    env: str
    options: EnvOptions
    policies: Mapping[str, Checkpoint]
    num_episodes: int
    objective: str = "true_objective"  # see Evaluation
    seed: int = 0
    deterministic: bool = False
    device: str = "cpu"
    num_workers: int | None = None  # None: one a core
    num_envs_per_worker: int = 4


@dataclass
class Evaluation:
    """What was played, in the order of the matches.

    objective: the statistic of episodes that says how good a policy is, where they have it; else it is the return.
    """

    objective: str
    episodes: list[Played] = field(default_factory=list)
    num_env_faults: int = 0
    remarks: dict[str, str] = field(default_factory=dict)  # of environments, by what they are about

    def names(self, policy_idx: int) -> list[str]:
        """Of what is known of each episode: return, num_steps, num_frames, and the environment's own statistics."""
        own = {name for episode in self._of(policy_idx) for name in episode.stats}
        return ["return", "num_steps", "num_frames", *sorted(own)]

    def statistics(self, policy_idx: int) -> dict[str, Statistics]:
        """By name; empty where the policy has no episode, since its agents sat their matches out."""
        own = self._of(policy_idx)
        return {name: _statistics(own, partial(_value, name=name)) for name in self.names(policy_idx)} if own else {}

    def score_of(self, policy_idx: int) -> float | None:
        """Mean of the objective; None where the policy has no episode."""
        scores = [self._score(episode) for episode in self._of(policy_idx)]
        return float(np.mean(scores)) if scores else None

    def score_against(self, policy_idx: int, opponent_idx: int) -> Statistics | None:
        """As `score_of`, of the matches where another one played, too; None where they never met."""
        lineups: dict[int, set[tuple[int, int]]] = {}
        for episode in self.episodes:
            lineups.setdefault(episode.match_idx, set()).add((episode.agent_idx, episode.policy_idx))
        met = [
            episode
            for episode in self._of(policy_idx)
            if any(p == opponent_idx and agent != episode.agent_idx for agent, p in lineups[episode.match_idx])
        ]
        return _statistics(met, self._score) if met else None

    def _score(self, episode: Played) -> float:
        return episode.stats.get(self.objective, episode.episode_return)

    def _of(self, policy_idx: int) -> list[Played]:
        return [episode for episode in self.episodes if episode.policy_idx == policy_idx]


def _statistics(episodes: Sequence[Played], read: Callable[[Played], float | None]) -> Statistics:
    known = [(value, episode.match_idx) for episode in episodes if (value := read(episode)) is not None]
    values, match_idxs = zip(*known, strict=True)
    return statistics(values, match_idxs)


def _value(episode: Played, name: str) -> float | None:
    of_all = {"return": episode.episode_return, "num_steps": episode.num_steps, "num_frames": episode.num_frames}
    return of_all.get(name, episode.stats.get(name))


def evaluate(task: EvaluationTask, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Evaluation:
    """Play all matches. on_progress: is told how many episodes of how many are over.

    Raises ValueError for what the user can mend, RuntimeError where a worker fails otherwise.
    """
    num_agents = envs.describe(task.env, task.options).num_agents
    lineups = make_lineups(len(task.policies), num_agents, task.num_episodes, task.seed)
    cores = usable_cores()
    num_workers = min(task.num_workers or num_usable_cores(), len(lineups))
    envs_per_worker = min(task.num_envs_per_worker, -(-len(lineups) // num_workers))
    num_envs = num_workers * envs_per_worker
    # In shared memory: a file may be gone when a worker wants it, since the run that wrote it goes on.
    policies = {name: _shared(saved) for name, saved in task.policies.items()}
    PLAYERS.ensure_running()
    children = []
    evaluation = Evaluation(task.objective)
    try:
        for idx in range(num_workers):
            args = PlayerArgs(
                env=task.env,
                options=task.options,
                policies=policies,
                lineups=lineups,
                env_idxs=range(idx * envs_per_worker, (idx + 1) * envs_per_worker),
                num_envs=num_envs,
                seed=task.seed,
                deterministic=task.deterministic,
                device=task.device,
                core=cores[idx % len(cores)] if num_workers >= len(cores) else None,
            )
            children.append(start_child(PLAYERS, "player", idx, player, args))
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
    """Until all have finished."""
    unfinished = list(children)
    while unfinished:
        connection.wait([child.connection for child in unfinished])
        for child in list(unfinished):
            for report in child.receive():
                _take(child, report, evaluation)
                if report["kind"] == "finished":
                    unfinished.remove(child)
            on_episodes()
            if child.connection.closed and child in unfinished:
                child.join()
                raise RuntimeError(f"{child.name} {child.cause_of_death()}")


def _take(child: Child, report: dict[str, Any], evaluation: Evaluation) -> None:
    if report["kind"] == "played":
        evaluation.episodes += [Played(**episode) for episode in report["episodes"]]
    elif report["kind"] == "fault":
        evaluation.num_env_faults += report["count"]
    elif report["kind"] == "remark":
        evaluation.remarks.setdefault(report["about"], report["text"])
    elif report["kind"] == "error":
        child.error = report
        if report["is_usage_error"]:
            raise UsageError(report["message"])
