"""Tiny environments with a known optimum and a known random score, for tests of a trainer.

`BEST_RETURN` is the return of an optimal policy, `RANDOM_RETURN` the expected one of actions drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.toys.faulty import Faulty

_Start = tuple[Any, dict[str, Any]]
_Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Bandit(gym.Env):
    """`toy_bandit`: one step an episode, 4 arms, one of which always pays 1."""

    BEST_RETURN: ClassVar[float] = 1.0
    RANDOM_RETURN: ClassVar[float] = 0.25
    PAYING_ARM: ClassVar[int] = 2

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def __init__(self) -> None:
        self._obs = np.ones(1, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Start:
        super().reset(seed=seed)
        return self._obs, {}

    def step(self, action: int) -> _Step:
        return self._obs, float(action == self.PAYING_ARM), True, False, {}


class _Rounds(gym.Env):
    """An episode is `NUM_STEPS` rounds: `_draw` returns what is shown in one, and `_pay` the reward of an action."""

    NUM_STEPS: ClassVar[int] = 8

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Start:
        super().reset(seed=seed)
        self._step = 0
        return self._draw(), {}

    def step(self, action: Any) -> _Step:
        reward = self._pay(action)
        self._step += 1
        return self._draw(), reward, self._step == self.NUM_STEPS, False, {}

    def _draw(self) -> Any:
        raise NotImplementedError

    def _pay(self, action: Any) -> float:
        raise NotImplementedError


class Identity(_Rounds):
    """`toy_identity`: the observation is the right action, one of 4; 8 steps, each right action pays 1."""

    BEST_RETURN: ClassVar[float] = 8.0
    RANDOM_RETURN: ClassVar[float] = 2.0

    observation_space = gym.spaces.Discrete(4)
    action_space = gym.spaces.Discrete(4)

    def _draw(self) -> int:
        self._right = int(self.np_random.random() * 4)
        return self._right

    def _pay(self, action: int) -> float:
        return float(action == self._right)


class Memory(gym.Env):
    """`toy_memory`: a cue, seen at the first step only, is the right action `delay` steps later.

    The observation is [cue 0, cue 1, now answer], one-hot or blank. The answer alone is paid for: 1 where it
    is right. A policy without memory can do no better than `RANDOM_RETURN`, the best policy with one reaches
    `BEST_RETURN`.
    """

    BEST_RETURN: ClassVar[float] = 1.0
    RANDOM_RETURN: ClassVar[float] = 0.5

    observation_space = gym.spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, delay: int = 4) -> None:
        if delay < 1:
            raise UsageError(f"delay is {delay}: the answer must come at least 1 step after the cue")
        self._delay = delay
        self._one_hot = np.eye(3, dtype=np.float32)
        self._blank = np.zeros(3, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Start:
        super().reset(seed=seed)
        self._step = 0
        self._cue = int(self.np_random.random() * 2)
        return self._one_hot[self._cue], {}

    def step(self, action: int) -> _Step:
        answered = self._step == self._delay
        reward = float(answered and action == self._cue)
        self._step += 1
        return self._one_hot[2] if self._step == self._delay else self._blank, reward, answered, False, {}


class Counting(gym.Env):
    """`toy_counting`: nothing to learn; every observation says exactly where it is from.

    The observation is [env_idx, episode, step, action]: the number of the environment in the whole run, of
    its episode and of the step in it, all from 0, and the action that led here (-1 at the start of an
    episode). The action of step s pays s + 1. Episode e of environment i takes `num_steps(i, e)` steps, 1 to
    7, and ends with termination where e is even, with truncation where it is odd.
    """

    observation_space = gym.spaces.Box(-1.0, 2.0**24, (4,), np.float32)  # float32 counts exactly up to 2^24
    action_space = gym.spaces.Discrete(8)

    def __init__(self, env_idx: int = 0) -> None:
        self._env_idx = env_idx
        self._episode = -1

    @staticmethod
    def num_steps(env_idx: int, episode: int) -> int:
        return 1 + (2 * env_idx + 3 * episode) % 7

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Start:
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return self._obs(-1), {}

    def step(self, action: int) -> _Step:
        self._step += 1
        ended = self._step == self.num_steps(self._env_idx, self._episode)
        odd = self._episode % 2 == 1
        return self._obs(action), float(self._step), ended and not odd, ended and odd, {}

    def _obs(self, action: int) -> np.ndarray:
        return np.array((self._env_idx, self._episode, self._step, action), np.float32)


class Continuous(_Rounds):
    """`toy_continuous`: the observation is a target in [-1, 1]^2, the action a point in [-2, 2]^2; 8 steps.

    A step pays minus the squared distance. Each axis of a uniform action costs 4/3 + 1/3.
    """

    BEST_RETURN: ClassVar[float] = 0.0
    RANDOM_RETURN: ClassVar[float] = -8 * 2 * 5 / 3

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Box(-2.0, 2.0, (2,), np.float32)

    def _draw(self) -> np.ndarray:
        self._target = 2 * self.np_random.random(2, np.float32) - 1
        return self._target

    def _pay(self, action: np.ndarray) -> float:
        error = action - self._target
        return -float(error @ error)


class TupleActions(_Rounds):
    """`toy_tuple`: a choice of 3 and a number in [-1, 1] at once; both are in the observation; 8 steps.

    A step pays 1 for the right choice, less the squared error of the number. At random: 1/3 - (1/3 + 1/3).
    """

    BEST_RETURN: ClassVar[float] = 8.0
    RANDOM_RETURN: ClassVar[float] = -8 / 3

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)  # [choice, one-hot; number]
    action_space = gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (1,), np.float32)))

    def _draw(self) -> np.ndarray:
        self._choice = int(self.np_random.random() * 3)
        self._number = 2 * self.np_random.random() - 1
        obs = np.zeros(4, np.float32)
        obs[self._choice] = 1.0
        obs[3] = self._number
        return obs

    def _pay(self, action: tuple[int, np.ndarray]) -> float:
        choice, number = action
        return float(choice == self._choice) - (float(number[0]) - self._number) ** 2


class DictObs(_Rounds):
    """`toy_dict`: an image with a bright left or right half, and a vector with one of 2 numbers up; 4 steps.

    The action is two choices of 2: which half is bright, which number is up. Each right one pays 0.5.
    """

    NUM_STEPS: ClassVar[int] = 4
    BEST_RETURN: ClassVar[float] = 4.0
    RANDOM_RETURN: ClassVar[float] = 2.0

    observation_space = gym.spaces.Dict(
        image=gym.spaces.Box(0, 255, (36, 36, 1), np.uint8), vector=gym.spaces.Box(0.0, 1.0, (2,), np.float32)
    )
    action_space = gym.spaces.MultiDiscrete([2, 2])

    def __init__(self) -> None:
        self._images = np.zeros((2, 36, 36, 1), np.uint8)
        self._images[0, :, :18] = 255
        self._images[1, :, 18:] = 255
        self._vectors = np.eye(2, dtype=np.float32)

    def _draw(self) -> dict[str, np.ndarray]:
        self._half, self._up = int(self.np_random.random() * 2), int(self.np_random.random() * 2)
        return {"image": self._images[self._half], "vector": self._vectors[self._up]}

    def _pay(self, action: np.ndarray) -> float:
        return 0.5 * float(action[0] == self._half) + 0.5 * float(action[1] == self._up)


class Symbols(_Rounds):
    """`toy_symbols`: a grid of codes, in the middle of which is one of 4 signs, each for an action; 8 steps.

    The codes of the signs are in no order, and the other cells have one of two codes. Each right action pays 1.
    """

    BEST_RETURN: ClassVar[float] = 8.0
    RANDOM_RETURN: ClassVar[float] = 2.0
    SIGNS: ClassVar[tuple[int, ...]] = (90, 7, 91, 8)  # of the actions

    observation_space = gym.spaces.Box(0, 255, (5, 5, 1), np.uint8)
    action_space = gym.spaces.Discrete(4)

    def _draw(self) -> np.ndarray:
        self._right = int(self.np_random.random() * 4)
        cells = (self.np_random.random(25) * 2).astype(np.uint8)
        cells[12] = self.SIGNS[self._right]
        return cells.reshape(5, 5, 1)

    def _pay(self, action: int) -> float:
        return float(action == self._right)


TOYS: dict[str, Callable[..., gym.Env]] = {
    "toy_bandit": Bandit,
    "toy_identity": Identity,
    "toy_memory": Memory,
    "toy_counting": Counting,
    "toy_continuous": Continuous,
    "toy_tuple": TupleActions,
    "toy_dict": DictObs,
    "toy_symbols": Symbols,
    "toy_faulty": Faulty,
}
