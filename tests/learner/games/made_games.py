"""Slots of actors that play made-up games, each row of which says which game and move it is of."""

import gymnasium as gym
import numpy as np

from sf.envs import EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.shared.rows import OBS, SEARCHED, slot_fields
from sf.system.arrays import SharedArrays

T, NUM_ACTIONS = 4, 3
SPEC = EnvSpec(
    obs_space=gym.spaces.Dict(
        {
            "obs": gym.spaces.Box(-1, 1e6, (2,), np.float32),
            ACTION_MASK: gym.spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    ),
    action_space=gym.spaces.Discrete(NUM_ACTIONS),
    num_agents=2,
    optional_fields=(SEARCHED,),
)


def slots(num_slots):
    return SharedArrays(slot_fields(SPEC, num_slots, T))


def outcome(game):
    return 1.0 if game % 2 else -1.0


class Actor:
    """Plays one game after another, game g with `lengths(g)` rows. It acts in even rows."""

    def __init__(self, actor, lengths):
        self.actor, self.lengths = actor, lengths
        self.game, self.move, self.first = 100 * actor, 0, True

    def fill(self, rows, slot):
        rows["actor"][slot] = self.actor
        rows["valid"][slot] = True
        for t in range(T):
            self._observe(rows, slot, t)
            is_last = self.move == self.lengths(self.game) - 1
            rows["terminated"][slot, t] = is_last
            rows["reward"][slot, t] = outcome(self.game) if is_last else 0.0
            rows["value"][slot, t] = 0.25
            rows["discrete"][slot, t] = self.move % NUM_ACTIONS
            self.first = is_last
            self.game, self.move = (self.game + 1, 0) if is_last else (self.game, self.move + 1)
        self._observe(rows, slot, T)

    def die(self):
        """Begins anew, as the environments of a rollout worker that has died."""
        self.game, self.move, self.first = self.game + 1, 0, True

    def _observe(self, rows, slot, t):
        rows["first"][slot, t] = self.first
        rows[OBS + "obs"][slot, t] = self.game, self.move
        rows[OBS + ACTION_MASK][slot, t] = self.move % 2 == 0


def moves_of(game):
    """Returns the game that a joined one is, and its moves."""
    seen = game[OBS + "obs"]
    assert len({*seen[:, 0]}) == 1, seen
    return int(seen[0, 0]), seen[:, 1].tolist()
