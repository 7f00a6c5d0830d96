"""Where time limits end episodes: what a truncated episode counts as, and early cuts that spread the ends.

Environments with a time limit begin their episodes together, and would go on in step for ever. With many actors an
iteration then holds one part of an episode alone, now its beginning, now its end, and the policy follows. So one early
episode of each environment is cut at a random step: from there on they are spread over all steps. (Isaac Lab begins
with episodes of random length, Sample Factory with random steps, for the same reason.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from sf.envs import EnvSpec
from sf.envs.remarks import remark
from sf.rollout.recorders import Recorder, Step

_NOT_YET = -1  # no time limit has ended an episode
_DONE = -2


def truncations_are_ends(bootstrap: bool | Literal["auto"], spec: EnvSpec) -> bool:
    """Returns whether truncated episodes count as ended. bootstrap: see `LearnerConfig.bootstrap_truncated`."""
    return spec.has_own_time_limit if bootstrap == "auto" else not bootstrap


class EndsAtTruncations(Recorder):
    """Marks the last rows of truncated episodes as terminated, so no value is bootstrapped from what follows them."""

    def __init__(self, env: str, bootstrap: bool | Literal["auto"], terminated: np.ndarray) -> None:
        """env: its name. bootstrap: as the flag."""
        self._env = env
        self._is_own_choice = bootstrap == "auto"
        self._terminated = terminated  # [num_slots, T]

    def after_step(self, step: Step) -> None:
        truncated = step.result.truncated
        if self._is_own_choice and truncated.any():
            remark(
                f"{self._env} truncated",
                f"{self._env} returns truncated=True by itself, and such an episode counts as over: if it was only cut "
                "by time, set --bootstrap_truncated true",
            )
        self._terminated[step.slots, step.t] = step.result.terminated | truncated


class Decorrelation(Recorder):
    """Cuts the first episode, where the time limit is known, else the one after the first that a limit has ended.

    What is cut ends as after a fault: nothing is trained on but what was there, and the value of the last observation
    is bootstrapped from. It is no episode of the statistics.
    """

    def __init__(
        self,
        cut: Callable[[int], None],
        num_envs: int,
        num_agents: int,
        time_limit: int | None,
        rng: np.random.Generator,
    ) -> None:
        """cut: begins the next episode of an environment with the next step, see `sf.envs.group.CuttableGroup`."""
        self._cut = cut
        self._num_agents = num_agents
        self._rng = rng
        # [E] Steps until the environment is cut.
        self._left = np.full(num_envs, _NOT_YET) if time_limit is None else rng.integers(1, time_limit + 1, num_envs)

    def after_step(self, step: Step) -> None:
        result, left = step.result, self._left
        counting = left > 0
        if counting.any():
            has_stepped = self._of_envs(result.valid)  # else a late first observation, after an end before
            begins_anew = self._of_envs(result.first & ~result.joined)
            is_truncated = self._of_envs(result.truncated)
            left[counting & has_stepped] -= 1
            left[counting & has_stepped & begins_anew] = _DONE  # by itself, and so at a step of its own
            left[counting & has_stepped & is_truncated] = _NOT_YET  # there is a shorter limit: see below
            for env_idx in np.flatnonzero(counting & (left == 0)).tolist():
                self._cut(env_idx)
                left[env_idx] = _DONE
        for episode in step.finished:
            env_idx = episode.actor_idx // self._num_agents
            if left[env_idx] == _NOT_YET and result.truncated[episode.actor_idx]:
                left[env_idx] = self._rng.integers(1, episode.num_steps + 1)

    def _of_envs(self, of_actors: np.ndarray) -> np.ndarray:
        """[E] Whether it is so of any agent of an environment."""
        return np.any(of_actors.reshape(len(self._left), self._num_agents), axis=1)
