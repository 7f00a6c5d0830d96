"""Trains with Sample Factory on a match of this project's environments, such as pettingzoo:atari/pong_v3.

`sample_factory.py` runs it in the virtual environment of the peer, with flags of Sample Factory. The environment is a
group of `sf.envs` of one match, so the emulator, the preprocessing and the observations are the same code as in this
project. The defaults are those of Sample Factory's Atari example, with its convolutions. Each further observation, such
as the seat, goes through linear layers of its own, and is joined with them, as it is here.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl
from sf_examples.atari.atari_params import atari_override_defaults

from sf import envs

SEED_OF_UNSEEDED = 0

# Sample Factory 2.1.1 is made for gymnasium 0.29, whose wrappers hand on the attributes of the environment, such as
# num_agents. Those of gymnasium 1, which sf.envs and PettingZoo need, no longer do.
gym.Wrapper.__getattr__ = lambda self, name: getattr(self.env, name)  # type: ignore[attr-defined]


def main() -> int:
    parser, flags = parse_sf_args()
    atari_override_defaults(flags.env, parser)
    cfg = parse_full_cfg(parser)
    register_env(cfg.env, make_match)
    return int(run_rl(cfg))


def make_match(name: str, cfg: Any = None, env_config: Any = None, render_mode: str | None = None) -> Match:
    """Sample Factory asks for it with its settings, and with the number of the environment under env_id."""
    seed = SEED_OF_UNSEEDED if cfg is None or cfg.seed is None else cfg.seed
    return Match(name, seed, env_config["env_id"] if env_config else 0)


class Match(gym.Env):
    """One match, in the manner of Sample Factory: a list with an entry for each agent, in place of each value, and a
    match that is over begins again by itself."""

    is_multiagent = True

    def __init__(self, name: str, seed: int, env_idx: int) -> None:
        self._group = envs.make_group(name, 1, envs.EnvOptions(), seed=seed, first_env_idx=env_idx)
        spec = self._group.spec
        self.num_agents = spec.num_agents
        self.observation_space = spec.obs_space
        self._boxes = spec.obs_space.spaces
        self.action_space = spec.action_space
        self._result = envs.StepResult.empty(self.num_agents)
        self._continuous = np.zeros((self.num_agents, 0), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """The seed is that of `__init__`, as this project seeds its environments."""
        obs = self._rows()
        self._group.reset(obs)
        return self._by_agent(obs), [{} for _ in range(self.num_agents)]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        discrete = np.asarray(actions, np.int32).reshape(self.num_agents, 1)
        obs, result = self._rows(), self._result
        self._group.step(discrete, self._continuous, obs, result)
        reward, terminated, truncated = result.reward.copy(), result.terminated.copy(), result.truncated.copy()
        if truncated.any():  # the next match begins with the next step, which ignores the actions
            self._group.step(discrete, self._continuous, obs, result)
        return self._by_agent(obs), reward, terminated, truncated, [{} for _ in range(self.num_agents)]

    def close(self) -> None:
        self._group.close()

    def _rows(self) -> dict[str, list[np.ndarray]]:
        """Returns new ones each time, since Sample Factory may keep those before."""
        agents = range(self.num_agents)
        return {key: [np.empty(box.shape or (), box.dtype) for _ in agents] for key, box in self._boxes.items()}

    def _by_agent(self, obs: dict[str, list[np.ndarray]]) -> list[dict[str, np.ndarray]]:
        return [{key: rows[idx] for key, rows in obs.items()} for idx in range(self.num_agents)]


if __name__ == "__main__":
    sys.exit(main())
