"""What is played, and who plays it: by the flags of `sf-play`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sf import envs
from sf.envs import EnvOptions
from sf.envs.registry import kwargs_against
from sf.evaluation.play.opponents import RANDOM, Opponent
from sf.evaluation.play.player import Player
from sf.storage import text_files
from sf.storage.zoo.places import is_policy

if TYPE_CHECKING:
    from sf.evaluation.play.contestants import Contestant
    from sf.tools.commands.play.command import PlayFlags

YOU = "you"


@dataclass(frozen=True)
class Game:
    """others: the other players by name, none in an environment of one agent."""

    env: str
    options: EnvOptions
    num_agents: int
    others: Mapping[str, Contestant]

    @property
    def names(self) -> list[str]:
        """Of all players, the person first."""
        return [YOU, *self.others]

    def lineups(self, num_episodes: int, agent: int | None) -> np.ndarray:
        """[M, A] of all matches, as `sf.evaluation.play.episodes.Play` takes them: 0 is the person, who is this agent,
        from 1."""
        lineups = np.zeros((num_episodes, self.num_agents), np.int64)
        for m in range(num_episodes):
            own = m % self.num_agents if agent is None else agent - 1
            turn = m // self.num_agents if agent is None else m  # the others change when the person has had each seat
            rest = [a for a in range(self.num_agents) if a != own]
            lineups[m, rest] = 1 + (turn + np.arange(len(rest))) % max(1, len(self.others))
        return lineups


def find_game(flags: PlayFlags) -> Game:
    """Raises ValueError where there is no such environment or player, and where they do not fit each other."""
    env, options, policies = _named(flags)
    against = flags.against
    num_agents = envs.describe(env, options).num_agents
    if num_agents == 1:
        own = kwargs_against(env, against[0]) if len(against) == 1 else None
        if against and own is None:
            raise ValueError(f"against is {' '.join(against)}, but {env} has one agent, you: leave it out")
        options = _with_kwargs(options, own or {})
    spec = envs.describe(env, options)
    if flags.agent is not None and not 1 <= flags.agent <= num_agents:
        raise ValueError(f"agent is {flags.agent}, but {env} has {num_agents}: from 1 to {num_agents}")
    if num_agents == 1:
        return Game(env, options, 1, {})
    if not against and policies:
        from sf.evaluation.play.contestants import require_spaces  # noqa: PLC0415

        require_spaces(policies, env, spec)
        return Game(env, options, num_agents, policies)
    from sf.evaluation.play.contestants import find_opponents  # noqa: PLC0415  torch is slow to import: not to play alone

    others = find_opponents(env, options, spec, against or (RANDOM,), flags.checkpoint, flags.trust)
    return Game(env, options, num_agents, others)


def _named(flags: PlayFlags) -> tuple[str, EnvOptions, Mapping[str, Contestant]]:
    """The environment that `flags.env` names, its options, and the policies of that name, if it is a run."""
    env, options = flags.env, EnvOptions()
    policies: Mapping[str, Contestant] = {}
    if flags.policy is not None and not is_policy(env):
        raise ValueError(f"policy is {flags.policy}, which is for a run, and {env} is an environment: leave it out")
    if is_policy(env) or flags.override:
        from sf.evaluation.play.contestants import find_contest, overridden  # noqa: PLC0415
    if is_policy(env):
        found = find_contest(Path(env), (), flags.checkpoint, flags.policy, (), flags.trust)
        env, options, policies = found.config.run.env, found.options, found.players
    if flags.override:
        options = overridden(options, flags.override)
    if flags.env_wrappers:
        options = dataclasses.replace(options, env_wrappers=flags.env_wrappers)
    return env, _with_kwargs(options, EnvOptions(env_kwargs=flags.env_kwargs).kwargs), policies


def _with_kwargs(options: EnvOptions, kwargs: Mapping[str, Any]) -> EnvOptions:
    return dataclasses.replace(options, env_kwargs=text_files.dumps({**options.kwargs, **kwargs}))


def make_players(game: Game) -> list[Player]:
    """The others."""
    if all(isinstance(each, Opponent) for each in game.others.values()):
        return [each.player() for each in game.others.values() if isinstance(each, Opponent)]
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
    from sf.system.processes.torch_runtime import configure  # noqa: PLC0415

    configure("cpu", num_threads=1, deterministic=True)
    return [
        each.player() if isinstance(each, Opponent) else TorchPolicy(each, name) for name, each in game.others.items()
    ]
