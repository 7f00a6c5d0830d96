"""The search of `sf-psro` with a population for each seat: all seats get a best response at once, in one run.

Lanctot et al. 2017, "A unified game-theoretic approach to multiagent reinforcement learning", algorithm 1, and Zhou et
al. 2023, "MALib". A seat is a team, or an agent where there are no teams. Each iteration is one run of `sf-train` with
a policy for each seat: the policy meets the mixtures of the other seats, and the sampler and the cores are shared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sf.config import Config
from sf.evaluation.play.opponents import RANDOM
from sf.league.meta_solvers import SOLVERS_BY_SEAT
from sf.storage.checkpoint import Checkpoint
from sf.tools.psro.best_response import Share, train_best_responses
from sf.tools.psro.directory import SearchDirectory
from sf.tools.psro.record import SeatIteration, payoffs_by_seat
from sf.tools.psro.search import LEAST_SHARE
from sf.tools.psro.seat_judge import SeatJudge
from sf.tools.psro.seats import Seat


class SeatSearch:
    """directory: where all of it is kept. The search goes on with what is there.

    config: of the responses of an iteration, see `sf.tools.psro.seats`. solver: a name of `SOLVERS_BY_SEAT`. is_warm:
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
        self._directory = SearchDirectory(directory, dict(settings), config.run.trust)
        self._config = config
        self._seats = seats
        self._judge = judge
        self._solver = solver
        self._is_warm = is_warm
        self.iterations = self._directory.lines(SeatIteration)
        self._players: dict[str, Checkpoint | None] = {
            line.players[seat.name]: self._directory.load(line.paths[seat.name], line.iteration)
            for line in self.iterations
            for seat in seats
        }

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
        name, responses = f"policy_{number:03d}", self._directory.responses
        config = self._config.replace(
            train_dir=str(responses),
            experiment=name,
            init_from=str(responses / f"policy_{number - 1:03d}") if self._is_warm and number > 1 else None,
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
            paths[seat.name], self._players[player] = self._directory.keep(player, saved)
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
            settings=self._directory.settings,
        )
        self._directory.append(iteration)
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
        return self._directory.reference(player, self._players[player])
