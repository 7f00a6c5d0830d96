"""Judges what players win from each other, and how far a mixture of them can be exploited.

In a game of OpenSpiel that can be enumerated both are exact, for policies without a memory. Otherwise players meet in
matches, and how far they can be exploited is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec, UsageError
from sf.envs.openspiel.family import PREFIX
from sf.envs.seeding import env_seed
from sf.evaluation.endless import OF_SEVERAL_AGENTS, EndlessWatch
from sf.evaluation.play.exploitability import exploitability, information_states, mixture, require_no_memory, tabular
from sf.evaluation.play.opponents import RANDOM, Opponent
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.evaluation.task import Contestant, EvaluationTask, evaluate
from sf.model.building import build_model
from sf.storage.checkpoint import Checkpoint
from sf.system.processes.torch_runtime import resolve_device

if TYPE_CHECKING:
    from sf.envs.openspiel.information_states import InformationStates

SEED_KEY = 0x9520  # another than those of what trains with the same --seed


class NeverMetError(UsageError):
    """Two players have no match in which both have taken part."""

    def __init__(self, env: str, players: Sequence[str]) -> None:
        super().__init__(
            f"{' and '.join(players)} never met in {env}, since an agent of it joins no match: fix the environment"
        )


def matches_of(
    config: Config, num_agents: int, players: Mapping[str, Contestant], num_matches: int, seed: int
) -> EvaluationTask:
    """Returns the task of matches of two sides among `players`, judged by the objective of `config`.

    num_agents: of a match.
    """
    return EvaluationTask(
        env=config.run.env,
        options=config.environment,
        players=players,
        num_episodes=num_matches * num_agents // 2,
        objective=config.population.pbt_target_objective,
        seed=seed,
        device=resolve_device(config.run.device),
    )


def utility_of(config: Config) -> str:
    """Returns the name of the type of payoffs that a game of OpenSpiel has, such as ZERO_SUM."""
    from sf.envs.openspiel.games import load  # noqa: PLC0415  an extra, which is there if the environment is

    name: str = load(config.run.env, config.environment.kwargs, seed=0).game.get_type().utility.name
    return name


class Judge(Protocol):
    """Players are checkpoints by name; None plays random moves."""

    def payoffs(self, name: str, players: Mapping[str, Checkpoint | None], others: Sequence[str]) -> list[float]:
        """Returns what `name` wins on average against each of the others, from all seats alike."""
        ...

    def exploitability(self, players: Mapping[str, Checkpoint | None], weights: Mapping[str, float]) -> float | None:
        """Returns that of the mixture in which a player is drawn by weight before a game; None if it is not known."""
        ...


def judge_of(config: Config, spec: EnvSpec, num_matches: int, say: Callable[[str], None]) -> Judge:
    """say: is told why players are not judged exactly, and of matches that have no end.

    Raises UsageError for a game that is not zero-sum.
    """
    if not config.run.env.startswith(PREFIX):
        return ByMatches(config, spec, num_matches, say)
    if utility_of(config) != "ZERO_SUM":
        raise UsageError(f"env is {config.run.env}, which is not a zero-sum game: sf-psro solves zero-sum games only")
    if spec.num_agents > 2:  # what is computed exactly is of two players
        return ByMatches(config, spec, num_matches, say)
    state_size = build_model(config.model, spec.obs_space, ActionSpec.of(spec.action_space)).state_size
    try:
        require_no_memory(state_size, "a best response")
        return Exact(information_states(config.run.env, config.environment))
    except UsageError as error:
        say(f"{error}. Payoffs are those of {num_matches} matches a pair, and exploitability is not known")
        return ByMatches(config, spec, num_matches, say)


class Tables:
    """Remembers the probabilities of all actions at all information states, [S, A], of players by name."""

    def __init__(self, states: InformationStates) -> None:
        self._states = states
        self._tables: dict[str, np.ndarray] = {}

    def of(self, name: str, players: Mapping[str, Checkpoint | None]) -> np.ndarray:
        if name not in self._tables:
            saved = players[name]
            self._tables[name] = (
                self._states.uniform() if saved is None else tabular(TorchPolicy(saved, name), self._states)
            )
        return self._tables[name]


class Exact:
    """Judges by the probabilities of all actions at all information states."""

    def __init__(self, states: InformationStates) -> None:
        self._states = states
        self._tables = Tables(states)

    def payoffs(self, name: str, players: Mapping[str, Checkpoint | None], others: Sequence[str]) -> list[float]:
        own = self._tables.of(name, players)
        found = []
        for other in others:
            table = self._tables.of(other, players)
            as_first, as_second = self._states.returns([own, table]), self._states.returns([table, own])
            found.append(float(as_first[0] + as_second[1]) / 2)
        return found

    def exploitability(self, players: Mapping[str, Checkpoint | None], weights: Mapping[str, float]) -> float:
        tables = [self._tables.of(name, players) for name in weights]
        shares = np.array(list(weights.values()))
        return exploitability(self._states, mixture(self._states, tables, shares / shares.sum()))


class ByMatches:
    """Judges by matches in all processes that the machine has cores for."""

    def __init__(self, config: Config, spec: EnvSpec, num_matches: int, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._num_matches = num_matches
        self._time_limit = spec.time_limit
        self._num_agents = spec.num_agents
        self._random = Opponent(RANDOM, config.run.env, config.environment, spec.native_obs_space, spec.action_space)

    def payoffs(self, name: str, players: Mapping[str, Checkpoint | None], others: Sequence[str]) -> list[float]:
        found = []
        watch = EndlessWatch(
            self._say, OF_SEVERAL_AGENTS, lambda: self._time_limit
        )  # anew: a response was trained since the last matches
        for number, other in enumerate(others):
            seed = env_seed(self._config.run.seed, SEED_KEY, len(others), number)
            both = {each: players[each] or self._random for each in (name, other)}
            met = evaluate(matches_of(self._config, self._num_agents, both, self._num_matches, seed), watch)
            won, lost = met.score_against(0, 1), met.score_against(1, 0)
            if won is None or lost is None:
                raise NeverMetError(self._config.run.env, (name, other))
            found.append((won.mean - lost.mean) / 2)
        return found

    def exploitability(self, players: Mapping[str, Checkpoint | None], weights: Mapping[str, float]) -> None:
        return None
