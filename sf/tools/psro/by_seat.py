"""The search of `sf-psro` with a population for each seat: all seats get a best response at once, in one run.

Lanctot et al. 2017, "A unified game-theoretic approach to multiagent reinforcement learning", algorithm 1, and Zhou et
al. 2023, "MALib". A seat is a team, or an agent where there are no teams. Each iteration is one run of `sf-train` with
a policy for each seat: the policy meets the mixtures of the other seats, and the sampler and the cores are shared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.field_types import require
from sf.envs.openspiel.family import PREFIX
from sf.envs.teams import agent_names, sides_of
from sf.evaluation.play.opponents import RANDOM
from sf.league.meta_solvers import SOLVERS_BY_SEAT
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint, without_optimizer
from sf.tools.psro import record
from sf.tools.psro.best_response import Share, train_best_responses
from sf.tools.psro.flags import files_of, has_two_equal_sides, require_two_equal_sides
from sf.tools.psro.judge import utility_of
from sf.tools.psro.record import RESPONSES, SeatIteration, payoffs_by_seat
from sf.tools.psro.search import LEAST_SHARE, POLICIES, load_policy, require_same
from sf.tools.psro.seat_judge import SeatJudge


class Seat(NamedTuple):
    """A part of a match with a population of its own. agents: [A'] their numbers. pattern: of their names."""

    name: str
    agents: Sequence[int]
    pattern: str


def seats_of(spec: EnvSpec) -> list[Seat]:
    """Returns the seats of an environment in the order of its agents: its teams, or its agents if it has no teams."""
    names, sides = agent_names(spec), sides_of(spec)
    found = []
    for side in dict.fromkeys(sides):
        agents = [agent for agent, own in enumerate(sides) if own == side]
        name = names[agents[0]] if len(agents) == 1 else f"team_{side}"
        found.append(Seat(name, agents, ",".join(escape(names[agent]) for agent in agents)))
    return found


def is_by_seat(asked: bool | Literal["auto"], solver: str, config: Config, spec: EnvSpec) -> bool:
    """Returns whether a search has a population for each seat. asked: as the flag.

    Raises UsageError for a solver that does not solve such a game, or a game that one network cannot play.
    """
    env, seats = config.run.env, seats_of(spec)
    is_zero_sum = not env.startswith(PREFIX) or utility_of(config) == "ZERO_SUM"
    kinds = {tuple(sorted(spec.kinds[agent] for agent in seat.agents)) for seat in seats if spec.kinds}
    if asked is False or (asked == "auto" and has_two_equal_sides(spec) and len(kinds) < 2 and is_zero_sum):
        require_two_equal_sides(config, spec)
        return False
    require(len(seats) > 1, f"env is {env}, of {spec.num_agents} agents: a response needs an opponent")
    what = f"has {len(seats)} seats" if len(seats) > 2 else "is not zero-sum"
    require(
        (len(seats) == 2 and is_zero_sum) or solver in ("alpharank", "uniform"),
        f"meta_solver is {solver}, and {env} {what}: take alpharank or uniform",
    )
    return True


def config_of_responses(config: Config, spec: EnvSpec) -> Config:
    """Returns the configuration of a run that trains a best response for each seat, each for as long as one."""
    seats = seats_of(spec)
    run = config.run
    return config.replace(
        num_policies=len(seats),
        policy_of={pattern: number for number, seat in enumerate(seats) for pattern in seat.pattern.split(",")},
        train_for_env_steps=None if run.train_for_env_steps is None else len(seats) * run.train_for_env_steps,
        train_for_env_frames=None if run.train_for_env_frames is None else len(seats) * run.train_for_env_frames,
    )


class SeatSearch:
    """directory: where all of it is kept. The search goes on with what is there.

    config: of the responses of an iteration, see `config_of_responses`. solver: a name of `SOLVERS_BY_SEAT`. is_warm:
    a best response begins with the weights of the one before. settings: what a resumed search must have, too.
    """

    def __init__(
        self,
        directory: Path,
        config: Config,
        seats: Sequence[Seat],
        judge: SeatJudge,
        solver: str,
        is_warm: bool,
        settings: Mapping[str, Any],
    ) -> None:
        """Raises ValueError where the directory has another search, or a damaged one, or a policy of it is gone."""
        self._directory = directory
        self._config = config
        self._seats = seats
        self._judge = judge
        self._solver = solver
        self._is_warm = is_warm
        self._settings = dict(settings)
        self._path = directory / record.NAME
        self.iterations = record.read(self._path, SeatIteration)
        if self.iterations:
            require_same(self._settings, self.iterations[0].settings, directory)
        self._players: dict[str, Checkpoint | None] = {}
        for iteration in self.iterations:
            for seat in seats:
                player, path = iteration.players[seat.name], iteration.paths[seat.name]
                self._players[player] = load_policy(directory, path, iteration.iteration, config.run.trust)

    def run(self, num_iterations: int, say: Callable[[str], None]) -> Iterator[SeatIteration]:
        """Yields each iteration when it is over and on the disk. Raises what `train_best_responses` raises."""
        if not self.iterations:
            self._players[RANDOM] = None
            everywhere = {seat.name: RANDOM for seat in self._seats}
            yield self._add(everywhere, dict.fromkeys(everywhere), {}, env_steps=0, seconds=0.0)
        while len(self.iterations) <= num_iterations:
            yield self._respond(say)

    def _respond(self, say: Callable[[str], None]) -> SeatIteration:
        """Train a best response for each seat."""
        number, last = len(self.iterations), self.iterations[-1]
        against = {
            seat: {name: share for name, share in mixture.items() if share >= LEAST_SHARE}
            for seat, mixture in last.mixtures.items()
        }
        for met_in, mixture in against.items():
            shares = ", ".join(f"{player} {share:.2f}" for player, share in mixture.items())
            say(f"iteration {number}: the others meet in {met_in} {shares}")
        name = f"policy_{number:03d}"
        config = self._config.replace(
            train_dir=str(self._directory / RESPONSES),
            experiment=name,
            init_from=str(self._directory / RESPONSES / f"policy_{number - 1:03d}")
            if self._is_warm and number > 1
            else None,
        )
        met = [
            Share(self._reference(player), share, seat.pattern)
            for seat in self._seats
            for player, share in against[seat.name].items()
        ]
        trained = train_best_responses(config, met, say)
        players, paths = {}, dict[str, str | None]()
        for seat, saved in zip(self._seats, trained, strict=True):
            player = players[seat.name] = f"{name}_{seat.name}"
            path = paths[seat.name] = f"{POLICIES}/{player}.safetensors"
            policy = self._players[player] = without_optimizer(saved)
            with files_of(self._directory):
                (self._directory / POLICIES).mkdir(parents=True, exist_ok=True)
                checkpoint.write(self._directory / path, policy)
        return self._add(
            players,
            paths,
            against,
            env_steps=last.env_steps + sum(saved.state["env_steps"] for saved in trained),
            seconds=last.seconds + max(saved.state["seconds"] for saved in trained),
        )

    def _add(
        self,
        players: Mapping[str, str],
        paths: Mapping[str, str | None],
        against: Mapping[str, Mapping[str, float]],
        env_steps: int,
        seconds: float,
    ) -> SeatIteration:
        """A player joins each population."""
        names = [seat.name for seat in self._seats]
        rows = [*(iteration.players for iteration in self.iterations), players]
        number = len(rows) - 1
        profiles = [profile for profile in itertools.product(range(len(rows)), repeat=len(names)) if number in profile]
        payoffs = [
            (
                list(profile),
                self._judge.values([rows[k][name] for k, name in zip(profile, names, strict=True)], self._players),
            )
            for profile in profiles
        ]
        table = payoffs_by_seat([*(iteration.payoffs for iteration in self.iterations), payoffs])
        shares = SOLVERS_BY_SEAT[self._solver](table)
        mixtures = {
            name: dict(zip([row[name] for row in rows], np.clip(own, 0.0, None).tolist(), strict=True))
            for name, own in zip(names, shares, strict=True)
        }
        could_win = self._judge.best_response_values(self._players, list(against.values())) if against else None
        iteration = SeatIteration(
            iteration=number,
            players=players,
            paths=paths,
            trained_against=against,
            payoffs=payoffs,
            mixtures=mixtures,
            response_values={name: self._won(table, seat, against) for seat, name in enumerate(names)}
            if against
            else None,
            best_response_values=None if could_win is None else dict(zip(names, could_win, strict=True)),
            exploitability=self._judge.exploitability(self._players, list(mixtures.values())),
            env_steps=env_steps,
            seconds=seconds,
            settings=self._settings,
        )
        with files_of(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            record.append(self._path, iteration)
        self.iterations.append(iteration)
        return iteration

    def _won(self, table: np.ndarray, seat: int, against: Mapping[str, Mapping[str, float]]) -> float:
        """Returns what the newest player of the seat wins on average against the mixtures of the others."""
        value = table[..., seat].take(-1, axis=seat)
        for number in reversed([number for number in range(len(self._seats)) if number != seat]):
            name = self._seats[number].name
            shares = np.array([against[name].get(before.players[name], 0.0) for before in self.iterations] + [0.0])
            value = value @ (shares / shares.sum())
        return float(value)

    def _reference(self, player: str) -> str:
        """Returns the player as `--players` names it."""
        return player if self._players[player] is None else str(self._directory / POLICIES / f"{player}.safetensors")
