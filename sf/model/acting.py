"""One decision of many actors, from observations to what is written beside them: what a policy worker computes.

It is a function of tensors alone, the random numbers included, so that it can be compiled as a whole.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sf.envs.spaces.actions import ActionSpec
from sf.model.distributions import ActionDistribution
from sf.shared.rows import answered_fields


class Decision(NamedTuple):
    """What the policy decided for N actors, from which the policy worker's fields of a step are computed."""

    out: Any  # of the network's `step`: params, value and state
    distribution: ActionDistribution
    discrete: Tensor  # [N, D] int32
    continuous: Tensor  # [N, C] float32
    log_prob: Tensor  # [N] float32
    value: Tensor  # [N] float32


class AnswerLayout:
    """Where the fields that the policy worker computes stand in a row of packed answers.

    A row is int32: first the integers, then the bits of float32, so that one transfer brings all from a GPU.
    """

    def __init__(self, action: ActionSpec, optional: Collection[str] = ()) -> None:
        """optional: fields of a step that the run has."""
        self.fields = sorted(answered_fields(optional), key=lambda field: field.dtype != np.int32)
        self._shapes = [field.shape(action) for field in self.fields]
        ends = np.cumsum([math.prod(shape) for shape in self._shapes]).tolist()
        self._ranges = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        self.width: int = ends[-1]

    def pack(self, decision: Decision) -> Tensor:
        """Returns [N, width] int32."""
        columns = []
        for field in self.fields:
            assert field.answer is not None
            answer: Tensor = field.answer(decision)
            columns.append(answer.flatten(1) if answer.dim() > 1 else answer.unsqueeze(1))
        num_integers = sum(field.dtype == np.int32 for field in self.fields)
        floats = torch.cat(columns[num_integers:], dim=1)
        return torch.cat((*columns[:num_integers], floats.view(torch.int32)), dim=1)

    def unpack(self, packed: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the fields [N, *shape], by name, as views of packed answers [N, width] on the host."""
        return {
            field.name: packed[:, columns].view(field.dtype).reshape(len(packed), *shape)
            for field, shape, columns in zip(self.fields, self._shapes, self._ranges, strict=True)
        }


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

    def __init__(self, acting: Acting | Saying) -> None:
        self._acting = acting

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        return self._acting(*inputs)


class Acting(nn.Module):
    """network: has `step`, see `sf.model.inference.inference_model`."""

    def __init__(self, network: Any, action_spec: ActionSpec, optional: Collection[str] = ()) -> None:
        """optional: see `AnswerLayout`."""
        super().__init__()
        self.network = network
        self.action_spec = action_spec
        self._layout = AnswerLayout(action_spec, optional)

    def forward(
        self, obs: dict[str, Tensor], state: Tensor, first: Tensor, exponential: Tensor, normal: Tensor
    ) -> tuple[Tensor, Tensor]:
        """obs {key: [N, ...]}, state [N, S], first [N] as the network takes them; exponential and normal from
        `ActionDistribution.noise`.

        Returns answers [N, width] int32, packed as `AnswerLayout` says, and the next state [N, S].
        """
        out = self.network.step(obs, state, first)
        distribution = ActionDistribution(self.action_spec, out.params)
        discrete, continuous = distribution.sample_by(exponential, normal)
        log_prob = distribution.log_prob(discrete, continuous)
        decision = Decision(out, distribution, discrete, continuous, log_prob, out.value)
        return self._layout.pack(decision), out.state


class Saying(nn.Module):
    """Computes what a network would do, without doing it. network: as for `Acting`."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, obs: dict[str, Tensor], state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the parameters of the distributions over actions [N, P] float32, and the next state [N, S]."""
        out = self.network.step(obs, state, first)
        return out.params.float(), out.state


def say_the_same(inputs: tuple[Any, ...], one: Way, other: Way, dtype: torch.dtype) -> bool:
    """Returns whether two ways to compute a `Saying` agree on its `inputs`. dtype: of the network's trunk."""
    tolerance = TOLERANCE[dtype]
    return all(
        torch.allclose(found, expected, rtol=tolerance, atol=tolerance * _size(expected))
        for found, expected in zip(one(*inputs), other(*inputs), strict=True)
    )


def agree_on(inputs: tuple[Any, ...], one: Way, other: Way, action: ActionSpec, dtype: torch.dtype) -> bool:
    """Returns whether two ways to compute an `Acting` agree on its `inputs`. dtype: of the network's trunk.

    Several actions are drawn: a single one may lie where rounding decides.
    """
    *seen, exponential, normal = repeated(inputs, -(-DRAWS // len(inputs[1])))
    drawn = (*seen, exponential.exponential_(), normal.normal_())
    return are_close(one(*drawn), other(*drawn), action, dtype)


def repeated(inputs: tuple[Any, ...], times: int) -> tuple[Any, ...]:
    """Copies of them, one behind the other."""
    return pytree.tree_map(lambda tensor: tensor.repeat(times, *[1] * (tensor.dim() - 1)), inputs)


def are_close(
    found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], action: ActionSpec, dtype: torch.dtype
) -> bool:
    """Returns whether two results of an `Acting` are close.

    Most of the discrete actions are equal: rounding decides between two that are nearly as probable. The other fields
    are close where the actions are equal. dtype: of the network's trunk.
    """
    layout, tolerance = AnswerLayout(action), TOLERANCE[dtype]
    (ours, state), (theirs, expected_state) = (
        (layout.unpack(packed.cpu().numpy()), state) for packed, state in (found, expected)
    )
    same = (ours["discrete"] == theirs["discrete"]).all(axis=1)

    def is_close(one: Tensor, other: Tensor) -> bool:
        return torch.allclose(one, other, rtol=tolerance, atol=tolerance * _size(other))

    def agrees(name: str) -> bool:
        one, other = (torch.from_numpy(answers[name][same]).float() for answers in (ours, theirs))
        if name == "log_prob":
            return torch.allclose(one, other, rtol=0, atol=NATS[dtype])
        return is_close(one, other)

    return bool(same.mean() >= 0.5) and is_close(state, expected_state) and all(map(agrees, ours))


def _size(numbers: Tensor) -> float:
    """The largest of them, or 1: values are in the scale of returns."""
    return max(1.0, float(numbers.abs().max())) if numbers.numel() else 1.0
