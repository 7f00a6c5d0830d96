"""A group of Doom games with rows of its own."""

import numpy as np

from sf.envs.doom.group import DoomGroup
from sf.envs.group import Episode, StepResult


class Stage:
    """A group, and rows for its observations such as a rollout worker has in shared memory."""

    def __init__(self, group: DoomGroup) -> None:
        self.group = group
        self.result = StepResult.empty(group.num_actors)
        self.obs = {
            key: [np.zeros(space.shape, space.dtype) for _ in range(group.num_actors)]
            for key, space in group.spec.obs_space.spaces.items()
        }
        group.reset(self.obs)

    def step(self, *actions: tuple[int, ...]) -> list[Episode]:
        """The same action for every actor, unless there is one for each."""
        discrete = np.array(actions * (self.group.num_actors // len(actions)), np.int32)
        return self.group.step(discrete, np.zeros((self.group.num_actors, 0), np.float32), self.obs, self.result)

    def flags(self, actor_idx: int = 0) -> dict[str, bool]:
        names = ("terminated", "truncated", "valid", "first")
        return {name: bool(getattr(self.result, name)[actor_idx]) for name in names}

    def image(self, actor_idx: int = 0) -> np.ndarray:
        return self.obs["obs"][actor_idx].copy()
