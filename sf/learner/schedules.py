"""How the numbers of a learner follow training: the schedules of its flags, and those of `--anneal`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch

from sf.config import LearnerConfig
from sf.config.schedules import ByShare, Schedule, Stage
from sf.ranks.ranks import Ranks
from sf.shared.scheduled import Scheduled


def schedules_of_flags(config: LearnerConfig, has_end: bool) -> list[Schedule]:
    """Returns the schedules that flags of their own make. has_end: whether the run ends by steps or seconds.

    Mutations change the values that these begin with.
    """
    found: list[Schedule] = []
    if config.lr_schedule in _TO_0:
        found.append(ByShare("learning_rate", config.learning_rate, 0.0, _TO_0[config.lr_schedule]))
    highest, final = config.lr_adaptive_max, config.lr_adaptive_max_final
    if config.lr_schedule == "kl_adaptive" and final is not None:
        assert highest != "auto"  # see sf.config.auto_values
        assert final != "auto"
        hold = config.lr_adaptive_max_hold
        found.append(ByShare("lr_adaptive_max", highest, final, lambda done: max(0.0, (done - hold) / (1.0 - hold))))
    name, bonus = "exploration_loss_coeff", config.exploration_loss_coeff
    if config.exploration_loss_coeff_final is not None:
        found.append(ByShare(name, bonus, config.exploration_loss_coeff_final, _linear))
    elif has_end and bonus > 0 and config.exploration_loss_coeff_extra > 0:
        highest_bonus = bonus + config.exploration_loss_coeff_extra
        found.append(ByShare(name, highest_bonus, bonus, lambda done: 1.0 - (1.0 - done) ** 3))
    if config.teacher and has_end:
        found.append(ByShare("teacher_coeff", config.teacher_coeff, 0.0, _in_first_half))
    if config.demonstrations and has_end:
        found.append(ByShare("demo_coeff", config.demo_coeff, 0.0, _in_first_half))
    return found


def _linear(share_done: float) -> float:
    return share_done


def _in_first_half(share_done: float) -> float:
    return min(1.0, 2.0 * share_done)


def _half_cosine(share_done: float) -> float:
    """Loshchilov and Hutter 2017 (SGDR), equation 5 with one period and a minimum of 0: above the linear schedule in
    the first half of the run, and below it in the second."""
    return 0.5 * (1.0 - math.cos(math.pi * share_done))


_TO_0 = {"linear": _linear, "cosine": _half_cosine}  # of `--lr_schedule`


class Annealing:
    """The schedules of `--anneal` for one policy: their values now, and the moves of those that follow a metric.

    moves: how often each schedule by a metric has moved, by name.
    """

    def __init__(self, scheduled: Scheduled, policy_id: int, stats_avg: int, ranks: Ranks) -> None:
        """stats_avg: episodes that the mean of a metric is over. ranks: train the policy together."""
        self._scheduled, self._policy_id, self._ranks = scheduled, policy_id, ranks
        self._stats_avg = stats_avg
        self.moves = {schedule.name: 0 for schedule in scheduled.by_metric.values()}
        self._totals = self._read()
        # The sum and the number of the episodes that each of the last iterations ended, by name.
        self._latest: dict[str, deque[tuple[float, int]]] = {name: deque() for name in self.moves}

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint keeps, by name: the moves, and the latest episodes."""
        return {name: {"moves": moves, "latest": list(self._latest[name])} for name, moves in self.moves.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned. Schedules that it does not know begin."""
        for name in state.keys() & self.moves.keys():
            self.moves[name] = state[name]["moves"]
            self._latest[name] = deque((total, count) for total, count in state[name]["latest"])

    def publish(self, env_steps: int) -> None:
        """Write the values of the next iteration. env_steps: of the policy."""
        self._scheduled.write(self._policy_id, Stage(env_steps, moves=self.moves))

    def values(self, config: LearnerConfig) -> dict[str, float]:
        """Returns the values of flags of the learner, by name."""
        found = self._scheduled.values_of(self._policy_id)
        return {name: value for name, value in found.items() if name in config.ANNEALED}

    def metrics(self) -> dict[str, float]:
        """Returns the present values by the names of their metrics."""
        return {f"annealed/{name}": value for name, value in self._scheduled.values_of(self._policy_id).items()}

    def look(self) -> None:
        """Look at the episodes that have ended since the last call, and move what they have earned."""
        if not self.moves:
            return
        before, self._totals = self._totals, self._read()
        (new,) = self._ranks.totals(self._totals - before)
        for column, schedule in self._scheduled.by_metric.items():
            latest, (total, count) = self._latest[schedule.name], new[column].tolist()
            if count > 0:
                latest.append((total, round(count)))
            num_episodes = sum(count for _, count in latest)
            while latest and num_episodes - latest[0][1] >= self._stats_avg:
                num_episodes -= latest.popleft()[1]
            if num_episodes < self._stats_avg or self.moves[schedule.name] == schedule.num_moves:
                continue
            if sum(total for total, _ in latest) / num_episodes >= schedule.threshold:
                self.moves[schedule.name] += 1
                latest.clear()

    def _read(self) -> torch.Tensor:
        """Returns [K, 2], the sums and the numbers of the episodes of this rank so far."""
        arrays = self._scheduled.arrays
        both = [arrays[name][self._policy_id].sum(axis=-1) for name in ("sums", "counts")]
        return torch.tensor([*map(list, zip(*both, strict=True))], dtype=torch.float64)
