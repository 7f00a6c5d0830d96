"""Environments whose agents take turns, PettingZoo's AECEnv API, as ones in which all act at once.

Every turn is a step of all agents. The one whose turn it is decides, and the actions of the others are ignored. So an
agent's trajectory goes on through the turns of the others, which is where most of its rewards come from. While it
waits, the `action_mask` in its observation (`sf.model.distributions`) allows nothing. So no network is asked there, and
none is trained (`sf.learner.loss.masks`). Discounts count turns, not one's own moves.

PettingZoo itself is not imported: any class with the members of `TurnEnv` will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from sf.envs.errors import ApiError, UsageError
from sf.envs.groups import calls
from sf.envs.groups.parallel import ParallelEnv
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec, without_multi_binary

_OBSERVATION = "observation"  # beside the mask, where the environment's own observation is no Dict


class TurnEnv(Protocol):
    """Has those members of PettingZoo's AECEnv that are used here.

    Its mappings have an entry for everybody in `agents`.
    """

    possible_agents: Sequence[Any]
    agents: Sequence[Any]
    """Those that have not left. One that was terminated or truncated stays until it has stepped again, with None."""

    agent_selection: Any
    """Whose turn it is."""

    rewards: Mapping[Any, float]
    """Of the last step alone."""

    terminations: Mapping[Any, bool]
    truncations: Mapping[Any, bool]
    infos: Mapping[Any, Mapping[str, Any]]

    def reset(self, seed: int | None = None) -> None: ...

    def step(self, action: Any) -> None: ...

    def observe(self, agent: Any) -> Any: ...

    def last(self) -> Any:
        """Never called: an environment that has it and `observe` is one whose agents take turns."""
        ...

    def observation_space(self, agent: Any) -> gym.Space: ...

    def action_space(self, agent: Any) -> gym.Space: ...

    def close(self) -> None: ...


class _End(NamedTuple):
    """Records how an agent's part of a match has ended, and what it saw there."""

    terminated: bool
    truncated: bool
    obs: Any
    info: Mapping[str, Any]


def as_parallel(env_id: str, env: Any, frameskip: int) -> ParallelEnv:
    """Returns the environment itself if its agents act at once, else its `TurnsTogether`.

    Raises UsageError where the agents take turns and frames are skipped.
    """
    takes_turns = hasattr(env, "observe") and hasattr(env, "last")
    if takes_turns and frameskip != 1:
        raise UsageError(f"{env_id}: env_frameskip is {frameskip}, but agents take turns, and a move is made once: 1")
    return TurnsTogether(env, env_id) if takes_turns else env


class TurnsTogether:
    """The `ParallelEnv` of an environment whose agents take turns.

    Observations are copies: an environment may write that of each agent into the same array.
    """

    def __init__(self, env: TurnEnv, env_id: str = "the environment") -> None:
        """env_id: what sentences call the environment."""
        self._env = env
        self._env_id = env_id
        self.possible_agents = calls.possible_agents(env_id, env)
        self.agents: list[Any] = []
        self._ended: dict[Any, _End] = {}  # of those in `agents` that have ended, and not left yet
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = getattr(env, "metadata", {})
        self._num_choices = {
            agent: sum(ActionSpec.of(without_multi_binary(env.action_space(agent))).discrete_sizes)
            for agent in self.possible_agents
        }

    def observation_space(self, agent: Any) -> gym.Space:
        space = self._env.observation_space(agent)
        num_choices = self._num_choices[agent]
        parts = space.spaces if isinstance(space, gym.spaces.Dict) else {_OBSERVATION: space}
        if ACTION_MASK in parts or not num_choices:
            return space
        return gym.spaces.Dict({**parts, ACTION_MASK: gym.spaces.Box(0, 1, (num_choices,), np.int8)})

    def action_space(self, agent: Any) -> gym.Space:
        return self._env.action_space(agent)

    def reset(self, seed: int | None = None) -> tuple[dict[Any, Any], dict[Any, Any]]:
        self._env.reset(seed=seed)
        self._ended = {}
        self.agents = list(calls.agents(self._env_id, self._env))
        return self._observations(), dict(self._env.infos)

    def step(
        self, actions: Mapping[Any, Any]
    ) -> tuple[dict[Any, Any], dict[Any, float], dict[Any, bool], dict[Any, bool], dict[Any, Any]]:
        """Play one turn, then step agents that have ended with None until a live one is selected.

        To leave is a step of its own, with None, which may pay the others and end their game. An agent that has ended
        waits in `agents` for that step, and is paid until then. Raises ApiError where an agent does not leave with it,
        or it is nobody's turn.
        """
        env, acted = self._env, self.agents
        rewards = dict.fromkeys(acted, 0.0)
        terminations, truncations = dict.fromkeys(acted, False), dict.fromkeys(acted, False)
        infos: dict[Any, Any] = {}
        final: dict[Any, Any] = {}
        live = [agent for agent in acted if agent not in self._ended]
        if env.agent_selection not in live:
            raise ApiError(
                f"{self._env_id}: agent_selection is {calls.short(env.agent_selection)}, and those of `agents` that "
                f"have not ended are {live}: it must be one of them"
            )
        action = actions[env.agent_selection]
        while True:
            stepped = env.agent_selection
            env.step(action)
            present = calls.agents(self._env_id, env)
            ended = [agent for agent in present if env.terminations[agent] or env.truncations[agent]]
            if action is None and stepped in ended:
                raise ApiError(
                    f"{self._env_id}: agent {stepped!r} had ended, and is still in `agents` after step(None): remove "
                    "it there in that step, as `_was_dead_step` of PettingZoo's AECEnv does"
                )
            for agent in acted:
                rewards[agent] += calls.reward(self._env_id, env.rewards.get(agent, 0.0))
                infos[agent] = env.infos.get(agent, infos.get(agent, {}))
                if agent in ended and agent not in self._ended:
                    self._ended[agent] = _End(
                        bool(env.terminations[agent]),
                        bool(env.truncations[agent]),
                        self._observe(agent, may_act=False),
                        infos[agent],
                    )
                elif agent not in present and agent not in self._ended:
                    terminations[agent] |= bool(env.terminations.get(agent, False))
                    truncations[agent] |= bool(env.truncations.get(agent, False))
            live = [agent for agent in present if agent not in ended]
            if not live or env.agent_selection not in ended:
                break
            action = None
        self.agents = [agent for agent in present if agent in live or agent in self._ended] if live else []
        for agent in set(self._ended).difference(self.agents):
            terminations[agent], truncations[agent], final[agent], info = self._ended.pop(agent)
            infos[agent] = {**info, **infos.get(agent, {})}
        return {**final, **self._observations()}, rewards, terminations, truncations, infos

    def render(self) -> Any:
        return self._env.render()  # type: ignore[attr-defined]  # asked for only with a render_mode

    def close(self) -> None:
        self._env.close()

    def _observations(self) -> dict[Any, Any]:
        on_turn = self._env.agent_selection
        return {
            agent: self._ended[agent].obs if agent in self._ended else self._observe(agent, may_act=agent == on_turn)
            for agent in self.agents
        }

    def _observe(self, agent: Any, may_act: bool) -> Any:
        obs = deepcopy(self._env.observe(agent))
        num_choices = self._num_choices.get(agent)  # none of one that is refused
        if not num_choices:
            return obs
        parts = obs if isinstance(obs, Mapping) else {_OBSERVATION: obs}
        mask = parts.get(ACTION_MASK)
        if mask is None:
            mask = self._env.infos.get(agent, {}).get(ACTION_MASK)
        if mask is None:
            mask = np.ones(num_choices, np.int8)
        return {**parts, ACTION_MASK: np.array(mask) if may_act else np.zeros_like(mask)}
