"""Tiny matches with PettingZoo's ParallelEnv API, for tests of training with several agents.

Three are games whose one equilibrium is known; in the last, every observation says where it is from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.groups.parallel import ParallelEnv

_ByAgent = dict[str, Any]
_Step = tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]


class _ZeroSumGame:
    """One step: both players choose, and the second pays the first PAYOFF[choice of the first][of the second].

    Stats of an episode: each of the player's choices is 1 where it was made.
    """

    PAYOFF: ClassVar[tuple[tuple[float, ...], ...]]
    CHOICES: ClassVar[dict[str, tuple[str, ...]]]  # of each player, as the stats name them
    OBS: ClassVar[dict[str, tuple[float, ...]]]  # of each player, always

    def __init__(self) -> None:
        self.possible_agents = list(self.CHOICES)
        self.agents: list[str] = []
        self._obs = {agent: np.array(obs, np.float32) for agent, obs in self.OBS.items()}
        first = self.possible_agents[0]
        self._obs_space = gym.spaces.Box(0.0, 1.0, self._obs[first].shape, np.float32)
        self._action_space = gym.spaces.Discrete(len(self.CHOICES[first]))

    def observation_space(self, agent: str) -> gym.Space:
        return self._obs_space

    def action_space(self, agent: str) -> gym.Space:
        return self._action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[_ByAgent, _ByAgent]:
        self.agents = list(self.possible_agents)
        return dict(self._obs), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> _Step:
        first, second = players = self.possible_agents
        paid = self.PAYOFF[actions[first]][actions[second]]
        rewards = {first: paid, second: -paid}
        infos = {}
        for player in players:
            chosen = {name: float(i == actions[player]) for i, name in enumerate(self.CHOICES[player])}
            infos[player] = {"episode_stats": chosen}
        self.agents = []
        return dict(self._obs), rewards, dict.fromkeys(players, True), dict.fromkeys(players, False), infos

    def close(self) -> None:
        pass


class Pennies(_ZeroSumGame):
    """`toy_match_pennies`: matching pennies with uneven stakes. `even` wins where both choose the same, else `odd`.

    In the equilibrium both are indifferent: `even` takes heads with 1/4, which costs `odd` 4/4 - 3/4 for heads and
    -2/4 + 3/4 for tails; `odd` takes heads with 3/8, which pays `even` 12/8 - 10/8 for heads and -3/8 + 5/8 for tails.
    """

    PAYOFF = ((4.0, -2.0), (-1.0, 1.0))
    CHOICES: ClassVar = {"even": ("even_heads", "even_tails"), "odd": ("odd_heads", "odd_tails")}
    OBS: ClassVar = {"even": (1.0, 0.0), "odd": (0.0, 1.0)}  # the roles are not alike, and one policy may play both
    EQUILIBRIUM: ClassVar = {"even": (1 / 4, 3 / 4), "odd": (3 / 8, 5 / 8)}
    VALUE: ClassVar[float] = 1 / 4  # for `even`


class RockPaperScissors(_ZeroSumGame):
    """`toy_match_rps`: a win with rock pays 2, any other 1. The roles are alike, and see the same.

    In the equilibrium each choice is worth nothing: against rock, paper wins 1/2 and scissors lose 2/4; against paper,
    scissors win 1/4 and rock loses 1/4; against scissors, rock wins 2/4 and paper loses 1/2.
    """

    PAYOFF = ((0.0, -1.0, 2.0), (1.0, 0.0, -1.0), (-2.0, 1.0, 0.0))
    CHOICES: ClassVar = dict.fromkeys(("player_0", "player_1"), ("rock", "paper", "scissors"))
    action_names = CHOICES["player_0"]
    OBS: ClassVar = dict.fromkeys(("player_0", "player_1"), (1.0,))
    EQUILIBRIUM: ClassVar = dict.fromkeys(("player_0", "player_1"), (1 / 4, 1 / 2, 1 / 4))
    VALUE: ClassVar[float] = 0.0


class Cycle(_ZeroSumGame):
    """`toy_match_cycle`: seven choices in a circle, each of which beats the three before it and loses to the others.

    Whoever always does the same is beaten by three choices, so a policy that only ever meets itself goes round in the
    circle, and loses to what it did half a round ago. In the equilibrium all choices are as likely.
    """

    PAYOFF = tuple(tuple(float((0, 1, 1, 1, -1, -1, -1)[(i - j) % 7]) for j in range(7)) for i in range(7))
    CHOICES: ClassVar = dict.fromkeys(("player_0", "player_1"), tuple(f"choice_{i}" for i in range(7)))
    OBS: ClassVar = dict.fromkeys(("player_0", "player_1"), (1.0,))
    EQUILIBRIUM: ClassVar = dict.fromkeys(("player_0", "player_1"), (1 / 7,) * 7)
    VALUE: ClassVar[float] = 0.0


class CountingMatch:
    """`toy_match_counting`: nothing to learn; every observation says exactly where it is from.

    The observation is [env_idx, agent_idx, episode, step, action]: the number of the environment in the whole run, of
    the agent in the match, of its episode over all matches and of the step in it, all from 0, and the action that led
    here (-1 at the start of an episode). The action of step s pays s + 1. An episode takes `num_steps`, 1 to 7, and
    ends with termination, or with truncation where `truncates` says so. So the agents of a match leave one by one.

    With `episodes_per_match` above 1 they come back, `pause` steps of the others later, for this many episodes in all,
    unless everybody has left in the meantime, which ends the match.
    """

    def __init__(self, num_agents: int = 2, episodes_per_match: int = 1, env_idx: int = 0) -> None:
        for name, value in (("num_agents", num_agents), ("episodes_per_match", episodes_per_match)):
            if value < 1:
                raise UsageError(f"{name} is {value}: at least 1")
        self.possible_agents = [f"agent_{a}" for a in range(num_agents)]
        self.agents: list[str] = []
        self._env_idx = env_idx
        self._episodes_per_match = episodes_per_match
        self._idx = {agent: a for a, agent in enumerate(self.possible_agents)}
        self._episode = dict.fromkeys(self.possible_agents, -1)
        self._step = dict.fromkeys(self.possible_agents, 0)
        self._num_played: dict[str, int] = {}  # episodes in this match
        self._away: dict[str, int] = {}  # steps until an agent comes back
        self._obs_space = gym.spaces.Box(-1.0, 2.0**24, (5,), np.float32)  # float32 counts exactly up to 2^24
        self._action_space = gym.spaces.Discrete(8)

    @staticmethod
    def num_steps(env_idx: int, agent_idx: int, episode: int) -> int:
        return 1 + (2 * env_idx + agent_idx + (1 + (2 + agent_idx) % 6) * episode) % 7

    @staticmethod
    def truncates(agent_idx: int, episode: int) -> bool:
        return episode // (agent_idx + 1) % 2 == 1

    @staticmethod
    def pause(agent_idx: int, episode: int) -> int:
        """Returns how many steps after this episode the agent does not act."""
        return 1 + (agent_idx + episode) % 3

    def observation_space(self, agent: str) -> gym.Space:
        return self._obs_space

    def action_space(self, agent: str) -> gym.Space:
        return self._action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[_ByAgent, _ByAgent]:
        self._num_played = dict.fromkeys(self.possible_agents, 0)
        self._away = {}
        self.agents = list(self.possible_agents)
        return {agent: self._first_obs(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> _Step:
        """Raises UsageError for actions of others than `agents`."""
        acted = self.agents
        if actions.keys() != set(acted):
            raise UsageError(f"actions came for {sorted(actions)}, but {acted} act")
        terminations, truncations = dict.fromkeys(acted, False), dict.fromkeys(acted, False)
        for agent in acted:
            a, episode = self._idx[agent], self._episode[agent]
            self._step[agent] += 1
            if self._step[agent] == self.num_steps(self._env_idx, a, episode):
                truncations[agent] = self.truncates(a, episode)
                terminations[agent] = not truncations[agent]
        rewards = {agent: float(self._step[agent]) for agent in acted}
        obs = {agent: self._obs(agent, actions[agent]) for agent in acted}
        stay = [agent for agent in acted if not terminations[agent] and not truncations[agent]]
        come = self._who_comes_back() if stay else []
        for agent in acted:
            if agent not in stay and self._num_played[agent] < self._episodes_per_match:
                self._away[agent] = self.pause(self._idx[agent], self._episode[agent])
        obs |= {agent: self._first_obs(agent) for agent in come}
        self.agents = sorted(stay + come, key=self.possible_agents.index)
        return obs, rewards, terminations, truncations, {agent: {} for agent in obs}

    def close(self) -> None:
        pass

    def _who_comes_back(self) -> list[str]:
        self._away = {agent: steps - 1 for agent, steps in self._away.items()}
        come = [agent for agent, steps in self._away.items() if steps == 0]
        for agent in come:
            del self._away[agent]
        return come

    def _first_obs(self, agent: str) -> np.ndarray:
        self._episode[agent] += 1
        self._num_played[agent] += 1
        self._step[agent] = 0
        return self._obs(agent, -1)

    def _obs(self, agent: str, action: int) -> np.ndarray:
        where = (self._env_idx, self._idx[agent], self._episode[agent], self._step[agent], action)
        return np.array(where, np.float32)


TOYS: dict[str, Callable[..., ParallelEnv]] = {
    "toy_match_pennies": Pennies,
    "toy_match_rps": RockPaperScissors,
    "toy_match_cycle": Cycle,
    "toy_match_counting": CountingMatch,
}
