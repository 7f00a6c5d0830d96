"""Players that are no trained policy, by the name that a user gives them: `random`, `module:Name`, `openspiel:mcts:N`,
`gtp:COMMAND`, `bot:NAME`, `search:N`, `search:N:RUN`.

A new kind of player is a class with a method `actors`, and a line in `Opponent.player`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sf import envs
from sf.config.trust import PROGRAM, SEARCH
from sf.envs import EnvOptions
from sf.envs.custom.named_objects import did_you_mean, import_module, split
from sf.envs.errors import UsageError, call_of, summary
from sf.envs.group import ADVICE
from sf.envs.groups.kinds import AGENT_KIND, OwnForm
from sf.envs.openspiel.family import INSTALL
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.process_guards import keep_working_directory
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec, random_actions
from sf.envs.spaces.reading_back import action_encoder, obs_reader
from sf.evaluation.play.player import Actions, Obs, OneByOne, Player
from sf.search.search import SearchSettings
from sf.storage.zoo import hub

RANDOM = "random"
BOT = "bot:"


@dataclass(frozen=True)
class RandomPlayer:
    action_spec: ActionSpec

    def actors(self, num_actors: int, seed: int) -> _RandomActors:
        return _RandomActors(self.action_spec, np.random.default_rng(seed))


@dataclass(frozen=True)
class _RandomActors:
    action_spec: ActionSpec
    rng: np.random.Generator

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        actions = random_actions(self.rng, self.action_spec, len(first), obs.get(ACTION_MASK))
        return Actions(*actions, np.full(len(first), np.nan, np.float32))


class SimulatorsBot:
    """Names the bot to the environment, which lets it act: see `sf.envs.EnvSpec.bots`."""

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError where the environment has no such bot."""
        spec = envs.describe(env_id, options)
        if not spec.bots:
            raise UsageError(
                f"player {name!r}: {env_id} has no bot that can take the place of an agent: name another player"
            )
        if name.removeprefix(BOT) not in spec.bots:
            known = ", ".join(BOT + bot for bot in spec.bots)
            raise UsageError(f"player {name!r}: the bots of {env_id} are {known}: write one of them")
        action_spec = ActionSpec.of(spec.action_space)
        number = spec.bots[name.removeprefix(BOT)]
        self._action = (
            np.full(len(action_spec.discrete_sizes), number, np.int32),
            np.zeros(action_spec.num_continuous, np.float32),
        )

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        return OneByOne(lambda n, rows, is_first: self._action)


@dataclass(frozen=True)
class AdvisedPlayer:
    """Plays what a bot says that it would do: see `sf.envs.group.ADVICE`. It is also the actors of that player."""

    name: str

    def actors(self, num_actors: int, seed: int) -> AdvisedPlayer:
        return self

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        choices = obs[ADVICE + self.name].argmax(-1).astype(np.int32)
        num = len(choices)
        return Actions(choices[:, None], np.zeros((num, 0), np.float32), np.full(num, np.nan, np.float32))


class ScriptedPlayer:
    """Plays what `module:Name` says, observation by observation, in the form of the environment itself.

    A function gets an observation and returns an action. Of a class, each actor has an object, made without arguments:
    its `act` gets the observations, and its `reset`, if it has one, is called as an episode begins. Neither is asked
    where no action is allowed, since others move. `deterministic` does not reach them.
    """

    def __init__(
        self, reference: str, obs_space: gym.Space, action_space: gym.Space, kinds: Sequence[OwnForm] = ()
    ) -> None:
        """Imports what the user has named. Raises UsageError if it is missing. Spaces are those of the env.

        kinds: of agents, where they differ: each sees and gives what its own kind does.
        """
        module_name, name = split(reference, f"player {reference!r}")
        module = import_module(module_name, f"player {reference!r}")
        found = getattr(module, name, None)
        if not callable(found) or (isinstance(found, type) and not callable(getattr(found, "act", None))):
            raise UsageError(
                f"player {reference!r}: {module_name} has no function {name}, nor a class of that name with a method "
                f"act(observation): write one{did_you_mean(module_name, name, vars(module))}"
            )
        self._reference = reference
        self._named: Callable[..., Any] = found
        self._first = self._new()  # what is wrong with it is said now
        self._read = obs_reader(obs_space)
        self._encode = action_encoder(action_space)
        self._kinds = kinds
        spec = ActionSpec.of(action_space)
        self._no_action = np.zeros(len(spec.discrete_sizes), np.int32), np.zeros(spec.num_continuous, np.float32)

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        first, self._first = self._first, None
        players = [first if n == 0 and first is not None else self._new() for n in range(num_actors)]
        return OneByOne(lambda n, rows, first: self.act(players[n], rows, first))

    def _new(self) -> Any:
        """The object of an actor; None of a function."""
        if not isinstance(self._named, type):
            self._require_one_argument(self._named, self._reference.rpartition(":")[2])
            return None
        try:
            player = self._named()
        except Exception as error:
            raise UsageError(
                f"player {self._reference!r} cannot be made without arguments: {summary(error)}: fix its __init__"
            ) from error
        self._require_one_argument(player.act, "act")
        return player

    def _require_one_argument(self, called: Callable[..., Any], name: str) -> None:
        try:
            inspect.signature(called).bind(None)
        except TypeError as error:
            raise UsageError(
                f"player {self._reference!r} cannot be asked for a move ({error}): write {name}(observation), which "
                "returns an action"
            ) from None
        except ValueError:  # of what is not written in Python
            pass

    def act(self, player: Any, rows: Mapping[str, np.ndarray], first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Returns the action of an actor, discrete [D] and continuous [C]. player: its object, or None for a function.

        Raises EnvError where their code does, and UsageError where it returns no action.
        """
        if first and hasattr(player, "reset"):
            with call_of(self._reference, "reset"):
                player.reset()
        if ACTION_MASK in rows and not rows[ACTION_MASK].any():  # it is not its turn
            return self._no_action
        read, encode = self._read, self._encode
        if self._kinds:
            kind = self._kinds[int(rows[AGENT_KIND].argmax())]
            read, encode = kind.read, kind.encode
        obs = read(rows)
        with call_of(self._reference, "its move"):
            action = self._named(obs) if player is None else player.act(obs)
        try:
            return encode(action)
        except UsageError as error:
            raise UsageError(f"player {self._reference!r}: {error}") from None


@dataclass(frozen=True)
class Opponent:
    """Describes an opponent to another process. obs_space, action_space: as the environment has them."""

    name: str
    env: str
    options: EnvOptions
    obs_space: gym.Space
    action_space: gym.Space
    policy: bytes | None = field(default=None, repr=False)  # the checkpoint of the policy that it has
    search: SearchSettings | None = None  # how it searches; None: as its name says, if it does

    @classmethod
    def named(
        cls,
        name: str,
        env: str,
        options: EnvOptions,
        obs_space: gym.Space,
        action_space: gym.Space,
        is_trusted: bool = False,
    ) -> Opponent:
        """Finds what the name speaks of. Raises ValueError where there is no such policy or player."""
        found = cls(name, env, options, obs_space, action_space)
        if name.startswith(SEARCH):
            from sf.evaluation.play.games.search_player import policy_named  # noqa: PLC0415  torch is slow to import

            found = dataclasses.replace(found, policy=policy_named(name, is_trusted))
        with keep_working_directory():
            found.player()  # what is wrong with it is said before anything starts
        return found

    def player(self) -> Player:
        """Raises UsageError where there is no such player, or where it cannot play this environment."""
        if self.name == RANDOM:
            return RandomPlayer(ActionSpec.of(self.action_space))
        if self.name.startswith((OPENSPIEL, PROGRAM)):
            try:
                from sf.evaluation.play.games.gtp_player import GtpPlayer  # noqa: PLC0415  an extra
                from sf.evaluation.play.games.openspiel_player import OpenSpielPlayer  # noqa: PLC0415
            except ImportError as error:
                raise UsageError(f"player {self.name!r}: {error}: {INSTALL}") from error
            kind = GtpPlayer if self.name.startswith(PROGRAM) else OpenSpielPlayer
            return kind(self.name, self.env, self.options)
        if self.name.startswith(SEARCH):
            from sf.evaluation.play.games.search_player import SearchPlayer  # noqa: PLC0415  torch is slow to import

            return SearchPlayer(self.name, self.env, self.options, self.policy, self.search)
        if self.name.startswith(BOT) and self.name.removeprefix(BOT) in self.options.advice:
            return AdvisedPlayer(self.name.removeprefix(BOT))
        if self.name.startswith(BOT):
            return SimulatorsBot(self.name, self.env, self.options)
        return ScriptedPlayer(self.name, self.obs_space, self.action_space, self._kinds())

    def _kinds(self) -> list[OwnForm]:
        """Returns those of the environment's agents; none if they are alike."""
        if not isinstance(self.obs_space, gym.spaces.Dict) or AGENT_KIND not in self.obs_space.spaces:
            return []
        own_spaces = envs.describe(self.env, self.options).own_spaces
        return [OwnForm(self.env, *own, self.action_space) for own in own_spaces]


def with_advice(named: Sequence[str], options: EnvOptions) -> EnvOptions:
    """Returns the options with which the bots that are named say what they would do."""
    return dataclasses.replace(options, advice=tuple(name.removeprefix(BOT) for name in named if name.startswith(BOT)))


def with_single_envs(named: Sequence[str], options: EnvOptions) -> EnvOptions:
    """Returns the options with which environments can be copied, where a player that is named searches."""
    if not any(name.startswith(SEARCH) for name in named):
        return options
    return dataclasses.replace(options, single_envs=True)


def is_name(named: str) -> bool:
    """Returns whether this names an opponent, and no run, checkpoint or policy of a zoo."""
    try:
        is_there = Path(named).exists()
    except (OSError, ValueError):  # what no file can be called
        is_there = False
    if is_there or hub.is_address(named):
        return False
    return named == RANDOM or ":" in named
