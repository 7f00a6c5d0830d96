"""One decision of many actors, from observations to what is written beside them: what a policy worker computes.

It is a function of tensors alone, the random numbers included, so that it can be compiled as a whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
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
