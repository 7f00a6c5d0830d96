"""A person who plays one of the agents: `sf-play`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.evaluation.play.player import OneByOne

Choose = Callable[[int, np.ndarray | None], Sequence[int]]


class HumanPlayer:
    """Asks a person what to do, but not where no action is allowed, since others move."""

    def __init__(self, env_id: str, action_spec: ActionSpec, choose: Choose) -> None:
        """choose: what actor n does, one choice a head, by its action mask [sum of the heads' sizes], if it has one.

        Raises UsageError for actions that are no choices.
        """
        if action_spec.num_continuous or not action_spec.discrete_sizes:
            raise UsageError(
                f"{env_id} has continuous actions, and keys are for choices: name an environment with discrete ones, "
                'or a wrapper, --env_wrappers \'{"gymnasium.wrappers:DiscretizeAction": {"bins": 5}}\''
            )
        self._choose = choose
        self._num_heads = len(action_spec.discrete_sizes)

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        return OneByOne(self._act)

    def _act(self, n: int, rows: Mapping[str, np.ndarray], first: bool) -> tuple[np.ndarray, np.ndarray]:
        mask = rows.get(ACTION_MASK)
        may_act = mask is None or bool(mask.any())
        choices = self._choose(n, None if mask is None else mask.ravel()) if may_act else [0] * self._num_heads
        return np.array(choices, np.int32), np.zeros(0, np.float32)
