"""Which policy plays which actor: drawn when an episode begins, and kept for the whole of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AssignmentRules:
    """num_policies: to draw from. mixed: each agent of an environment draws for itself, else one for all.

    rollouts_per_draw: a policy stays for this many rollouts, over several episodes where they are shorter. When another
    one comes in the middle of a rollout, the rest of that rollout is of no use to either.
    """

    num_policies: int
    mixed: bool
    num_agents: int  # of one environment
    rollouts_per_draw: int


class Assignment:
    """The policies of the N actors of a group.

    policy: [N] int32, who plays each actor now. players: those who play at all.
    """

    def __init__(self, rules: AssignmentRules, num_actors: int, rollout: int, rng: np.random.Generator) -> None:
        self._rules = rules
        self._steps_at_least = rules.rollouts_per_draw * rollout
        self._rng = rng
        self._age = np.zeros(num_actors, np.int64)  # steps since the draw
        self.policy = np.zeros(num_actors, np.int32)
        self.players: list[int] = []
        self._draw(np.ones(num_actors, bool))

    def after_step(self, first: np.ndarray) -> None:
        """first: [N] bool, whose next observation begins an episode. Some of these draw anew."""
        if self._rules.num_policies == 1:
            return
        self._age += 1
        begins = first & (self._age >= self._steps_at_least)
        if not self._rules.mixed:
            # Those of one environment draw together, and so when they begin together.
            by_env = begins.reshape(-1, self._rules.num_agents)
            begins = np.repeat(by_env.all(axis=1), self._rules.num_agents)
        if begins.any():
            self._draw(begins)

    def _draw(self, who: np.ndarray) -> None:
        num_policies, num_agents = self._rules.num_policies, self._rules.num_agents
        drawn = self._rng.integers(num_policies, size=len(who), dtype=np.int32)
        if not self._rules.mixed:
            drawn = np.repeat(drawn[::num_agents], num_agents)
        self.policy[who] = drawn[who]
        self.players = np.unique(self.policy).tolist()
        self._age[who] = 0
