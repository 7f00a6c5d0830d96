"""An easy task whose environment fails now and then, in the way that is asked for: for tests of recovery."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError

_Step = tuple[np.ndarray, float, bool, bool, dict[str, Any]]


class Faulty(gym.Env):
    """`toy_faulty`: the observation is the right action, one-hot of 4; 8 steps, each right action pays 1.

    With `faults` (as `--env_kwargs '{"faults": ["raise", "hang"], "probability": 0.01}'`) a step fails with that
    probability, in one of these ways:

    - "raise": raises RuntimeError;
    - "nan_obs", "nan_reward": returns NaN;
    - "huge_obs": returns finite numbers that the network cannot compute with;
    - "wrong_shape": returns an observation of shape (1,), which numpy would broadcast into a row without a word;
    - "hang": never returns;
    - "kill": kills its process with SIGKILL.

    The seed of `reset` decides when. With `trigger`, the path of a file, the step that finds such a file removes it,
    and fails in the way that its text names. The last step of an episode does not look: its observation is never seen.
    """

    NUM_STEPS: ClassVar[int] = 8
    BEST_RETURN: ClassVar[float] = 8.0
    RANDOM_RETURN: ClassVar[float] = 2.0

    observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, faults: Sequence[str] = (), probability: float = 0.002, trigger: str | None = None) -> None:
        """Raises UsageError for a fault that is not in the list above."""
        unknown = sorted(set(faults) - set(_FAULTS))
        if unknown:
            raise UsageError(f"faults has {unknown[0]!r}: it may have {', '.join(_FAULTS)}")
        self._faults = [_FAULTS[name] for name in faults]
        self._probability = probability if faults else 0.0
        self._trigger = Path(trigger) if trigger else None
        self._one_hot = np.eye(4, dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._draw(), {}

    def step(self, action: int) -> _Step:
        reward = float(action == self._right)
        self._step += 1
        step: _Step = (self._draw(), reward, self._step == self.NUM_STEPS, False, {})
        asked_for = self._asked_for()
        if asked_for is not None:
            return _FAULTS[asked_for](step)
        if self.np_random.random() >= self._probability:
            return step
        fail = self._faults[int(self.np_random.random() * len(self._faults))]
        return fail(step)

    def _asked_for(self) -> str | None:
        """The text of the trigger. Many processes may see the file; the one that renames it has it."""
        if self._trigger is None or self._step == self.NUM_STEPS or not self._trigger.exists():
            return None
        own = self._trigger.with_name(f"{self._trigger.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            self._trigger.rename(own)
            text = own.read_text()
            own.unlink()
            return text
        return None

    def _draw(self) -> np.ndarray:
        self._right = int(self.np_random.random() * 4)
        return self._one_hot[self._right]


def _raise(step: _Step) -> _Step:
    raise RuntimeError("toy_faulty was asked to fail")


def _hang(step: _Step) -> _Step:
    while True:
        time.sleep(3600)


def _kill(step: _Step) -> _Step:
    os.kill(os.getpid(), signal.SIGKILL)
    return step


_FAULTS: dict[str, Callable[[_Step], _Step]] = {
    "raise": _raise,
    "nan_obs": lambda step: (np.full_like(step[0], np.nan), *step[1:]),
    "nan_reward": lambda step: (step[0], float("nan"), *step[2:]),
    "huge_obs": lambda step: (np.full_like(step[0], np.finfo(np.float32).max), *step[1:]),
    "wrong_shape": lambda step: (step[0][:1], *step[1:]),
    "hang": _hang,
    "kill": _kill,
}
