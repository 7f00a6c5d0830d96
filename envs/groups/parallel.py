"""A group of matches: environments of several agents each, with PettingZoo's ParallelEnv API.

`agents` of an environment lists the agents that play. One that is missing there has left, and one that is there again
has come back. A match whose list is empty is over.

PettingZoo itself is not imported: any class with the members of `ParallelEnv` below will do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from sf.envs.added.episode_options import declared_options, tell_options
from sf.envs.errors import ApiError, UsageError
from sf.envs.group import EnvSpec, Episode, ObsRows, StepResult, finished_episode
from sf.envs.groups import calls
from sf.envs.groups.kinds import AgentSpaces
from sf.envs.seeding import env_seed
from sf.envs.spaces.action_names import action_names
from sf.envs.teams import teams_of_package
from sf.envs.wrappers.layers import has_own_time_limit, layers

_ByAgent = Mapping[Any, Any]


class ParallelEnv(Protocol):
    """Has those members of PettingZoo's class of this name that are used here."""

    @property
    def possible_agents(self) -> Sequence[Any]: ...

    @property
    def agents(self) -> Sequence[Any]:
        """Returns those that act in the next step."""
        ...

    def reset(self, seed: int | None = None) -> tuple[_ByAgent, _ByAgent]:
        """Returns the observations and infos of `agents`."""
        ...

    def step(self, actions: dict[Any, Any]) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        """Returns observations, rewards, terminations, truncations and infos of the agents that acted.

        Those that were terminated or truncated are no longer in `agents`. Those that came back are, and have an
        observation.
        """
        ...

    def observation_space(self, agent: Any) -> gym.Space: ...

    def action_space(self, agent: Any) -> gym.Space: ...

    def close(self) -> None: ...


class ParallelGroup:
    """E matches of A agents each; actor n is agent n % A of match n // A, in the order of `possible_agents`.

    A match that is over is reset at once if all agents that were still in it were terminated. If one was truncated, its
    final observation comes first, and the match is reset one step later. Agents without a final observation have a row
    of zeros meanwhile, like those that left earlier.

    An agent may give numbers about its finished episode: the mapping `infos[agent]["episode_stats"]` of its last
    step becomes `Episode.stats`, see `sf.envs.group.finished_episode`.
    """

    def __init__(
        self,
        env_id: str,
        envs: Sequence[ParallelEnv],
        seed: int,
        first_env_idx: int,
        frameskip: int = 1,
        strict_spaces: bool = False,
    ) -> None:
        """frameskip: how often each action is repeated; the rewards of the repetitions are added up. Where an agent
            leaves or comes back, the repetitions of its match end: another action has to be chosen.

        Raises UsageError for spaces that are not supported, or that one policy cannot play together.
        """
        self._env_id = env_id
        self._envs = list(envs)
        self._agents = calls.possible_agents(env_id, envs[0])
        for env in envs[1:]:
            others = calls.possible_agents(env_id, env)
            if set(others) != set(self._agents):
                raise UsageError(
                    f"{env_id}: `possible_agents` is {others} of one environment, and {self._agents} of another: list "
                    "the same agents each time that it is made"
                )
        spaces = AgentSpaces.of(env_id, envs[0], self._agents, strict_spaces)
        self._kind_of = spaces.of_agents  # [A]
        names = tuple(map(str, self._agents))
        self.spec = EnvSpec(
            spaces.obs,
            spaces.action,
            num_agents=len(self._agents),
            frameskip=frameskip,
            has_own_time_limit=has_own_time_limit(self._envs[0]),
            can_cut=True,
            env_obs_space=spaces.env_obs,
            layers=layers(self._envs[0]),
            action_names=action_names(self._envs[0], spaces.action),
            state_space=calls.state_space(env_id, self._envs[0]),
            agents=names,
            teams=teams_of_package(self._envs[0], names),
            kinds=spaces.numbers,
            own_spaces=spaces.own,
            schedulable=declared_options(env_id, self._envs[0]),
        )
        self._options: list[Mapping[str, float]] = [{} for _ in envs]  # of the next matches
        self.num_actors = len(envs) * len(self._agents)
        self._seeds = [env_seed(seed, first_env_idx + m) for m in range(len(envs))]
        self._playing: list[dict[Any, int]] = [{} for _ in envs]  # of each match: agents that act next, with their n
        self._return = [0.0] * self.num_actors
        self._num_steps = [0] * self.num_actors
        self._num_frames = [0] * self.num_actors

    def reset(self, obs: ObsRows) -> None:
        for m in range(len(self._envs)):
            for n in self._start_match(m, obs, seed=self._seeds[m]):
                self._kind_of[n % len(self._agents)].check_bounds(obs, n)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = []
        result.reward[:] = 0.0
        result.terminated[:] = False
        result.truncated[:] = False
        result.valid[:] = False
        result.first[:] = False
        result.joined[:] = False
        for m in range(len(self._envs)):
            if self._playing[m]:
                episodes += self._step_match(m, discrete, continuous, obs, result)
            else:  # its final observations have been shown
                result.first[self._start_match(m, obs)] = True
        return episodes

    def state(self, env_idx: int) -> np.ndarray:
        return calls.state(self._env_id, self._envs[env_idx])

    def cut(self, env_idx: int) -> None:
        self._playing[env_idx] = {}

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        self._options[env_idx] = values

    def close(self) -> None:
        while self._envs:
            calls.close(self._env_id, self._envs.pop())

    def _step_match(
        self, m: int, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult
    ) -> list[Episode]:
        played = self._playing[m]
        kind_of, first = self._kind_of, m * len(self._agents)
        actions = {agent: kind_of[n - first].decode(discrete[n], continuous[n]) for agent, n in played.items()}
        next_obs, rewards, terminations, infos = self._act(m, actions)
        playing = self._playing[m] = self._who_plays(m)
        episodes = []
        for agent, n in played.items():
            result.valid[n] = True
            result.reward[n] = rewards[agent]
            if agent not in playing:
                has_info = not isinstance(infos, Mapping) or agent in infos
                info = self._of(agent, infos, "info") if has_info else {}
                stats = calls.episode_stats(self._env_id, info)
                episodes.append(finished_episode(n, self._return[n], self._num_steps[n], self._num_frames[n], stats))
                result.terminated[n] = self._flag(agent, "termination", terminations)
                result.truncated[n] = not result.terminated[n]
        shown = [*playing, *(agent for agent, n in played.items() if result.truncated[n])]
        if shown:
            self._show(m, next_obs, shown, obs)
            came = [n for agent, n in playing.items() if agent not in played]
            self._begin_episodes(came)
            result.first[came] = True
            result.joined[came] = True
        else:
            result.first[self._start_match(m, obs)] = True
        return episodes

    def _act(self, m: int, actions: dict[Any, Any]) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        """Returns observations, rewards (of all repetitions), terminations and infos (of the last one)."""
        env, played = self._envs[m], self._playing[m]
        total = dict.fromkeys(played, 0.0)
        num_frames = 0
        goes_on = True
        while goes_on:
            obs, rewards, terminations, truncations, infos = calls.step(self._env_id, env, actions)
            num_frames += 1
            for agent in played:
                total[agent] += calls.reward(self._env_id, self._of(agent, rewards, "reward"))
                ended = self._flag(agent, "termination", terminations) or self._flag(agent, "truncation", truncations)
                if ended == (agent in env.agents):
                    raise UsageError(
                        f"{self._env_id}: agent {agent!r} was {'' if ended else 'not '}terminated or truncated, "
                        f"and is {'still' if ended else 'no longer'} in `agents`: it must lose the agents that have "
                        "ended, and no other"
                    )
            goes_on = num_frames < self.spec.frameskip and set(env.agents) == played.keys()
        for agent, n in played.items():
            self._return[n] += total[agent]
            self._num_steps[n] += 1
            self._num_frames[n] += num_frames
        return obs, total, terminations, infos

    def _start_match(self, m: int, obs: ObsRows, seed: int | None = None) -> list[int]:
        """Returns the actors whose episodes begin."""
        if self._options[m]:
            tell_options(self._env_id, self._envs[m], self._options[m])
        first_obs = calls.reset(self._env_id, self._envs[m], seed=seed)
        playing = self._playing[m] = self._who_plays(m)
        if not playing:
            raise UsageError(f"{self._env_id}: `agents` is empty after reset: a match must begin with an agent")
        self._show(m, first_obs, playing, obs)
        actors = list(playing.values())
        self._begin_episodes(actors)
        return actors

    def _who_plays(self, m: int) -> dict[Any, int]:
        present = calls.agents(self._env_id, self._envs[m])
        playing = {agent: n for n, agent in enumerate(self._agents, m * len(self._agents)) if agent in present}
        if len(playing) != len(present):
            raise UsageError(
                f"{self._env_id}: `agents` is {list(present)} and `possible_agents` {self._agents}: each agent in "
                "`agents` must be in `possible_agents`, and there once"
            )
        return playing

    def _show(self, m: int, next_obs: _ByAgent, agents: Collection[Any], obs: ObsRows) -> None:
        """Write the observations of these agents, and zeros for all others of the match."""
        for n, (agent, kind) in enumerate(zip(self._agents, self._kind_of, strict=True), m * len(self._agents)):
            if agent in agents:
                kind.write(self._of(agent, next_obs, "observation"), obs, n)
            else:
                for key in self.spec.obs_space:
                    obs[key][n][...] = 0

    def _of(self, agent: Any, values: _ByAgent, name: str) -> Any:
        try:
            return values[agent]
        except KeyError:
            raise UsageError(
                f"{self._env_id}: the environment returned no {name} for agent {agent!r}: return one for each agent "
                "that has acted or acts next"
            ) from None
        except (IndexError, TypeError):
            raise ApiError(
                f"{self._env_id}: the environment returned {calls.short(values)} where the {name}s of agents should "
                "be: return a dict with an entry for each agent"
            ) from None

    def _flag(self, agent: Any, name: str, values: _ByAgent) -> bool:
        return calls.flag(self._env_id, f"{name} of agent {agent!r}", self._of(agent, values, name))

    def _begin_episodes(self, actors: Sequence[int]) -> None:
        for n in actors:
            self._return[n], self._num_steps[n], self._num_frames[n] = 0.0, 0, 0
