"""What is known of a run at a moment: rates, returns, shares of time, and which part holds the others up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sf.counters import Counters

Roles = dict[str, list[int]]
"""Rows of the counters by role: rollout, policy, learner."""

_ENOUGH_EPISODES = 0.5  # of `stats_avg`, for an objective
_NOTABLE_WAIT = 0.2  # a share of time that is worth a word


class PolicyProgress:
    """What is known of one policy."""

    def __init__(self, stats_avg: int) -> None:
        self.env_steps = 0  # that its learner has taken
        self.episodes: deque[list] = deque(maxlen=stats_avg)  # the latest: return, steps, frames, stats
        self.train: dict[str, float] = {}  # of its latest report

    def objective(self, name: str) -> float | None:
        """Mean of the statistic `name` of its episodes, or of the return where they have no such; None: too few."""
        assert self.episodes.maxlen is not None
        if len(self.episodes) < self.episodes.maxlen * _ENOUGH_EPISODES:
            return None
        return float(np.mean([episode[3].get(name, episode[0]) for episode in self.episodes]))

    def means(self) -> dict[str, Any]:
        """Of its latest episodes, and of its training."""
        return {**episode_means(self.episodes), **{f"train/{name}": value for name, value in self.train.items()}}


@dataclass
class Progress:
    """Collects the reports of the children; `record` makes one record of all that happened since the last.

    With several policies the names of a record are of all of them together, and once more of each, behind
    `policy_00/` and so on.
    """

    counters: Counters
    roles: Roles
    frameskip: int
    stats_avg: int
    num_policies: int = 1
    objective: str = "true_objective"  # the statistic of episodes that says how good a policy is
    started_at: float = field(default_factory=time.perf_counter)
    seconds_before: float = 0.0  # wall time of earlier parts of a resumed run
    num_episodes: int = 0
    num_restarts: int = 0  # of processes that died
    num_lost_episodes: int = 0  # that were running in them
    num_lost_frames: int = 0  # that dead learners had trained on without a trace
    num_env_faults: int = 0  # environments that failed and were made anew

    def __post_init__(self) -> None:
        self.policies = [PolicyProgress(self.stats_avg) for _ in range(self.num_policies)]
        self._begun: set[int] = set()  # policies whose learners have said where they begin
        self._evaluation: dict[str, Any] = {}  # that is in no record yet
        self._previous = (self.started_at, self.counters.snapshot())
        self._first_trained: tuple[float, int] | None = None  # when the first batch had been trained on
        self._last_trained: tuple[float, int] | None = None

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.started_at

    @property
    def env_steps(self) -> int:
        """That all learners have taken."""
        return sum(policy.env_steps for policy in self.policies)

    @property
    def has_begun(self) -> bool:
        """Whether all learners have said where they begin."""
        return len(self._begun) == self.num_policies

    def resume(self, policy_id: int, env_steps: int, seconds_before: float) -> bool:
        """Go on where an earlier part of the run ended. False where this policy has begun already."""
        if policy_id in self._begun:
            return False
        self._begun.add(policy_id)
        self.policies[policy_id].env_steps = env_steps
        self.seconds_before = max(self.seconds_before, seconds_before)
        return True

    def add_episodes(self, episodes: list[list]) -> None:
        """episodes: return, steps, frames, stats, and the policy that played it."""
        for *episode, policy_id in episodes:
            self.policies[policy_id].episodes.append(episode)
        self.num_episodes += len(episodes)

    def add_training(self, policy_id: int, env_steps: int, metrics: dict[str, float]) -> None:
        self.policies[policy_id].env_steps = env_steps
        self.policies[policy_id].train.update(metrics)
        self._last_trained = (time.perf_counter(), self.env_steps)
        self._first_trained = self._first_trained or self._last_trained

    def add_evaluation(self, metrics: dict[str, Any]) -> None:
        """They are in the next record, and in no other."""
        self._evaluation.update(metrics)

    def record(self) -> dict[str, Any]:
        """One flat record; shares and rates are of the time since the last one."""
        now, counts = time.perf_counter(), self.counters.snapshot()
        then, counts_then = self._previous
        self._previous = (now, counts)
        delta = {name: counts[name] - counts_then[name] for name in counts}
        elapsed = max(now - then, 1e-9)
        record: dict[str, Any] = {
            "env_steps": self.env_steps,
            "env_frames": self.env_steps * self.frameskip,
            "seconds": self.seconds,
            "env_frames_per_second": self._rate(delta, "learner", elapsed) * self.frameskip,
            "sampled_env_frames_per_second": self._rate(delta, "rollout", elapsed) * self.frameskip,
            "episodes": self.num_episodes,
            **self._losses(),
            **self._means(),
            **self._shares(delta, elapsed),
            **self._evaluation,
        }
        self._evaluation = {}
        return record

    def summary(self) -> dict[str, Any]:
        """The whole run in one record."""
        total = self.counters.snapshot()
        elapsed = max(time.perf_counter() - self.started_at, 1e-9)
        frames_now = float(total["steps"][self.roles["learner"]].sum()) * self.frameskip
        steady = 0.0
        if self._first_trained and self._last_trained and self._last_trained[0] > self._first_trained[0]:
            (t0, steps0), (t1, steps1) = self._first_trained, self._last_trained
            steady = (steps1 - steps0) * self.frameskip / (t1 - t0)
        return {
            "env_steps": self.env_steps,
            "env_frames": self.env_steps * self.frameskip,
            "seconds": self.seconds,
            "env_frames_per_second": frames_now / elapsed,
            "steady_env_frames_per_second": steady,
            "episodes": self.num_episodes,
            **self._losses(),
            **self._means(),
            **self._shares(total, elapsed),
        }

    def bottleneck(self, record: dict[str, Any]) -> str:
        """One plain sentence: which part the others wait for, and what to turn."""
        if self._first_trained is None:
            return "none yet: starting"
        if record["rollout/slot_wait_share"] > _NOTABLE_WAIT:
            return "the learner: rollout workers wait for it to take data (a GPU, a smaller model, fewer workers)"
        if record["rollout/wait_share"] > _NOTABLE_WAIT and record["policy/wait_share"] < 0.5:
            return "inference: rollout workers wait for actions (more --num_envs_per_worker, a GPU, a smaller model)"
        if record["learner/wait_share"] > _NOTABLE_WAIT:
            return "the environments: the learner waits for data (more cores and --num_workers)"
        return "balanced: no part waits much for another"

    def _rate(self, delta: dict[str, np.ndarray], role: str, elapsed: float) -> float:
        return float(delta["steps"][self.roles[role]].sum()) / elapsed

    def _shares(self, delta: dict[str, np.ndarray], elapsed: float) -> dict[str, float]:
        shares = {}
        for role, rows in self.roles.items():
            for name in ("busy", "wait", "slot_wait"):
                if name != "slot_wait" or role == "rollout":
                    # A wait is counted when it ends, so it may be longer than the time since the last record.
                    share = float(delta[f"{name}_s"][rows].mean() / elapsed)
                    shares[f"{role}/{name}_share"] = min(1.0, share)
        policy = self.roles["policy"]
        shares["policy/actions_per_batch"] = float(delta["steps"][policy].sum() / max(delta["calls"][policy].sum(), 1))
        return shares

    def _losses(self) -> dict[str, int]:
        return {
            "restarts": self.num_restarts,
            "lost_episodes": self.num_lost_episodes,
            "lost_frames": self.num_lost_frames,
            "env_faults": self.num_env_faults,
        }

    def _means(self) -> dict[str, Any]:
        if self.num_policies == 1:
            return self.policies[0].means()
        trains = [policy.train for policy in self.policies]
        names = sorted(set().union(*trains))
        of_all = {f"train/{name}": float(np.mean([t[name] for t in trains if name in t])) for name in names}
        means = {**episode_means([episode for policy in self.policies for episode in policy.episodes]), **of_all}
        for policy_id, policy in enumerate(self.policies):
            own = {"env_steps": policy.env_steps, **policy.means(), "true_objective": policy.objective(self.objective)}
            means |= {f"policy_{policy_id:02d}/{name}": value for name, value in own.items()}
        return means


def episode_means(episodes: Collection[list]) -> dict[str, Any]:
    """Over finished episodes: return, steps, frames, stats."""
    if not episodes:
        return {"mean_return": None, "mean_episode_steps": None}
    returns = [episode[0] for episode in episodes]
    means = {
        "mean_return": float(np.mean(returns)),
        "std_return": float(np.std(returns)),
        "min_return": float(np.min(returns)),
        "max_return": float(np.max(returns)),
        "mean_episode_steps": float(np.mean([episode[1] for episode in episodes])),
        "mean_episode_frames": float(np.mean([episode[2] for episode in episodes])),
    }
    for name in sorted({name for episode in episodes for name in episode[3]}):
        means[f"stats/{name}"] = float(np.mean([episode[3][name] for episode in episodes if name in episode[3]]))
    return means
