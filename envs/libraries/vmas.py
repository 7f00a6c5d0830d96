"""VMAS (https://github.com/proroklab/VectorizedMultiAgentSimulator), by the names of its scenarios: `vmas:balance`.

VMAS steps many copies of a scenario at once, in about the time of one. So all matches of a group are copies of one
environment of VMAS.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.entries import describer, group_of_matches
from sf.envs.errors import UsageError, call_of
from sf.envs.family import Entry, Family
from sf.envs.group import EnvGroup, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.rendering.filming import film_envs
from sf.envs.spaces.actions import ActionSpec, decoder
from sf.envs.wrappers.wrapping import wrapped

_PREFIX = "vmas:"
_INSTALL = "pip install 'vmas>=1.5,<2'"
_MAX_STEPS = 100  # of an episode, as BenchMARL has it; VMAS by itself ends only what the scenario ends
_FIXED = {"dict_spaces": False, "terminated_truncated": True}


def _make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    if options.env_frameskip not in (None, 1):
        raise UsageError(f"{env_id}: env_frameskip is {options.env_frameskip}, but copies are stepped together: 1")
    env = _make(env_id, num_envs, options.kwargs)
    copies = [VmasMatch(env, e) for e in range(num_envs)]
    matches = [wrapped(env_id, copy, options) for copy in copies]
    return VmasGroup(group_of_matches(env_id, matches, options, seed, first_env_idx), copies, env_id)


def _make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    def make(render_mode: str | None = None) -> VmasMatch:
        return VmasMatch(_make(env_id, 1, options.kwargs), 0, render_mode)

    return film_envs(env_id, [make] * num_envs, options, seed, first_env_idx, group_of_matches)


def _make(env_id: str, num_envs: int, kwargs: Mapping[str, Any]) -> Any:
    if taken := sorted({*_FIXED, "num_envs", "wrapper"} & kwargs.keys()):
        raise UsageError(f"env_kwargs has {', '.join(taken)}, which {env_id} decides itself: leave it out")
    given = {"max_steps": _MAX_STEPS, "clamp_actions": True, **kwargs}
    scenario = env_id.removeprefix(_PREFIX)
    with call_of(env_id, "__init__()"):
        return importlib.import_module("vmas").make_env(scenario, num_envs=num_envs, **_FIXED, **given)


def _find(env_id: str) -> Entry | None:
    try:
        vmas = importlib.import_module("vmas")
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: {_INSTALL}") from error
    if env_id.removeprefix(_PREFIX) not in _scenarios(vmas):
        return None
    return Entry(describer(_make_group), _make_group, _make_rendered_group, takes_wrappers=True)


def _scenarios(vmas: Any) -> list[str]:
    return [*vmas.scenarios, *vmas.mpe_scenarios, *vmas.debug_scenarios]


def _env_ids() -> list[str]:
    try:
        vmas = importlib.import_module("vmas")
    except ImportError:
        return []
    return [f"{_PREFIX}{scenario}" for scenario in _scenarios(vmas)]


class VmasMatch:
    """The `sf.envs.ParallelEnv` of one copy. All its agents play until the episode ends.

    Of several copies, `step` returns what `VmasGroup` has computed for all of them.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  as in Gymnasium

    def __init__(self, env: Any, idx: int, render_mode: str | None = None) -> None:
        """env: VMAS's environment, and the index of the copy in it."""
        self.vmas = env
        self._idx = idx
        self.render_mode = render_mode
        self.possible_agents = [agent.name for agent in env.agents]
        self.agents: list[str] = []
        self.result: Sequence[Any] = ()
        self._obs_spaces = dict(zip(self.possible_agents, map(_space, env.observation_space.spaces), strict=True))
        self._action_spaces = dict(zip(self.possible_agents, map(_space, env.action_space.spaces), strict=True))

    def observation_space(self, agent: str) -> gym.Space:
        return self._obs_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """All copies draw from the generator of the process, which the first of them seeds."""
        if seed is not None and self._idx == 0:
            self.vmas.seed(seed)
        obs = self.vmas.reset_at(self._idx)
        self.agents = list(self.possible_agents)
        return self._by_agent(self._own(each) for each in obs), {}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        if self.vmas.num_envs == 1:
            joint = [np.asarray(actions[agent], np.float32).reshape(1, -1) for agent in self.possible_agents]
            self.result = self.vmas.step(joint)
        obs, rewards, terminated, truncated, _ = self.result
        ends = bool(terminated[self._idx]), bool(truncated[self._idx])
        if any(ends):
            self.agents = []
        terminations, truncations = (dict.fromkeys(self.possible_agents, end) for end in ends)
        return (
            self._by_agent(self._own(each) for each in obs),
            self._by_agent(float(each[self._idx]) for each in rewards),
            terminations,
            truncations,
            {agent: {} for agent in self.possible_agents},
        )

    def render(self) -> Any:
        return self.vmas.render(mode="rgb_array")

    def close(self) -> None:
        pass

    def _own(self, obs: Any) -> Any:
        """Returns the observation of this copy, of a tensor [E, ...] or a mapping of them."""
        if isinstance(obs, Mapping):
            return {key: self._own(value) for key, value in obs.items()}
        return np.asarray(obs[self._idx])

    def _by_agent(self, values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))


class VmasGroup:
    """A group of matches that are copies of one environment of VMAS, which steps them together."""

    def __init__(self, group: Any, copies: Sequence[VmasMatch], env_id: str) -> None:
        """group: of these copies, whatever is around them."""
        self._group = group
        self._copies = copies
        self._env_id = env_id
        self.spec = group.spec
        self.num_actors = group.num_actors
        spec, num_agents = group.spec, group.spec.num_agents
        of_agents = [spec.own_spaces[kind][1] for kind in spec.kinds] or [spec.action_space] * num_agents
        self._layouts = [ActionSpec.of(space) for space in of_agents]
        self._decoders = [decoder(space, len(copies)) for space in of_agents]

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        """A copy that begins anew in this step is stepped as well: its reset makes that undone."""
        if len(self._copies) > 1:
            joint = [self._actions(agent_idx, discrete, continuous) for agent_idx in range(self.spec.num_agents)]
            with call_of(self._env_id, "step()"):
                stepped = self._copies[0].vmas.step(joint)
            for copy in self._copies:
                copy.result = stepped
        episodes: list[Episode] = self._group.step(discrete, continuous, obs, result)
        return episodes

    def cut(self, env_idx: int) -> None:
        self._group.cut(env_idx)

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        self._group.set_options(env_idx, values)

    def close(self) -> None:
        self._group.close()

    def _actions(self, agent_idx: int, discrete: np.ndarray, continuous: np.ndarray) -> np.ndarray:
        """Returns the actions of an agent in all copies [E, C], of those of all actors."""
        own, layout = slice(agent_idx, None, self.spec.num_agents), self._layouts[agent_idx]
        chosen, numbers = discrete[own, : len(layout.discrete_sizes)], continuous[own, : layout.num_continuous]
        actions = np.asarray(self._decoders[agent_idx](chosen, numbers), np.float32)
        return np.ascontiguousarray(actions.reshape(len(self._copies), -1))


def _space(space: Any) -> gym.Space:
    """Returns Gymnasium's space of one of the package gym."""
    kind = type(space).__name__
    if kind == "Dict":
        return gym.spaces.Dict({key: _space(child) for key, child in space.spaces.items()})
    if kind == "Discrete":
        return gym.spaces.Discrete(int(space.n))
    if kind == "MultiDiscrete":
        return gym.spaces.MultiDiscrete(space.nvec)
    return gym.spaces.Box(space.low, space.high, dtype=np.float32)


VMAS = Family(
    name="vmas",
    about="scenarios of VMAS; an episode has 100 steps where --env_kwargs '{\"max_steps\": 500}' names no other number",
    pattern=f"{_PREFIX}.*",
    find=_find,
    env_ids=_env_ids,
    package="vmas",
    install=_INSTALL,
)
