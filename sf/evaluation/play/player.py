"""Who acts in an episode: a trained policy, random moves, a function, a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import EnvGroup
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.search.forest import Root

Choose = Callable[[int, np.ndarray | None], Sequence[int]]
Obs = Mapping[str, np.ndarray]
"""The observations of M actors, {key: [M, ...]}, laid out as a group of environments writes them."""


class Actions(NamedTuple):
    """The actions of M actors, laid out as in `sf.envs.spaces.actions.ActionSpec`, and the values."""

    discrete: np.ndarray  # [M, D] int32
    continuous: np.ndarray  # [M, C] float32
    value: np.ndarray  # [M] float32, of the observations acted on; NaN from a player that predicts none


class Actors(Protocol):
    """N actors that one player plays, each with a memory of its own where the player has one."""

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        """Returns the actions of M of the actors. What they remember goes on.

        first: [M] bool, whether an episode begins. who: [M] positions of the actors; None: all of them. deterministic:
        take the most probable action, where the player has probabilities.
        """
        ...


@dataclass(frozen=True)
class Thought:
    """Says why an actor has moved: what its search knows of its choices, their names, and the moves that it expects."""

    root: Root
    names: list[str]
    line: list[str]


@runtime_checkable
class ThinkingActors(Actors, Protocol):
    """Actors that can say why they have moved."""

    def thoughts(self) -> dict[int, Thought]:
        """Returns, by actor, what is behind the moves of the last call of `act`."""
        ...


class Player(Protocol):
    def actors(self, num_actors: int, seed: int) -> Actors: ...


@runtime_checkable
class PlayerInGroup(Player, Protocol):
    """A player that looks into the group of environments in which it plays, where there is one in the process."""

    def actors_in_group(self, group: EnvGroup, num_actors: int, seed: int) -> Actors: ...


class OneByOne:
    """act: of actor n, by what it sees and whether an episode begins: its action, discrete [D] and continuous [C].

    `deterministic` does not reach it, and it predicts no values.
    """

    def __init__(self, act: Callable[[int, Mapping[str, np.ndarray], bool], tuple[np.ndarray, np.ndarray]]) -> None:
        self._act = act

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        positions = range(len(first)) if who is None else who.tolist()
        acted = [
            self._act(n, {key: rows[m] for key, rows in obs.items()}, bool(first[m])) for m, n in enumerate(positions)
        ]
        discrete, continuous = (np.stack(part) for part in zip(*acted, strict=True))
        return Actions(discrete, continuous, np.full(len(first), np.nan, np.float32))


class HumanPlayer:
    """Asks a person what to do (`sf-play`), but not where no action is allowed, since others move."""

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
