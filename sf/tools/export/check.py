"""Checks that an exported policy computes what its network does, before anybody relies on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from sf.envs.spaces.actions import decoder, heads, leaf_actions, leaves
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.model.distributions import IMPOSSIBLE

TOLERANCE = 1e-3  # other orders of float32 additions differ by 1e-7 to 4e-5, most of all in deep networks
BATCH_SIZES = (1, 2, 33)
NUM_STEPS = 6  # of every batch, to see what a recurrent state accumulates
_RESET_PROBABILITY = 0.3
_WIDEST = 1e6  # a wider range does not tell which numbers occur

# obs {key: [N, ...]}, state [N, S] float32, first [N] bool -> the outputs by name
Run = Callable[[Mapping[str, np.ndarray], np.ndarray, np.ndarray], dict[str, np.ndarray]]


def largest_difference(policy: TorchPolicy, run: Run) -> float:
    """The largest difference between `run` and the network in PyTorch.

    Over random observations, several batch sizes, steps and resets. Distribution, value, state and action are each
    compared in units of the largest number of that output in the batch, or of 1 where that is smaller. Each side goes
    on with its own recurrent state, so differences add up.
    """
    rng = np.random.default_rng(0)
    largest = 0.0
    for batch_size in BATCH_SIZES:
        state = rng.standard_normal((batch_size, policy.network.state_size)).astype(np.float32)
        expected_state = state
        for t in range(NUM_STEPS):
            obs = {key: _random_obs(rng, box, batch_size) for key, box in policy.flat_obs_space.items()}
            first = rng.random(batch_size) < (_RESET_PROBABILITY if t else 0.5)
            with torch.no_grad():
                expected = policy.network.step(
                    {key: torch.from_numpy(rows) for key, rows in obs.items()},
                    torch.from_numpy(expected_state),
                    torch.from_numpy(first),
                )
            out = run(obs, state, first)
            params = [out[name] for name in ("logits", "mean", "log_stddev") if name in out]
            pairs = [(np.concatenate(params, axis=-1), expected.params)]
            if policy.has_value:
                pairs.append((out["value"], expected.value))
            if policy.network.state_size:
                state, expected_state = out["next_state"], expected.state.numpy()
                pairs.append((state, expected.state))
            differences = [_relative(found, wanted.numpy()) for found, wanted in pairs]
            largest = np.max([largest, *differences, _of_actions(policy, out)])  # unlike max(), it keeps a NaN
    return float(largest)


def _random_obs(rng: np.random.Generator, box: Any, n: int) -> np.ndarray:
    """[n, *box.shape], over the range of the box, or around 0 where that is too wide."""
    low, high = box.low.astype(np.float64), box.high.astype(np.float64)
    narrow = high - low <= _WIDEST
    anywhere = rng.uniform(np.where(narrow, low, 0.0), np.where(narrow, high, 1.0), (n, *low.shape))
    around_0 = np.clip(3 * rng.standard_normal((n, *low.shape)), low, high)
    numbers = np.where(narrow, anywhere, around_0)
    return (numbers if np.issubdtype(box.dtype, np.floating) else numbers.round()).astype(box.dtype)


def _relative(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape, (found.shape, expected.shape)
    possible = expected[expected != IMPOSSIBLE]  # it is so large that every difference would be small beside it
    return float(np.abs(found - expected).max(initial=0.0) / max(1.0, np.abs(possible).max(initial=0.0)))


def _of_actions(policy: TorchPolicy, out: Mapping[str, np.ndarray]) -> float:
    """The difference between the exported actions and those that the trainer makes of the same distribution."""
    sizes = policy.action_spec.discrete_sizes
    n = len(out["logits" if sizes else "mean"])
    logits = np.split(out.get("logits", np.zeros((n, 0))), np.cumsum(sizes)[:-1], axis=-1)
    discrete = np.stack([head.argmax(axis=-1) for head in logits], axis=-1) if sizes else np.zeros((n, 0), int)
    continuous = out.get("mean", np.zeros((n, 0), np.float32))
    decode = decoder(policy.action_space)
    found = np.concatenate([out[name] for name in ("action_discrete", "action_continuous") if name in out], axis=-1)
    expected = np.stack([_flat(policy.action_space, decode(*row)) for row in zip(discrete, continuous, strict=True)])
    return _relative(found, expected)


def _flat(space: gym.Space, action: Any) -> np.ndarray:
    """[D + C]: discrete numbers first, then continuous ones."""
    parts = zip(leaves(space), leaf_actions(space, action), strict=True)
    in_order = sorted(parts, key=lambda part: heads(part[0]) is None)
    return np.concatenate([np.ravel(value) for _, value in in_order])
