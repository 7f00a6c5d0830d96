"""The search of `sf-psro`: train a best response, fill in the payoffs, solve the game, again and again.

Lanctot et al. 2017, "A unified game-theoretic approach to multiagent reinforcement learning", algorithm 1, for
zero-sum games of two players. One network plays both seats, so the game among players is symmetric;
`sf.tools.psro.by_seat` has a population for each seat. With the solver
`uniform` it is fictitious self-play, with `latest` self-play by iterated best responses, with `nash` double oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sf.config import Config
from sf.config.older import as_today
from sf.envs import UsageError
from sf.evaluation.play.named_checkpoint import require_known_code
from sf.evaluation.play.opponents import RANDOM
from sf.league.meta_solvers import SOLVERS
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint, without_optimizer
from sf.tools.psro import record
from sf.tools.psro.best_response import Share, read_policy, train_best_responses
from sf.tools.psro.flags import files_of
from sf.tools.psro.judge import Judge
from sf.tools.psro.record import RESPONSES, Iteration, payoff_table

LEAST_SHARE = 1e-3  # players that are met less often are left out

POLICIES = "policies"  # a folder in that of the search


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
        self._directory = directory
        self._config = config
        self._judge = judge
        self._solver = solver
        self._is_warm = is_warm
        self._settings = dict(settings)
        self._path = directory / record.NAME
        self.iterations = record.read(self._path)
        if self.iterations:
            require_same(self._settings, self.iterations[0].settings, directory)
        self._players: dict[str, Checkpoint | None] = {
            iteration.player: load_policy(directory, iteration.path, iteration.iteration, config.run.trust)
            for iteration in self.iterations
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
            train_dir=str(self._directory / RESPONSES),
            experiment=name,
            init_from=self._reference(last.player) if self._is_warm and last.path is not None else None,
        )
        met = [Share(self._reference(player), share) for player, share in against.items()]
        (saved,) = train_best_responses(config, met, say)
        path = f"{POLICIES}/{name}.safetensors"
        policy = self._players[name] = without_optimizer(saved)
        with files_of(self._directory):
            (self._directory / POLICIES).mkdir(parents=True, exist_ok=True)
            checkpoint.write(self._directory / path, policy)
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
            settings=self._settings,
        )
        with files_of(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            record.append(self._path, iteration)
        self.iterations.append(iteration)
        return iteration

    def _reference(self, player: str) -> str:
        """Returns the player as `--players` names it."""
        return player if self._players[player] is None else str(self._directory / POLICIES / f"{player}.safetensors")


def load_policy(directory: Path, path: str | None, iteration: int, is_trusted: bool) -> Checkpoint | None:
    """Returns a player that has joined, or None for random moves. path: in the directory of the search."""
    if path is None:
        return None
    saved = read_policy(directory / path, f"of iteration {iteration}")
    require_known_code(saved, directory / path, is_trusted)
    return saved


def require_same(settings: Mapping[str, Any], there: Mapping[str, Any], directory: Path) -> None:
    """Raises UsageError if the search in the directory has other settings than these."""
    there = as_today(there)
    for name, value in settings.items():
        if there.get(name, value) != value:  # an older search does not say everything
            raise UsageError(
                f"{name} is {value}, but the search in {directory} has {there.get(name)}: name another --experiment"
            )
