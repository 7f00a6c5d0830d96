"""Defines what an intrinsic reward is.

A new one is a class like this, in a file that other processes can import, and named as `--intrinsic module:Surprise`:

    @register_intrinsic("surprise")
    class Surprise(IntrinsicReward):
        def __init__(self, obs_space: gym.spaces.Dict, config: ModelConfig) -> None: ...
        def bonus(self, obs: Mapping[str, Tensor]) -> Tensor: ...  # [N]
        def learn(self, obs: Mapping[str, Tensor]) -> Tensor | None: ...  # a loss
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn


class IntrinsicReward(nn.Module):
    """Says how new observations are. Its parameters and buffers are in checkpoints."""

    def bonus(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Returns [N] numbers of 0 or more, of any scale, for N observations {key: [N, ...]}. No gradients flow."""
        raise NotImplementedError

    def learn(self, obs: Mapping[str, Tensor]) -> Tensor | None:
        """Sees N of the latest observations {key: [N, ...]}. Returns a loss to be minimised, 0-dim, or None where there
        is nothing to train."""
        raise NotImplementedError
