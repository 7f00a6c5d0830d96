"""A bot of the simulator in the place of an agent: `bot:NAME`. It acts on the state of the game, inside of it."""

from __future__ import annotations

import numpy as np

from sf import envs
from sf.envs import ActionSpec, EnvOptions
from sf.envs.errors import UsageError
from sf.play.kinds.one_by_one import OneByOne

PREFIX = "bot:"


class SimulatorsBot:
    """Names the bot to the environment, which lets it act: see `sf.envs.EnvSpec.bots`."""

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError where the environment has no such bot."""
        spec = envs.describe(env_id, options)
        if not spec.bots:
            raise UsageError(
                f"player {name!r}: {env_id} has no bot that can take the place of an agent: name another player"
            )
        if name.removeprefix(PREFIX) not in spec.bots:
            known = ", ".join(PREFIX + bot for bot in spec.bots)
            raise UsageError(f"player {name!r}: the bots of {env_id} are {known}: write one of them")
        action_spec = ActionSpec.of(spec.action_space)
        number = spec.bots[name.removeprefix(PREFIX)]
        self._action = (
            np.full(len(action_spec.discrete_sizes), number, np.int32),
            np.zeros(action_spec.num_continuous, np.float32),
        )

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        return OneByOne(lambda n, rows, is_first: self._action)
