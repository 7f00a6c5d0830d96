"""Keeps a rollout worker going where an environment fails: a group that rebuilds itself.

`GuardedGroup` stands between the worker and its group. Where `step` or the start of an episode raises, or a reward or
an observation is NaN or infinite, it closes the group, makes a new one, and cuts the episodes that were running: they
are truncated at the observation before. In terms of `sf.envs.group`, with the fault in the step of row t: the action of
row t counts as ignored (not valid, reward 0), and row t+1 has the first observations of new episodes. So the value of
the observation of row t is the bootstrap of row t-1, as after any truncation, and nothing half-written is trained on.
Episodes that ended in that very step are dropped. A statistic of an episode that is not finite is left out, and the
episode counts.

An `ApiError` of environments that have never worked is raised as it is: each new one would answer in the same way.

All environments of the group share that fate, the unit of the interface being the group. What cannot be caught here,
a hang or the death of the process, is up to the parent.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from sf.envs import CuttableGroup, EnvError, EnvGroup, Episode, ObsRows, ShapedGroup, StepResult, UsageError
from sf.envs.added.episode_options import EpisodeOptionsGroup, Range
from sf.envs.errors import ApiError, place_of, summary, traceback_of
from sf.envs.group import ForwardModel, SearchableGroup
from sf.envs.groups import calls
from sf.envs.groups.finite import float_keys, require_finite_obs, require_finite_rewards
from sf.envs.remarks import remark
from sf.envs.spaces.actions import ACTION_MASK

MAX_FAULTS_IN_A_ROW = 5
CLEAN_STEPS = 200

_Place = tuple[str, str]  # the class of what was raised, with the file and line in the user's code, if it came there


@dataclass(frozen=True)
class Fault:
    """Counts what has gone wrong at one place since it was last reported."""

    place: str  # the same for all faults of this place, in whichever process
    message: str  # the first of them: "walk failed in step(): ZeroDivisionError: division by zero"
    count: int
    traceback: str | None  # in the first report of this place only, where the message does not say it all


class EnvFaultError(RuntimeError):
    """The environments fail again and again; the latest exception is its cause.

    has_worked: whether they ever finished an episode, or made `CLEAN_STEPS` clean steps.
    """

    def __init__(self, message: str, has_worked: bool) -> None:
        super().__init__(message)
        self.has_worked = has_worked


class GuardedGroup:
    """An EnvGroup that outlives the faults of its environments."""

    def __init__(
        self,
        make: Callable[[int], EnvGroup],
        max_faults_in_a_row: int = MAX_FAULTS_IN_A_ROW,
        env_id: str = "the environment",
        raises_faults: bool = False,
    ) -> None:
        """make: called with 0, and after each fault with 1, 2, 3, ... for another group, which is best seeded with
            that number: a fault that follows from a seed must not come back for ever.
        max_faults_in_a_row: how many faults may follow each other before `step` gives up. The count starts again
            with an episode that has ended cleanly, or with `CLEAN_STEPS` clean steps of the group: what never gets
            that far is broken, and would rebuild its environments for ever.
        env_id: what sentences call the environment.
        raises_faults: `step` raises what the environments raise, for a debugger.

        Whatever the first group raises while it is made is the user's to mend, and is not caught.
        """
        self._make = make
        self._env_id = env_id
        self._max_faults_in_a_row = max_faults_in_a_row
        self._raises_faults = raises_faults
        self._group = make(0)
        self._is_open = True
        self._attempt = 0
        self._faults_in_a_row = 0
        self.num_cut = 0  # episodes that faults have ended; for the caller to set back
        self._clean_steps = 0  # since the last fault
        self._has_worked = False
        self._unreported: dict[_Place, Fault] = {}
        self._reported: set[_Place] = set()
        self._ranges: dict[int, Mapping[str, Range]] = {}  # by environment, where they were set
        self.spec = self._group.spec
        self.num_actors = self._group.num_actors
        self._in_episode = np.ones(self.num_actors, bool)  # [N] False: it has left its match, or waits for the next
        self._awaits_choice = ACTION_MASK in self.spec.obs_space.spaces
        self._steps_without_choice = 0
        self._float_keys = float_keys(self.spec)

    def reset(self, obs: ObsRows) -> None:
        """Whatever the group raises here is not caught either. Raises UsageError for NaN and infinity."""
        self._group.reset(obs)
        require_finite_obs(self._env_id, obs, self._float_keys)
        if self._awaits_choice:
            self._look_for_choice(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        """Raises EnvFaultError where the environments have failed too often in a row, and ApiError where they do not
        speak the API and have never worked."""
        try:
            episodes = self._group.step(discrete, continuous, obs, result)
            require_finite_rewards(self._env_id, result.reward, episodes)
            require_finite_obs(self._env_id, obs, self._float_keys)
            episodes = [self._with_finite_stats(episode) for episode in episodes]
        except Exception as error:
            if self._raises_faults:
                raise
            self._count(error)
        else:
            if self._awaits_choice:
                self._look_for_choice(obs)
            self._clean_steps += 1
            if episodes or self._clean_steps == CLEAN_STEPS:
                self._faults_in_a_row = 0
                self._has_worked = True
            self._in_episode &= ~(result.terminated | result.truncated)
            self._in_episode |= result.first
            return episodes
        self._rebuild(obs)
        self.num_cut += self.num_actors - self.num_away
        self._in_episode[:] = True
        result.reward[:] = 0.0
        result.terminated[:] = False
        result.truncated[:] = False
        result.valid[:] = False
        result.first[:] = True
        result.joined[:] = False
        return []

    @property
    def num_away(self) -> int:
        """Returns how many actors are in no episode."""
        return self.num_actors - int(np.count_nonzero(self._in_episode))

    def cut(self, env_idx: int) -> None:
        """See `sf.envs.CuttableGroup`."""
        cast("CuttableGroup", self._group).cut(env_idx)

    def forward_model(self, seed: int) -> ForwardModel:
        """See `sf.envs.group.SearchableGroup`. The model of one group serves those that are made after it."""
        return cast("SearchableGroup", self._group).forward_model(seed)

    def game(self, env_idx: int) -> Any:
        return cast("SearchableGroup", self._group).game(env_idx)

    def resign(self, env_idx: int) -> None:
        """See `sf.envs.openspiel.group.OpenSpielGroup`, whose games are the only ones that are resigned."""
        cast("Any", self._group).resign(env_idx)

    def set_shaping(self, actor_idx: int, weights: np.ndarray) -> None:
        """See `sf.envs.ShapedGroup`. To be repeated after a fault: all actors have a `first` observation then."""
        cast("ShapedGroup", self._group).set_shaping(actor_idx, weights)

    def set_ranges(self, env_idx: int, ranges: Mapping[str, Range]) -> None:
        """See `sf.envs.added.episode_options.EpisodeOptionsGroup`. Environments that are made anew keep them."""
        self._ranges[env_idx] = {**self._ranges.get(env_idx, {}), **ranges}
        cast("EpisodeOptionsGroup", self._group).set_ranges(env_idx, ranges)

    @property
    def option_values(self) -> Sequence[Mapping[str, float]]:
        """Returns [E] the options that the present episodes began with."""
        return cast("EpisodeOptionsGroup", self._group).values

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            calls.close(self._env_id, self._group)

    def pop_faults(self) -> list[Fault]:
        """Returns the faults since the last call, those of one place in one."""
        faults = list(self._unreported.values())
        self._reported.update(self._unreported)
        self._unreported.clear()
        return faults

    def _rebuild(self, obs: ObsRows) -> None:
        """Make another group and write its first observations over whatever is there."""
        while not self._is_open:
            self._attempt += 1
            try:
                self._group = self._make(self._attempt)
                self._is_open = True
                self._require_as_before()
                for env_idx, ranges in self._ranges.items():
                    cast("EpisodeOptionsGroup", self._group).set_ranges(env_idx, ranges)
                self._group.reset(obs)
                require_finite_obs(self._env_id, obs, self._float_keys)
            except Exception as error:
                self._count(error)

    def _count(self, error: Exception) -> None:
        """Note a fault and close the group. Raises EnvFaultError where it was one too many."""
        self.close()
        if isinstance(error, ApiError) and not self._has_worked:
            raise error
        place = self._note(error)
        self._clean_steps = 0
        self._faults_in_a_row += 1
        if self._faults_in_a_row > self._max_faults_in_a_row:
            where = "" if isinstance(error, UsageError) else f" ({place[1]})"
            advice = "; fix the environment there" if where and place_of(_cause(error)) else ""
            raise EnvFaultError(
                f"the environments of a group have failed {self._faults_in_a_row} times, without an episode finished "
                f"or {CLEAN_STEPS} clean steps in between, at last: {summary(error)}{where}{advice}",
                self._has_worked,
            ) from error

    def _note(self, error: Exception) -> _Place:
        cause = _cause(error)
        place = (type(cause).__name__, place_of(cause) or _last_place(cause))
        if place in self._unreported:
            fault = self._unreported[place]
            self._unreported[place] = replace(fault, count=fault.count + 1)
        else:
            is_said = place in self._reported or isinstance(cause, UsageError)
            text = None if is_said else traceback_of(cause)
            self._unreported[place] = Fault(" in ".join(place), summary(error), 1, text)
        return place

    def _require_as_before(self) -> None:
        if self._group.num_actors != self.num_actors:
            raise UsageError(
                f"{self._env_id}: a group of its environments has {self._group.num_actors} agents now, and had "
                f"{self.num_actors} before: list the same `possible_agents` each time that it is made"
            )
        if self._group.spec.obs_space != self.spec.obs_space or self._group.spec.action_space != self.spec.action_space:
            raise UsageError(
                f"{self._env_id}: its spaces are {self._group.spec.obs_space} and {self._group.spec.action_space} now, "
                f"and were {self.spec.obs_space} and {self.spec.action_space} before: give it the same ones each time "
                "that it is made"
            )

    def _look_for_choice(self, obs: ObsRows) -> None:
        """Say once where masks have never allowed anything: agents that only wait are never trained, nor counted."""
        self._awaits_choice = not any(row.any() for row in obs[ACTION_MASK])
        self._steps_without_choice += 1
        if self._awaits_choice and self._steps_without_choice > CLEAN_STEPS:
            self._awaits_choice = False
            remark(
                f"{self._env_id} choices",
                f"{self._env_id}: observation {ACTION_MASK!r} has been 0 throughout {CLEAN_STEPS} steps, so all agents "
                "wait, and none of their steps is counted: give 1 for what is allowed",
            )

    def _with_finite_stats(self, episode: Episode) -> Episode:
        left_out = [name for name, value in episode.stats.items() if not math.isfinite(value)]
        for name in left_out:
            remark(
                f"{self._env_id} statistic {name}",
                f"{self._env_id}: the statistic {name!r} of an episode is {episode.stats[name]}: it is left out there; "
                "give finite numbers, or no such entry",
            )
        kept = {name: value for name, value in episode.stats.items() if name not in left_out}
        return replace(episode, stats=kept) if left_out else episode


def _cause(error: Exception) -> BaseException:
    """Returns what the environment itself has raised."""
    return error.__cause__ or error if isinstance(error, EnvError) else error


def _last_place(error: BaseException) -> str:
    """Returns where an error was raised that no code of the user's had a part in."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}, line {last.lineno}"
