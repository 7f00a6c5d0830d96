"""Judges players of seats that have a population each: what each seat wins, and how far a mixture can be exploited.

In a game of OpenSpiel that can be enumerated both are exact, for policies without a memory. Otherwise players meet in
matches, and how far they can be exploited is not known.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec, UsageError
from sf.envs.openspiel.family import PREFIX
from sf.envs.seeding import env_seed
from sf.evaluation.endless import OF_SEVERAL_AGENTS, EndlessWatch
from sf.evaluation.play.exploitability import exploitability, information_states, mixture, require_no_memory
from sf.evaluation.play.opponents import RANDOM, Opponent
from sf.evaluation.task import EvaluationTask, evaluate
from sf.model.building import build_model
from sf.storage.checkpoint import Checkpoint
from sf.system.processes.torch_runtime import resolve_device
from sf.tools.psro.judge import SEED_KEY, NeverMetError, Tables

if TYPE_CHECKING:
    from sf.envs.openspiel.information_states import InformationStates

Players = Mapping[str, Checkpoint | None]
"""Policies by name; None plays random moves."""

Mixtures = Sequence[Mapping[str, float]]
"""[S] for each seat the shares of its players."""


class SeatJudge(Protocol):
    """Judges the players of S seats."""

    def values(self, profile: Sequence[str], players: Players) -> list[float]:
        """Returns what each seat wins on average, [S]. profile: [S] the player of each seat."""
        ...

    def best_response_values(self, players: Players, mixtures: Mixtures) -> list[float] | None:
        """Returns what each seat would win by an exact best response to the others, [S]; None if it is not known."""
        ...

    def exploitability(self, players: Players, mixtures: Mixtures) -> float | None:
        """Returns what a seat gains by a best response, on average over the seats; None if it is not known."""
        ...


def seat_judge_of(
    config: Config, spec: EnvSpec, seats: Sequence[Sequence[int]], num_matches: int, say: Callable[[str], None]
) -> SeatJudge:
    """seats: the agents of each. say: is told why players are not judged exactly, and of matches that have no end."""
    if config.run.env.startswith(PREFIX) and len(seats) == spec.num_agents:
        state_size = build_model(config.model, spec.obs_space, ActionSpec.of(spec.action_space)).state_size
        try:
            require_no_memory(state_size, "a best response")
            return Exact(information_states(config.run.env, config.environment))
        except UsageError as error:
            say(f"{error}. Payoffs are those of {num_matches} matches a profile, and exploitability is not known")
    return ByMatches(config, spec, seats, num_matches, say)


class Exact:
    """Judges by the probabilities of all actions at all information states."""

    def __init__(self, states: InformationStates) -> None:
        self._states = states
        self._tables = Tables(states)

    def values(self, profile: Sequence[str], players: Players) -> list[float]:
        values: list[float] = self._states.returns([self._tables.of(name, players) for name in profile]).tolist()
        return values

    def best_response_values(self, players: Players, mixtures: Mixtures) -> list[float]:
        policy = self._policy(players, mixtures)
        return [self._states.best_response_value(seat, policy) for seat in range(len(mixtures))]

    def exploitability(self, players: Players, mixtures: Mixtures) -> float:
        return exploitability(self._states, self._policy(players, mixtures))

    def _policy(self, players: Players, mixtures: Mixtures) -> np.ndarray:
        """Returns the one policy [S, A] that plays in each seat like the draws from its mixture."""
        names = list(dict.fromkeys(name for of_seat in mixtures for name in of_seat))
        weights = np.array([[of_seat.get(name, 0.0) for name in names] for of_seat in mixtures])  # [P, K]
        tables = [self._tables.of(name, players) for name in names]
        return mixture(self._states, tables, weights / weights.sum(axis=1, keepdims=True))


class ByMatches:
    """Judges by matches in all processes that the machine has cores for."""

    def __init__(
        self,
        config: Config,
        spec: EnvSpec,
        seats: Sequence[Sequence[int]],
        num_matches: int,
        say: Callable[[str], None],
    ) -> None:
        """seats: the agents of each. num_matches: of each profile."""
        self._config = config
        self._num_matches = num_matches
        self._say = say
        self._time_limit = spec.time_limit
        self._seat_of = {agent: seat for seat, own in enumerate(seats) for agent in own}
        self._smallest = min(map(len, seats))
        self._random = Opponent(RANDOM, config.run.env, config.environment, spec.native_obs_space, spec.action_space)

    def values(self, profile: Sequence[str], players: Players) -> list[float]:
        task = EvaluationTask(
            env=self._config.run.env,
            options=self._config.environment,
            players={f"{seat} {name}": players[name] or self._random for seat, name in enumerate(profile)},
            num_episodes=self._num_matches * self._smallest,
            objective=self._config.population.pbt_target_objective,
            seed=env_seed(self._config.run.seed, SEED_KEY, zlib.crc32(" ".join(profile).encode())),
            device=resolve_device(self._config.run.device),
            roles=tuple((self._seat_of[agent],) for agent in sorted(self._seat_of)),
        )
        met = evaluate(task, EndlessWatch(self._say, OF_SEVERAL_AGENTS, lambda: self._time_limit))
        scores: list[list[float]] = [[] for _ in profile]
        for sides in met.scores_of_matches().values():
            if len({seat for seat, _ in sides.values()}) == len(profile):
                for seat, of_seat in enumerate(scores):
                    of_seat.append(sum(score for own, score in sides.values() if own == seat))
        if not scores[0]:
            raise NeverMetError(self._config.run.env, profile)
        return [float(np.mean(of_seat)) for of_seat in scores]

    def best_response_values(self, players: Players, mixtures: Mixtures) -> None:
        return None

    def exploitability(self, players: Players, mixtures: Mixtures) -> None:
        return None
