"""Plays a group of environments with random actions that masks allow, and keeps what every step caused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.envs import ActionSpec, EnvGroup, Episode, StepResult

Obs = dict[str, np.ndarray]  # [N, ...]


@dataclass
class Step:
    """What one call of `step` caused; `obs` is what the actors see after it."""

    discrete: np.ndarray
    continuous: np.ndarray
    obs: Obs
    result: StepResult
    episodes: list[Episode]


def random_actions(
    group: EnvGroup, rng: np.random.Generator, masks: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """masks: [N, L], of which choices are allowed; where none is, any is drawn."""
    spec = ActionSpec.of(group.spec.action_space)
    if masks is None:
        heads = [rng.integers(0, size, group.num_actors) for size in spec.discrete_sizes]
    else:
        shares = (masks > 0) + rng.random(masks.shape)
        ends = np.cumsum(spec.discrete_sizes)
        heads = [shares[:, end - size : end].argmax(1) for size, end in zip(spec.discrete_sizes, ends, strict=True)]
    discrete = np.array(heads, np.int32).reshape(len(heads), group.num_actors).T
    continuous = rng.normal(0, 1, (group.num_actors, spec.num_continuous)).astype(np.float32)
    return np.ascontiguousarray(discrete), continuous


class Memory:
    """Rows for observations, every other one of an array: what lies between belongs to somebody else."""

    def __init__(self, group: EnvGroup) -> None:
        self._arrays = {
            key: np.full((2 * group.num_actors + 1, *box.shape), 77, box.dtype)
            for key, box in group.spec.obs_space.items()
        }
        self.rows = {key: [array[2 * n + 1] for n in range(group.num_actors)] for key, array in self._arrays.items()}

    def taken(self) -> Obs:
        """A copy of the rows; fails where anything else was written to."""
        for array in self._arrays.values():
            assert (array[::2] == 77).all()
        return {key: array[1::2].copy() for key, array in self._arrays.items()}


def play(group: EnvGroup, num_steps: int, seed: int = 0) -> tuple[Obs, list[Step]]:
    """The first observations, and the steps. Closes the group."""
    rng = np.random.default_rng(seed)
    memory = Memory(group)
    steps = []
    try:
        group.reset(memory.rows)
        obs = first_obs = memory.taken()
        for _ in range(num_steps):
            discrete, continuous = random_actions(group, rng, obs.get("action_mask"))
            # Garbage, as the arrays of a rollout worker hold what an earlier step left there.
            written = (np.full(group.num_actors, 1, kind) for kind in ("f4", "?", "?", "?", "?"))
            result = StepResult(*written, joined=np.zeros(group.num_actors, bool))
            memory = Memory(group)
            episodes = group.step(discrete, continuous, memory.rows, result)
            obs = memory.taken()
            steps.append(Step(discrete, continuous, obs, result, episodes))
    finally:
        group.close()
    return first_obs, steps
