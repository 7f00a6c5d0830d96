"""What a policy meets today: its environment is played, and the networks before and after surgery look on.

It tells how probable new choices are, and what is lost where surgery removes something.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from sf.config import Config
from sf.config.roles import kinds_played, roles_of
from sf.envs import ActionSpec, EnvError, EnvGroup, EnvSpec, StepResult, UsageError, describe, make_group
from sf.envs.added.clock import CLOCK
from sf.envs.groups.policy_spec import spec_of_kinds
from sf.envs.spaces.actions import random_actions
from sf.envs.spaces.observations import obs_arrays
from sf.model.distributions import ActionDistribution
from sf.shared.policy_view import PolicyView, widened
from sf.surgery.axes import NEW, Axis, places
from sf.surgery.comparison import Pair
from sf.surgery.observations import Obs, carried, zeros
from sf.surgery.subject import Subject

_NUM_ENVS = 4
_STEPS = 256


class Recent(NamedTuple):
    """What both networks make of M decisions: params [M, P] and values [M]."""

    old_params: Tensor
    new_params: Tensor
    old_value: Tensor
    new_value: Tensor


@torch.no_grad()
def play(pair: Pair, old: Config, new: Config, policy_id: int, seed: int = 0) -> Recent | None:
    """Plays the environment of the old run with its policy; the new one, if the old one has other spaces by now.

    old, new: configurations of both runs. Returns None if neither shows all that the old policy sees.
    """
    if _still_is(old, pair.old, policy_id):
        shown, config = pair.old, old
    elif pair.old.shows_no_more_than(pair.new):
        shown, config = pair.new, new
    else:
        return None
    with closing(make_group(config.run.env, _NUM_ENVS, config.environment, seed=seed, first_env_idx=0)) as group:
        return _watched(pair, _Stage(group, config, shown, policy_id, seed), seed)


def _still_is(config: Config, subject: Subject, policy_id: int) -> bool:
    """Returns whether the environment of a run has the spaces of its policy."""
    try:
        spec = describe(config.run.env, config.environment)
        kinds = kinds_played(roles_of(config.population, spec, config.run.env), spec, policy_id)
        own = spec_of_kinds(config.run.env, spec, kinds, config.environment)
    except (EnvError, UsageError):
        return False
    return own.native_obs_space == subject.native and own.action_space == subject.action_space


def _watched(pair: Pair, stage: _Stage, seed: int) -> Recent:
    sides = [(pair.old, pair.old_network), (pair.new, pair.new_network)]
    states = [torch.zeros(stage.num_actors, network.state_size) for _, network in sides]
    generator = torch.Generator().manual_seed(seed)
    action = ActionSpec.of(pair.old.action_space)
    decisions = []
    for _ in range(_STEPS):
        obs, first = stage.obs(), torch.from_numpy(stage.first)
        outs = []
        for n, (subject, network) in enumerate(sides):
            seen = carried(obs, stage.shown.obs, zeros(subject, stage.num_actors), subject.obs)
            outs.append(network.step(seen, states[n], first))
            states[n] = outs[n].state
        decisions.append((outs[0].params, outs[1].params, outs[0].value, outs[1].value))
        discrete, continuous = ActionDistribution(action, outs[0].params).sample(generator)
        stage.step(pair.old, discrete.numpy(), continuous.numpy())
    return Recent(*(torch.cat(parts) for parts in zip(*decisions, strict=True)))


class _Stage:
    """The agents that a policy plays in a group of environments. The others act at random.

    shown: whose observations and actions theirs are. first: [N] bool, whether what an agent sees begins an episode.
    """

    def __init__(self, group: EnvGroup, config: Config, shown: Subject, policy_id: int, seed: int) -> None:
        spec = group.spec
        kinds = kinds_played(roles_of(config.population, spec, config.run.env), spec, policy_id)
        is_own = [not spec.kinds or kind in kinds for kind in spec.kinds or range(spec.num_agents)]
        self._own = np.flatnonzero(is_own * _NUM_ENVS)
        self.num_actors = len(self._own)
        self.shown = shown
        self.first = np.ones(self.num_actors, bool)
        self._group, self._action = group, ActionSpec.of(spec.action_space)
        seen = {key: box for key, box in shown.obs_space.items() if key in spec.obs_space.spaces}
        is_part = self._action != ActionSpec.of(shown.action_space) or any(
            box.shape != spec.obs_space[key].shape for key, box in seen.items()
        )
        self._view = PolicyView(EnvSpec(gym.spaces.Dict(seen), shown.action_space, stored_in=spec if is_part else None))
        self._arrays = obs_arrays(spec.obs_space, group.num_actors)
        self._rows = {key: list(value) for key, value in self._arrays.items()}
        self._result, self._rng = StepResult.empty(group.num_actors), np.random.default_rng(seed)
        self._steps = np.zeros((self.num_actors, 1), np.float32)
        group.reset(self._rows)

    def obs(self) -> Obs:
        """Returns what the agents see {key: [N, ...]}, with the clock of a critic."""
        own = self._view.observations({key: rows[self._own] for key, rows in self._arrays.items()})
        return {key: torch.from_numpy(rows) for key, rows in {**own, CLOCK: self._steps.copy()}.items()}

    def step(self, by: Subject, discrete: np.ndarray, continuous: np.ndarray) -> None:
        """by: whose actions these are, [N, D] and [N, C]."""
        drawn = random_actions(self._rng, self._action, self._group.num_actors)
        for rows, chosen, old, new in zip(drawn, (discrete, continuous), _acts(by), _acts(self.shown), strict=True):
            where = places(new, old).numpy()
            own = np.zeros((self.num_actors, len(where)), rows.dtype)
            own[:, where != NEW] = chosen[:, where[where != NEW]]
            rows[self._own] = widened(own, rows.shape[1:])
        self._group.step(*drawn, self._rows, self._result)
        self.first = self._result.first[self._own].copy()
        self._steps = np.where(self.first[:, None], 0.0, self._steps + 1.0).astype(np.float32)


def _acts(subject: Subject) -> tuple[Axis, Axis]:
    """Returns the axes of an action: a number for each head, and the continuous numbers."""
    return tuple(block._replace(shape=(1,)) for block in subject.actions.choices), subject.actions.numbers
