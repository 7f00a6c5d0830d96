"""The search of `sf-psro`: train a best response, fill in the payoffs, solve the game, again and again.

Lanctot et al. 2017, "A unified game-theoretic approach to multiagent reinforcement learning", algorithm 1, for
zero-sum games of two players. One network plays both seats, so the game among players is symmetric;
`sf.tools.psro.by_seat` has a population for each seat. With the solver `uniform` it is fictitious self-play, with
`latest` self-play by iterated best responses, with `nash` double oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sf.config import Config
from sf.evaluation.play.opponents import RANDOM
from sf.league.meta_solvers import SOLVERS
from sf.storage.checkpoint import Checkpoint
from sf.tools.psro.best_response import Share, train_best_responses
from sf.tools.psro.directory import SearchDirectory
from sf.tools.psro.judge import Judge
from sf.tools.psro.record import Iteration, payoff_table

LEAST_SHARE = 1e-3  # players that are met less often are left out


class Search:
    """directory: where all of it is kept. The search goes on with what is there.

    config: of every best response: `train_for_env_steps` is that of one. solver: a name of `SOLVERS`. is_warm: a best
    response begins with the weights of the one before. settings: what a resumed search must have, too.
    """

    def __init__(
        self,
        directory: Path,
        config: Config,
        judge: Judge,
        solver: str,
        is_warm: bool,
        settings: Mapping[str, Any],
    ) -> None:
        """Raises ValueError where the directory has another search, or a damaged one, or a policy of it is gone."""
        self._directory = SearchDirectory(directory, dict(settings), config.run.trust)
        self._config = config
        self._judge = judge
        self._solver = solver
        self._is_warm = is_warm
        self.iterations = self._directory.lines(Iteration)
        self._players: dict[str, Checkpoint | None] = {
            line.player: self._directory.load(line.path, line.iteration) for line in self.iterations
        }

    def run(self, num_iterations: int, say: Callable[[str], None]) -> Iterator[Iteration]:
        """Yields each iteration when it is over and on the disk. Raises what `train_best_responses` raises."""
        if not self.iterations:
            self._players[RANDOM] = None
            yield self._add(RANDOM, None, {}, env_steps=0, seconds=0.0)
        while len(self.iterations) <= num_iterations:
            yield self._respond(say)

    def _respond(self, say: Callable[[str], None]) -> Iteration:
        """Train one best response."""
        number, last = len(self.iterations), self.iterations[-1]
        against = {name: share for name, share in last.mixture.items() if share >= LEAST_SHARE}
        name = f"policy_{number:03d}"
        shares = ", ".join(f"{player} {share:.2f}" for player, share in against.items())
        say(f"iteration {number}: {name} is trained against {shares}")
        config = self._config.replace(
            train_dir=str(self._directory.responses),
            experiment=name,
            init_from=self._reference(last.player) if self._is_warm and last.path is not None else None,
        )
        met = [Share(self._reference(player), share) for player, share in against.items()]
        (saved,) = train_best_responses(config, met, say)
        path, self._players[name] = self._directory.keep(name, saved)
        return self._add(
            name,
            path,
            against,
            env_steps=last.env_steps + saved.state["env_steps"],
            seconds=last.seconds + saved.state["seconds"],
        )

    def _add(
        self, name: str, path: str | None, against: Mapping[str, float], env_steps: int, seconds: float
    ) -> Iteration:
        """A player joins."""
        others = [iteration.player for iteration in self.iterations]
        payoffs = self._judge.payoffs(name, self._players, others)
        table = payoff_table([*(iteration.payoffs for iteration in self.iterations), payoffs])
        shares = np.clip(SOLVERS[self._solver](table), 0.0, None).tolist()
        mixture = dict(zip([*others, name], shares, strict=True))
        won = sum(against.get(other, 0.0) * payoff for other, payoff in zip(others, payoffs, strict=True))
        iteration = Iteration(
            iteration=len(others),
            player=name,
            path=path,
            trained_against=against,
            payoffs=payoffs,
            mixture=mixture,
            response_value=won / sum(against.values()) if against else None,
            # An exact response wins what the mixture before can be exploited by, but for shares that were left out.
            best_response_value=self._judge.exploitability(self._players, against) if against else None,
            exploitability=self._judge.exploitability(self._players, mixture),
            env_steps=env_steps,
            seconds=seconds,
            settings=self._directory.settings,
        )
        self._directory.append(iteration)
        self.iterations.append(iteration)
        return iteration

    def _reference(self, player: str) -> str:
        return self._directory.reference(player, self._players[player])
