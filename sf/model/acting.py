"""One decision of many actors, from observations to what is written beside them: what a policy worker computes.

It is a function of tensors alone, the random numbers included, so that it can be compiled as a whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sf.envs.spaces.actions import ActionSpec
from sf.model.distributions import ActionDistribution


class Answers(NamedTuple):
    """Those of `Acting`, taken apart: views of the numbers that they came in."""

    discrete: np.ndarray  # [N, D] int32
    continuous: np.ndarray  # [N, C] float32
    log_prob: np.ndarray  # [N] float32
    value: np.ndarray  # [N] float32

    @classmethod
    def of(cls, packed: np.ndarray, num_discrete: int) -> Answers:
        """packed: [N, D + C + 2] int32, on the host. num_discrete: D."""
        floats = packed[:, num_discrete:].view(np.float32)
        return cls(packed[:, :num_discrete], floats[:, :-2], floats[:, -2], floats[:, -1])


Way = Callable[..., tuple[Tensor, Tensor]]  # of computing an `Acting`

TOLERANCE = {torch.bfloat16: 0.1, torch.float32: 1e-3}  # of actions, values and states, by the trunk's dtype
NATS = {torch.bfloat16: 0.05, torch.float32: 1e-3}  # of log-probabilities, whose differences are PPO's ratios
DRAWS = 16  # of actions, at least, by which two ways are compared


class AnyActing(ABC):
    """Computes an `Acting`, in whichever way."""

    @abstractmethod
    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        """See `Acting.forward`."""

    def look(self) -> None:  # noqa: B027  most ways have nothing to look for
        """Take a program that has been made meanwhile. Called before each batch."""

    def close(self) -> None:  # noqa: B027  most ways hold nothing
        """End what makes a program. Called when the caller ends."""


class ActingHere(AnyActing):
    """By PyTorch's operations, for inputs that are where the network is."""

    def __init__(self, acting: Acting) -> None:
        self._acting = acting

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        return self._acting(*inputs)


class Acting(nn.Module):
    """network: has `step`, see `sf.model.inference.inference_model`."""

    def __init__(self, network: Any, action_spec: ActionSpec) -> None:
        super().__init__()
        self.network = network
        self._action_spec = action_spec

    def forward(
        self, obs: dict[str, Tensor], state: Tensor, first: Tensor, exponential: Tensor, normal: Tensor
    ) -> tuple[Tensor, Tensor]:
        """obs {key: [N, ...]}, state [N, S], first [N] as the network takes them; exponential and normal from
        `ActionDistribution.noise`.

        Returns answers [N, D + C + 2] int32, and the next state [N, S]. An answer is the discrete actions, then as the
        bits of float32 the continuous actions, their log-probability, and the value: one transfer from a GPU.
        """
        out = self.network.step(obs, state, first)
        distribution = ActionDistribution(self._action_spec, out.params)
        discrete, continuous = distribution.sample_by(exponential, normal)
        log_prob = distribution.log_prob(discrete, continuous)
        floats = torch.cat((continuous, log_prob.unsqueeze(1), out.value.unsqueeze(1)), dim=1)
        return torch.cat((discrete, floats.view(torch.int32)), dim=1), out.state


def agree_on(inputs: tuple[Any, ...], one: Way, other: Way, dtype: torch.dtype) -> bool:
    """Whether two ways to compute an `Acting` do, on its `inputs`. dtype: of the network's trunk.

    On draws of actions enough: a single one may lie where rounding decides.
    """
    *seen, exponential, normal = repeated(inputs, -(-DRAWS // len(inputs[1])))
    drawn = (*seen, exponential.exponential_(), normal.normal_())
    return are_close(one(*drawn), other(*drawn), normal.shape[1], dtype)


def repeated(inputs: tuple[Any, ...], times: int) -> tuple[Any, ...]:
    """Copies of them, one behind the other."""
    return pytree.tree_map(lambda tensor: tensor.repeat(times, *[1] * (tensor.dim() - 1)), inputs)


def are_close(
    found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], num_continuous: int, dtype: torch.dtype
) -> bool:
    """Whether two results are close: most actions, since rounding decides between two that are nearly as probable, and
    log-probabilities where the actions are the same.

    dtype: of the network's trunk.
    """
    first_float = expected[0].shape[1] - num_continuous - 2
    same = (found[0][:, :first_float] == expected[0][:, :first_float]).all(dim=1)
    floats = [packed[:, first_float:].contiguous().view(torch.float32) for packed in (found[0], expected[0])]
    pairs = (
        [each[same, :-2] for each in floats],  # continuous actions
        [each[:, -1] for each in floats],  # values
        [found[1], expected[1]],
    )
    tolerance = TOLERANCE[dtype]
    is_close = (torch.allclose(a, b, rtol=tolerance, atol=tolerance * _size(b)) for a, b in pairs)
    log_prob, expected_log_prob = (each[same, -2] for each in floats)
    agree = torch.allclose(log_prob, expected_log_prob, rtol=0, atol=NATS[dtype])
    return bool(same.float().mean() >= 0.5) and all(is_close) and agree


def _size(numbers: Tensor) -> float:
    """The largest of them, or 1: values are in the scale of returns."""
    return max(1.0, float(numbers.abs().max())) if numbers.numel() else 1.0
