"""A group of environments with the slots that it fills: one rollout after another, row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sf.envs import Episode, StepResult
from sf.envs.guard import Fault, GuardedGroup
from sf.rollout.actions import Actions, AskedActions
from sf.rollout.args import RolloutWorkerArgs
from sf.rollout.assignment import Assignment
from sf.rollout.environments import make_envs, require_as_planned
from sf.rollout.episode_ends import Decorrelation, EndsAtTruncations, truncations_are_ends
from sf.rollout.levels import LevelChoice
from sf.rollout.matches import Matches, PlayedMatch, WinRates
from sf.rollout.recorders import BotActions, EnvSteps, Games, PolicyChanges, Recorder, Shaping, Step
from sf.rollout.rewards import TeamRewards, matrix_of
from sf.rollout.scheduled import TEAM_SPIRIT, recorders_of
from sf.rollout.searching import SearchedActions
from sf.shared.rows import OBS
from sf.shared.slots import FULL

_OF_RECORDERS, _OF_SEARCH = 1, 2  # the keys of what they draw


class RolloutGroup:
    """A group of environments with the slots it fills.

    num_rows: of slots that the last call of `advance` has written.
    """

    def __init__(self, group_idx: int, args: RolloutWorkerArgs) -> None:
        self._group_idx = group_idx
        self._rollout = args.rollout
        self._pool = args.slots
        self._counters = args.counters
        self._rows = args.slots.arrays
        self._obs = args.slots.arrays.named(OBS)  # [num_slots, T+1, ...]
        self._args = args
        self._task = None if args.tasks is None else args.tasks.of_group(group_idx)
        self._num_changes = 0  # of the task
        self._num_cut = 0  # episodes that these changes have ended
        self._faults: list[Fault] = []  # of the environments before
        self._envs = self._make_guarded()
        num_actors = args.num_envs_per_group * args.assignment.num_agents
        key = (args.seed, *args.seed_key, group_idx)
        rng = np.random.default_rng(key)
        self._rng_of_recorders = np.random.default_rng((*key, _OF_RECORDERS))
        self._assignment = Assignment(args.assignment, num_actors, args.rollout, rng, group_idx)
        self.actors = np.arange(group_idx * num_actors, (group_idx + 1) * num_actors)  # [N] of all groups
        self._result = StepResult.empty(num_actors)
        self._slots: list[int] = []  # that are being filled
        self._slot_idx = np.empty(0, np.int64)  # the same: an array indexes twice as fast
        self._row = self.num_rows = 0
        # [N, ...], what the next rollout begins with: row T of the slots handed over last.
        self._next_obs = {key: np.zeros((num_actors, *rows.shape[2:]), rows.dtype) for key, rows in self._obs.items()}
        self._next_first = np.ones(num_actors, bool)
        self._envs.reset({key: list(rows) for key, rows in self._next_obs.items()})
        self._env_steps = EnvSteps(args.slots.arrays, num_actors)
        self._actions: Actions = AskedActions(args.channel, group_idx, self._assignment)
        if args.search is not None:
            of_search = np.random.default_rng((*key, _OF_SEARCH))
            self._actions = SearchedActions(
                args.search, args.channel, args.counters, group_idx, self._envs, self._rows, of_search
            )
        self._played: list[PlayedMatch] = []  # since they were taken last
        self._recorders = self._recorders_of(args, self._rng_of_recorders)

    @property
    def is_parked(self) -> bool:
        """Whether it has filled its slots and waits for enough free ones."""
        return not self._slots

    @property
    def is_taken(self) -> bool:
        """Whether the learners have taken all slots that it filled last."""
        return not (self._rows["state"][self._slot_idx] == FULL).any()

    def begin_if_it_can(self) -> bool:
        """Begin a rollout in new slots and ask for its first actions, if there are slots enough. Returns whether it has
        begun."""
        if not self.is_parked:
            return False
        if self._args.tasks is not None and self._args.tasks.of_group(self._group_idx) != self._task:
            self._change_task()
        self._slots = self._pool.take(self._group_idx, len(self.actors), self._assignment.learner)
        if not self._slots:
            return False
        self._slot_idx = np.array(self._slots)
        self._rows["actor"][self._slot_idx] = self.actors
        self._actions.begin_rollout(self._slot_idx)
        self._row = 0
        for key, rows in self._obs.items():
            rows[self._slot_idx, 0] = self._next_obs[key]
        self._rows["first"][self._slot_idx, 0] = self._next_first
        for recorder in self._recorders:
            recorder.begin_rollout(self._slot_idx)
        self._actions.ask(self._row)
        return True

    def advance(self) -> list[Episode]:
        """Apply the actions, if they have come; ask for the next ones, or hand over what is full."""
        self.num_rows = 0
        if not self._actions.have_come():
            self._env_steps.num_of_last_step = 0
            return []
        self.num_rows = len(self.actors)
        finished = self._step()
        if self._row < self._rollout:
            self._actions.ask(self._row)
        else:
            self._hand_over()
        return finished

    def pop_faults(self) -> list[Fault]:
        faults, self._faults = self._faults + self._envs.pop_faults(), []
        return faults

    def pop_played(self) -> list[PlayedMatch]:
        """Returns the matches between different players that have ended since the last call."""
        played = self._played.copy()
        self._played.clear()
        return played

    def pop_num_cut(self) -> int:
        """How many episodes faults, and changes of the task, have ended since the last call."""
        num_cut, self._envs.num_cut, self._num_cut = self._envs.num_cut + self._num_cut, 0, 0
        return num_cut

    @property
    def num_env_steps(self) -> int:
        """Returns how many env steps the last step was."""
        return self._env_steps.num_of_last_step

    @property
    def ended_with(self) -> np.ndarray:
        """Returns who learns from the step that was taken last, [N]."""
        return self._assignment.ended_with

    @property
    def num_away(self) -> int:
        """How many of its agents are in no episode: they have left their match."""
        return self._envs.num_away

    @property
    def absent(self) -> list[int]:
        """Those of `actors` that have had no step so far, though others have."""
        absent = self.actors[~self._env_steps.has_played]
        return absent.tolist() if len(absent) < len(self.actors) else []

    def close(self) -> None:
        self._envs.close()
        self._assignment.close()

    def _make_guarded(self) -> GuardedGroup:
        """Makes the environments, of the task that the group has now."""
        args, options, changes = self._args, self._args.options, self._num_changes
        if self._task is not None:
            options = replace(options, task=self._task)
        envs = GuardedGroup(
            lambda attempt: make_envs(args, options, self._group_idx, attempt, changes),
            env_id=args.env if self._task is None else f"{args.env}, {self._task}",
            raises_faults=args.is_serial,
        )
        require_as_planned(args, envs)
        return envs

    def _change_task(self) -> None:
        """Begin anew with the environments of another task, between two rollouts.

        The last rollout ends with an observation of the task before, from whose value it is bootstrapped, and the next
        one begins with the first observations of the new one. So no slot has rows of two tasks.
        """
        tasks = self._args.tasks
        assert tasks is not None
        num_away = self._envs.num_away
        self._counters.add(away=-num_away)
        self._num_cut += self._envs.num_cut + self._envs.num_actors - num_away
        self._faults += self._envs.pop_faults()
        self._envs.close()
        self._task = tasks.of_group(self._group_idx)
        self._num_changes += 1
        self._envs = self._make_guarded()
        self._envs.reset({key: list(rows) for key, rows in self._next_obs.items()})
        self._next_first = np.ones(len(self.actors), bool)
        self._recorders = self._recorders_of(self._args, self._rng_of_recorders)

    def _recorders_of(self, args: RolloutWorkerArgs, rng: np.random.Generator) -> list[Recorder]:
        """Returns those that have something to do in this run. rng: for cuts and levels."""
        rows, envs, spec, rules = self._rows, self._envs, self._envs.spec, args.assignment
        policy, identity, num_agents = self._assignment.policy, self._assignment.identity, rules.num_agents
        bootstrap, played = args.bootstrap_truncated, self._played if rules.seats is not None else None
        are_ends = truncations_are_ends(bootstrap, spec)
        matrix = matrix_of(args.options, spec.num_agents, spec.teams)
        rewards = TeamRewards(np.eye(spec.num_agents) if matrix is None else matrix, rows["reward"])
        of_schedules: dict[str, Recorder] = {}
        if args.scheduled is not None:
            of_schedules = recorders_of(args.scheduled, envs, self._assignment, self.actors, args.options, rewards)
        # With several policies a slot is of use up to the first change of who plays, so cuts would cost more.
        cuts = args.decorrelate and rules.is_fixed and spec.can_cut
        # The order: PolicyChanges draws who plays next, so it stands behind those that read who has played, and before
        # Shaping. WinRates adds a statistic that may decide a match.
        recorders = [
            self._env_steps,
            of_schedules.get(TEAM_SPIRIT),
            rewards if matrix is not None or TEAM_SPIRIT in of_schedules else None,
            BotActions(rows["discrete"]) if spec.bots else None,
            EndsAtTruncations(args.env, bootstrap, rows["terminated"]) if are_ends else None,
            WinRates(num_agents, policy, rules.sides) if rules.num_policies > 1 and num_agents > 1 else None,
            Matches(num_agents, args.objective, identity, played, rules.sides) if rules.draws_by_match else None,
            Games(envs.num_actors) if not (rules.is_fixed or rules.draws_by_match) else None,
            PolicyChanges(rows["valid"], self._assignment) if not rules.is_fixed else None,
            Shaping(envs, args.shaping["weights"], policy) if args.shaping is not None else None,
            *(each for name, each in of_schedules.items() if name != TEAM_SPIRIT),
            LevelChoice(envs, args.levels, self._assignment, rows["level"], rng) if args.levels is not None else None,
            Decorrelation(envs.cut, args.num_envs_per_group, num_agents, spec.time_limit, rng) if cuts else None,
        ]
        return [recorder for recorder in recorders if recorder is not None]

    def _step(self) -> list[Episode]:
        """Apply the actions of the present row, and write what they caused."""
        rows, slots, t, result = self._rows, self._slot_idx, self._row, self._result
        discrete, continuous = rows["discrete"][slots, t], rows["continuous"][slots, t]
        obs = {key: [array[slot, t + 1] for slot in self._slots] for key, array in self._obs.items()}
        finished = self._envs.step(discrete, continuous, obs, result)
        rows["reward"][slots, t] = result.reward
        rows["terminated"][slots, t] = result.terminated
        rows["valid"][slots, t] = result.valid
        rows["first"][slots, t + 1] = result.first
        self._row = t + 1
        self._actions.after_step(result)
        step = Step(slots, t, result, finished, result.first)
        for recorder in self._recorders:
            recorder.after_step(step)
        return step.finished

    def _hand_over(self) -> None:
        """Give the filled slots to the learner; their last observations begin the next ones."""
        self._next_obs = {key: rows[self._slot_idx, self._rollout] for key, rows in self._obs.items()}
        self._next_first = self._rows["first"][self._slot_idx, self._rollout]
        self._counters.add(player_steps=self._pool.hand_over(self._slots))
        self._slots = []
