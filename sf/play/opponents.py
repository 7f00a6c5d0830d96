"""Players that are no trained policy, by the name that a user gives them: `random`, `module:Name`, `openspiel:mcts:N`,
`bot:NAME`.

A new kind of player is a module of this folder, and a line in `Opponent.player`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym

from sf.envs.errors import UsageError
from sf.envs.openspiel.family import INSTALL
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ActionSpec
from sf.play.kinds import simulators_bot
from sf.play.kinds.random_player import RandomPlayer
from sf.play.kinds.scripted_player import ScriptedPlayer
from sf.play.kinds.simulators_bot import SimulatorsBot
from sf.play.player import Player
from sf.zoo import hub

RANDOM = "random"


@dataclass(frozen=True)
class Opponent:
    """What a process needs to know to play it. obs_space, action_space: as the environment has them."""

    name: str
    env: str
    options: EnvOptions
    obs_space: gym.Space
    action_space: gym.Space

    def player(self) -> Player:
        """Raises UsageError where there is no such player, or where it cannot play this environment."""
        if self.name == RANDOM:
            return RandomPlayer(ActionSpec.of(self.action_space))
        if self.name.startswith(OPENSPIEL):
            try:
                from sf.play.kinds.openspiel_player import OpenSpielPlayer  # noqa: PLC0415  an extra
            except ImportError as error:
                raise UsageError(f"player {self.name!r}: {error}: {INSTALL}") from error
            return OpenSpielPlayer(self.name, self.env, self.options)
        if self.name.startswith(simulators_bot.PREFIX):
            return SimulatorsBot(self.name, self.env, self.options)
        return ScriptedPlayer(self.name, self.obs_space, self.action_space)


def is_name(named: str) -> bool:
    """Whether this is the name of an opponent, and no run, checkpoint or policy of a zoo."""
    try:
        is_there = Path(named).exists()
    except (OSError, ValueError):  # what no file can be called
        is_there = False
    if is_there or hub.is_address(named):
        return False
    return named == RANDOM or ":" in named
