"""A bot of the simulator in the place of an agent: `bot:NAME`. It acts on the state of the game, inside of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sf import envs
from sf.envs import ActionSpec, EnvOptions
from sf.envs.errors import UsageError
from sf.play.player import Actions

PREFIX = "bot:"


class SimulatorsBot:
    """Names the bot to the environment, which lets it act: see `sf.envs.EnvSpec.bots`."""

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError where the environment has no such bot."""
        spec = envs.describe(env_id, options)
        if not spec.bots:
            raise UsageError(
                f"against {name!r}: {env_id} has no bot that can take the place of an agent: name another player"
            )
        if name.removeprefix(PREFIX) not in spec.bots:
            known = ", ".join(PREFIX + bot for bot in spec.bots)
            raise UsageError(f"against {name!r}: the bots of {env_id} are {known}: write one of them")
        self._number = spec.bots[name.removeprefix(PREFIX)]
        self._action_spec = ActionSpec.of(spec.action_space)

    def actors(self, num_actors: int, seed: int) -> _Actors:
        return _Actors(self._number, self._action_spec)


class _Actors:
    def __init__(self, number: int, action_spec: ActionSpec) -> None:
        self._number = number
        self._action_spec = action_spec

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        first: np.ndarray,
        who: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> Actions:
        num, spec = len(first), self._action_spec
        discrete = np.full((num, len(spec.discrete_sizes)), self._number, np.int32)
        continuous = np.zeros((num, spec.num_continuous), np.float32)
        return Actions(discrete, continuous, np.full(num, np.nan, np.float32))
