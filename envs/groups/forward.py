"""Plays Gymnasium environments on for a search, in copies of them.

Each position is a copy of the whole environment, with its wrappers. A copy draws other random numbers than the
environment itself will, so a search cannot foresee them. Where they decide what follows, an action leads to chance,
with `NUM_OUTCOMES` samples of what may follow, alike in probability.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from sf.envs.errors import UsageError, env_exceptions, summary
from sf.envs.group import CHANCE, OVER, ObsRows, Positions
from sf.envs.groups import calls
from sf.envs.remarks import handed_to
from sf.envs.spaces.action_names import action_names
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import ObsWriter, obs_arrays
from sf.envs.wrappers.layers import objects

NUM_OUTCOMES = 8
MOST_STEPS = 200  # of random play; what comes behind them does not count
_NUM_CHECKED = 10  # steps
_MOST_LOOKED_AT = 32  # entries of a list: a longer one is a table
_NUM_DRAWS = 3  # of other random numbers, to see whether they make a difference

_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


class Game(NamedTuple):
    """Holds what an environment plays now: what it is, and what it showed last."""

    env: gym.Env
    obs: Any


@dataclass(frozen=True)
class _Position:
    """Holds an environment that is never stepped again, and what led there."""

    env: gym.Env
    obs: Any
    generators: Sequence[Any] = ()  # of the random numbers of `env`
    reward: float = 0.0
    is_over: bool = False


@dataclass(frozen=True)
class _Chance:
    """Holds an action that was taken at a position, and its first outcome."""

    before: _Position
    action: int
    first: _Position
    reward: float = field(default=0.0, init=False)


class CopyingModel:
    """Is a `sf.envs.group.ForwardModel` of environments with one agent and a Discrete action space."""

    num_players = 1
    low = high = 0.0  # not known, and not used for one player
    pays_at_end = False

    def __init__(self, env_id: str, obs_space: gym.Space, action_space: gym.Space, frameskip: int, seed: int) -> None:
        """obs_space: as the environment has it. seed: of chance and of random play."""
        assert isinstance(action_space, gym.spaces.Discrete)
        self.num_actions = int(action_space.n)
        self._env_id = env_id
        self._start = int(action_space.start)
        self._frameskip = frameskip
        with handed_to(lambda about, sentence: None):  # the group has said it
            self._writer = ObsWriter(env_id, obs_space)
        self._rows = {key: list(rows) for key, rows in obs_arrays(self._writer.space, 1).items()}
        self._has_mask = ACTION_MASK in self._rows
        self._rng = np.random.default_rng(seed)
        self._positions: dict[int, list[_Position | _Chance]] = {}  # by game and place
        self._is_checked = False
        self._has_chance = False

    def begin(self, game: int, state: Game) -> None:
        """Raises UsageError where a copy of the environment does not do what the environment would."""
        position = _Position(*state)
        if not self._is_checked:
            self._check(position)
            self._is_checked = True
        self._positions[game] = [self._copy(position, draws_anew=True)]

    def play(
        self, games: Sequence[int], sources: Sequence[int], actions: Sequence[int], places: Sequence[int]
    ) -> Positions:
        movers, rewards, num_choices = [], [], []
        choices: list[int] = []
        odds: list[float] = []
        for game, source, action, place in zip(games, sources, actions, places, strict=True):
            positions = self._positions[game]
            if source >= 0:
                assert place == len(positions), "positions are made in their order"
                positions.append(self._after(positions[source], action))
            position = positions[place]
            own: Sequence[int] = ()
            if isinstance(position, _Chance):
                movers.append(CHANCE)
                own = range(NUM_OUTCOMES)
            elif position.is_over:
                movers.append(OVER)
            else:
                movers.append(0)
                own = self._choices(position.obs)
            rewards.append(position.reward)
            num_choices.append(len(own))
            choices += own
            odds += [1.0 / max(len(own), 1)] * len(own)
        return Positions(
            np.array(movers, np.int8),
            np.array(rewards, np.float32),
            np.zeros(len(movers), np.float32),
            np.array(num_choices, np.int32),
            np.array(choices, np.int32),
            np.array(odds, np.float32),
        )

    def keep(self, game: int, places: np.ndarray) -> None:
        positions = self._positions[game]
        self._positions[game] = [positions[place] for place in places.tolist()]

    def show(self, games: Sequence[int], places: Sequence[int], obs: ObsRows) -> None:
        for row, (game, place) in enumerate(zip(games, places, strict=True)):
            position = self._positions[game][place]
            assert isinstance(position, _Position)
            self._write(position.obs)
            for key, rows in obs.items():
                rows[row][...] = self._rows[key][0]

    def action_name(self, game: int, place: int, action: int) -> str:
        position = self._positions[game][place]
        if isinstance(position, _Chance):
            return f"chance {action}"
        names = action_names(position.env, position.env.action_space)
        return names[0][action] if names else str(action + self._start)

    def play_out(self, games: Sequence[int], places: Sequence[int]) -> np.ndarray:
        """Plays `MOST_STEPS` decisions at most."""
        won = np.zeros(len(games), np.float32)
        for row, (game, place) in enumerate(zip(games, places, strict=True)):
            position = self._positions[game][place]
            assert isinstance(position, _Position)
            going = self._copy(position, draws_anew=True)
            for _ in range(MOST_STEPS):
                going = self._step(going, self._random_choice(going.obs))
                won[row] += going.reward
                if going.is_over:
                    break
        return won

    def _after(self, position: _Position | _Chance, action: int) -> _Position | _Chance:
        if isinstance(position, _Chance):
            if action == 0:
                return position.first
            return self._step(self._copy(position.before, draws_anew=True), position.action)
        going = self._copy(position)
        before = _states(going.generators) if self._has_chance else None
        after = self._step(going, action)
        if before is None or _states(going.generators) == before:
            return after
        return _Chance(position, action, after)

    def _step(self, position: _Position, choice: int) -> _Position:
        """Take an action in the environment of a position, which is that of the returned one."""
        env = position.env
        obs, reward, terminated, truncated, _, _ = calls.decision(
            self._env_id, env, self._start + choice, self._frameskip
        )
        return _Position(env, obs, position.generators, reward, terminated or truncated)

    def _copy(self, position: _Position, draws_anew: bool = False) -> _Position:
        """draws_anew: with other random numbers."""
        memo = {id(each): each for layer in objects(position.env) for each in _shared(vars(layer).values())}
        try:
            env = copy.deepcopy(position.env, memo)
        except env_exceptions() as error:
            raise UsageError(
                f"{self._env_id} cannot be copied for a search ({summary(error)}): give it a method __deepcopy__ that "
                "can, see docs/extending.md, or play without a search"
            ) from error
        found = [*memo.values(), *(vars(layer).get("_np_random") for layer in objects(env))]
        generators = list({id(each): each for each in found if isinstance(each, _GENERATORS)}.values())
        if draws_anew:
            for generator in generators:
                _reseed(generator, int(self._rng.integers(2**32)))
        return _Position(env, position.obs, generators)

    def _choices(self, obs: Any) -> Sequence[int]:
        """Returns the actions that are allowed; one of them where none is, as the agent waits whatever it does."""
        if not self._has_mask:
            return range(self.num_actions)
        return np.flatnonzero(obs[ACTION_MASK]).tolist() or [0]

    def _random_choice(self, obs: Any) -> int:
        choices = self._choices(obs)
        return choices[int(self._rng.random() * len(choices))]  # a whole number is drawn more slowly

    def _write(self, obs: Any) -> None:
        self._writer.write(obs, self._rows, 0)

    def _check(self, position: _Position) -> None:
        """Find whether random numbers decide what follows. Raises UsageError where copies of one environment do not go
        on alike, or where the environment notices what happens in them."""
        original = self._copy(position)
        actions: list[int] = []
        first, second = (self._trace(self._copy(original), actions) for _ in range(2))
        others = [self._trace(self._copy(original, draws_anew=True), actions) for _ in range(_NUM_DRAWS)]
        if not first == second == self._trace(original, actions):
            raise UsageError(
                f"{self._env_id} does not repeat itself: copies of it went on differently with the same actions, so "
                "draw its random numbers from self.np_random and keep all of its state in the object, or give it a "
                "method __deepcopy__ that copies what is elsewhere, see docs/extending.md"
            )
        self._has_chance = any(other != first for other in others)

    def _trace(self, position: _Position, actions: list[int]) -> list[tuple[bytes, float, bool]]:
        """Returns what happens with these actions, to which random ones are added where they are too few."""
        seen = []
        for num in range(_NUM_CHECKED):
            if num == len(actions):
                actions.append(self._random_choice(position.obs))
            if position.is_over or actions[num] not in self._choices(position.obs):
                break
            position = self._step(position, actions[num])
            self._write(position.obs)
            shown = b"".join(row.tobytes() for (row,) in self._rows.values())
            seen.append((shown, position.reward, position.is_over))
        return seen


def _shared(values: Iterable[Any]) -> Iterator[Any]:
    """Yields the objects among the attributes of an environment that all copies share: what describes it and never
    changes, which takes most of the time, and what it draws with, which cannot be copied."""
    for value in values:
        if isinstance(value, list | tuple | dict) and len(value) <= _MOST_LOOKED_AT:
            yield from _shared(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, gym.Space):
            if value._np_random is None:  # nobody draws from it
                yield value
        elif isinstance(value, EnvSpec) or type(value).__module__.partition(".")[0] == "pygame":
            yield value


def _reseed(generator: Any, seed: int) -> None:
    if isinstance(generator, np.random.Generator):
        kind: Any = type(generator.bit_generator)
        generator.bit_generator.state = kind(seed).state
    else:
        generator.seed(seed)


def _states(generators: Sequence[Any]) -> bytes:
    return pickle.dumps(generators)
