"""Adds the games that end in slots to the buffer, and fills batches with their positions once there are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from sf.learner.batches.batch import Batch
from sf.learner.games.buffer import GameBuffer
from sf.learner.games.joining import GameJoiner
from sf.shared.kept_games import TARGET
from sf.shared.rows import has_next
from sf.shared.slots import LearnerSlots
from sf.system.messages import say


@dataclass(frozen=True)
class SupplyRules:
    """min_games: that have to end before anything is trained on. num_agents: of a game. num_epochs: over a batch.
    seed: of what is drawn."""

    min_games: int
    num_agents: int
    num_epochs: int
    seed: tuple[int, ...]


class GameSupply:
    """Adds games to a buffer, and draws batches of B trajectories of T steps from it.

    Each step of such a trajectory is a position on its own, as an episode of one decision: its reward is the target of
    the position, so that is what its value learns, whatever the lambda and the discount are. A network without memory
    does not see the difference.
    """

    def __init__(
        self,
        slots: LearnerSlots,
        joiner: GameJoiner,
        games: GameBuffer,
        rules: SupplyRules,
        version: Callable[[], int],
    ) -> None:
        """version: of the policy, at present."""
        self._slots, self._joiner, self._games, self._rules, self._version = slots, joiner, games, rules, version
        self._env_steps = 0
        self._has_said_games, self._has_said_credit = False, False

    @property
    def has_news(self) -> bool:
        """Returns whether env steps have come that `pop_env_steps` has not told."""
        return self._env_steps > 0

    def add(self, slots: Iterable[int]) -> None:
        """Add what ends in these slots, which may be given back then."""
        slots = list(slots)
        self._env_steps += self._slots.env_steps(slots)
        for slot in slots:
            for game in self._joiner.add(slot):
                self._games.add(game)

    def pop_env_steps(self) -> int:
        env_steps, self._env_steps = self._env_steps, 0
        return env_steps

    def can_fill(self, batch: Batch) -> bool:
        """Returns whether the buffer has games enough, and its positions were not trained on often enough."""
        return self._has_games and self._games.credit >= batch.num_samples * self._rules.num_epochs

    def say_what_is_missing(self) -> None:
        """Tell the user why training waits, each reason once."""
        rules, games = self._rules, self._games
        if not self._has_games:
            if not self._has_said_games:
                self._has_said_games = True
                ended = games.num_games_ended // rules.num_agents
                say(f"trains once {rules.min_games:,} games have ended (--buffer_min_games): {ended:,} so far")
        elif not self._has_said_credit:
            self._has_said_credit = True
            say("training waits for new games wherever --samples_per_position is reached, rollouts go on")

    def fill(self, batch: Batch) -> None:
        """Fill a batch in host memory."""
        num_steps, num_trajectories = batch.reward.shape
        drawn = self._games.draw(num_steps * num_trajectories, self._rules.seed, self._rules.num_epochs)
        for name, target in batch.named().items():
            rows = torch.from_numpy(drawn[name]).unflatten(0, (num_steps, num_trajectories))
            target[:num_steps] = rows
            if has_next(name):
                target[num_steps] = rows[-1]
        batch.reward[:] = torch.from_numpy(drawn[TARGET]).unflatten(0, (num_steps, num_trajectories))
        for flag in (batch.first, batch.terminated, batch.valid):
            flag[:] = True
        batch.policy_version.fill_(self._version())
        batch.state.zero_()

    def metrics(self) -> dict[str, float]:
        """See `Loader.metrics`."""
        games = self._games
        return {
            "search/games": games.num_games / self._rules.num_agents,
            "search/positions": float(games.num_positions),
            "search/samples_per_position": games.samples_per_position,
        }

    @property
    def _has_games(self) -> bool:
        return self._games.num_games_ended >= max(1, self._rules.min_games * self._rules.num_agents)
